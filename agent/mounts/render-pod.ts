/** The pod of a manifest with every volume replaced by what stands of it, for `podman kube play`. Pure. */
import type { ContainerKind } from '../../kubernetes/objects/container.ts';
import { CONTAINER_LISTS } from '../../kubernetes/objects/read-container.ts';
import { sha256Hex } from '../../plugins/layout/layout.ts';
import { isMountReady } from './container-mounts.ts';
import type { ContainerMount, ContainerMounts, MountsDocument, PlaceInContainer } from './mounts-document.ts';
import { recursionProblems } from './podman-arguments.ts';

/** Whatever a manifest has there. */
type Fields = Readonly<Record<string, unknown>>;

/** The source of each volume of the rendered pod, by its name. */
type Sources = Map<string, Fields>;

export type RenderedPod =
  | { readonly kind: 'pod'; readonly pod: object }
  /** One line for people for each; never empty. */
  | { readonly kind: 'impossible'; readonly problems: readonly string[] };

/**
 * `value` is the pod as it was written, `document` what the agent says of the pod of that name. All that is not about
 * volumes stays as it is; volumes that no container mounts are left out. Devices become mounts of kind BlockDevice.
 * Impossible while a volume is not there, and when the agent was told another pod than this one.
 */
export function renderPod(value: unknown, document: MountsDocument): RenderedPod {
  const problems: string[] = [];
  const sources: Sources = new Map();
  const spec = fieldsOf(fieldsOf(value)['spec']);
  const lists = CONTAINER_LISTS.flatMap(([key, kind]) => {
    const containers = listOf(spec[key]);
    const told = document.containers.filter((one) => one.kind === kind);
    if (containers.length !== told.length) problems.push(otherPod(kind, key));
    const rendered = containers.map((one, index) => {
      const mounts = told[index];
      return mounts === undefined ? one : renderContainer(fieldsOf(one), mounts, sources, problems);
    });
    return key in spec ? [[key, rendered] as const] : [];
  });
  if (problems.length > 0) return { kind: 'impossible', problems };
  const volumes = [...sources].map(([name, source]) => ({ name, ...source }));
  return {
    kind: 'pod',
    pod: { ...fieldsOf(value), spec: { ...spec, ...Object.fromEntries(lists), volumes } },
  };
}

function renderContainer(
  container: Fields,
  told: ContainerMounts,
  sources: Sources,
  problems: string[],
): Fields {
  const { volumeMounts, volumeDevices, ...rest } = container;
  const mounts = listOf(volumeMounts).map(fieldsOf);
  const devices = listOf(volumeDevices).map(fieldsOf);
  const isSame =
    container['name'] === told.name &&
    isSamePlaces(mounts, 'mountPath', told.mounts) &&
    isSamePlaces(devices, 'devicePath', told.devices);
  if (!isSame) problems.push(otherPod(told.kind, told.name));
  const missing = [...told.mounts.filter((one) => !isMountReady(one)), ...told.devices];
  for (const { volume, hostPath, sentence } of missing)
    if (hostPath === null) problems.push(`container ${told.name}: volume ${volume}: ${sentence}`);
  const files = mounts.map((mount, index) => renderMount(mount, told.mounts[index], sources));
  for (const mount of told.mounts) {
    const { containerPath } = mount;
    problems.push(...recursionProblems(mount));
    // It reads what follows as options.
    if (containerPath.includes(':'))
      problems.push(`${containerPath}: podman kube play takes no mountPath with a colon`);
  }
  const raw = told.devices.map(({ volume, containerPath, hostPath, readOnly }) => {
    if (readOnly) problems.push(`${containerPath}: podman kube play gives every device for writing`);
    if (`${hostPath}${containerPath}`.includes(':'))
      problems.push(`${containerPath}: podman takes no device with a colon in its path`);
    sources.set(volume, { hostPath: { path: hostPath, type: 'BlockDevice' } });
    return { name: volume, mountPath: containerPath };
  });
  return files.length + raw.length === 0 ? rest : { ...rest, volumeMounts: [...files, ...raw] };
}

function renderMount(mount: Fields, told: ContainerMount | undefined, sources: Sources): Fields {
  if (told === undefined) return mount;
  const { subPath: _, subPathExpr: __, ...rest } = mount;
  const name = told.subPath === null ? told.volume : nameOfPart(told.hostPath ?? '');
  sources.set(name, sourceOf(told));
  return { ...rest, name, mountPath: told.containerPath, ...(told.readOnly ? { readOnly: true } : {}) };
}

/** The bind of a part is a volume of its own, beside the one that it is of. */
function nameOfPart(path: string): string {
  return `part-${sha256Hex(path).slice(0, 16)}`;
}

/** podman kube play mounts images itself (since 5.3). */
function sourceOf({ hostPath, image }: ContainerMount): Fields {
  if (image === null) return { hostPath: { path: hostPath } };
  const { reference, pullPolicy } = image;
  return { image: { reference, ...(pullPolicy === '' ? {} : { pullPolicy }) } };
}

function isSamePlaces(written: readonly Fields[], key: string, told: readonly PlaceInContainer[]): boolean {
  if (written.length !== told.length) return false;
  return told.every(({ volume, containerPath }, index) => {
    const { name, [key]: path } = written[index] ?? {};
    return name === volume && (path === containerPath || `/${String(path)}` === containerPath);
  });
}

function otherPod(kind: ContainerKind, what: string): string {
  const which = kind === 'container' ? 'containers' : `${kind} containers`;
  return `${what}: the agent knows other ${which} of this pod; is the manifest the one that it reads?`;
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
