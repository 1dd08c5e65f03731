/** What podman is told so that a container gets its volumes. Pure; podman-run(1), of podman 4.3 and later. */
import type { MountPropagation } from '../../kubernetes/objects/container.ts';
import type { ContainerMount, ContainerMounts, PlaceInContainer } from './mounts-document.ts';
import type { LaunchWords } from './launch-words.ts';

const PROPAGATION: Readonly<Record<MountPropagation, string>> = {
  None: 'rprivate',
  HostToContainer: 'rslave',
  Bidirectional: 'rshared',
};

/** One argument a word, not quoted for any shell. Assumes that all places of the container are ready. */
export function podmanArguments({ mounts, devices, seLinux }: ContainerMounts): LaunchWords {
  const problems: string[] = [];
  const words = [
    ...mounts.map((mount) => mountArgument(mount, problems)),
    ...devices.map((device) => deviceArgument(device, problems)),
    ...(['user', 'role', 'type', 'level'] as const).flatMap((part) => {
      const value = seLinux?.[part] ?? null;
      return value === null ? [] : [`--security-opt=label=${part}:${value}`];
    }),
  ];
  return problems.length > 0 ? { kind: 'impossible', problems } : { kind: 'words', words };
}

function mountArgument(mount: ContainerMount, problems: string[]): string {
  const { containerPath, hostPath, image, readOnly, propagation } = mount;
  if (image !== null) return mountWord(['type=image', `src=${image.reference}`, `dst=${containerPath}`]);
  problems.push(...recursionProblems(mount));
  return mountWord([
    'type=bind',
    `src=${hostPath}`,
    `dst=${containerPath}`,
    ...(readOnly ? ['ro=true'] : []),
    `bind-propagation=${PROPAGATION[propagation]}`,
  ]);
}

function mountWord(fields: readonly string[]): string {
  return `--mount=${fields.map(commaSeparated).join(',')}`;
}

/** A line for people where the pod asks for more than podman has: it makes the mount read-only, and none below. */
export function recursionProblems({ containerPath, recursiveReadOnly }: ContainerMount): readonly string[] {
  if (recursiveReadOnly !== 'required') return [];
  return [`${containerPath}: podman cannot make what is mounted below read-only (recursiveReadOnly)`];
}

/** A field of a comma-separated line (RFC 4180), which podman reads its mounts as. */
function commaSeparated(field: string): string {
  return /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}

function deviceArgument({ containerPath, hostPath, readOnly }: PlaceInContainer, problems: string[]): string {
  for (const path of [hostPath ?? '', containerPath])
    if (path.includes(':')) problems.push(`${path}: podman takes no device with a colon in its path`);
  return `--device=${hostPath}:${containerPath}:${readOnly ? 'rm' : 'rwm'}`;
}
