/**
 * Where the containers of a pod have something mounted below a volume of files. They have the files read-only, so what
 * starts them can make no place there (kubelet: MakeNestedMountpoints). Pure.
 */
import { posix } from 'node:path';
import type { Pod } from '../../kubernetes/objects/objects.ts';
import type { VolumeMount } from '../../kubernetes/objects/container.ts';
import { compareText } from '../../mount/text/compare-text.ts';
import { sha256Hex } from '../../plugins/layout/layout.ts';
import { cleanPath, type ContentFile, parseContentTree } from '../../plugins/pod/content-tree.ts';
import { Sensitive } from '../../plugins/secret/sensitive.ts';
import type { ContentFiles } from './content-files.ts';

const MOUNT_POINT = { content: new Uint8Array(), mode: 0o755, isMountPoint: true } as const;

const NO_FILES: ReadonlyMap<string, ContentFile> = new Map();

/**
 * The same files, and the places in which something is mounted. Where a file leads by its first component, that stays:
 * then what starts the container mounts over the file, or finds that it cannot.
 */
export function withMountPoints(
  content: ContentFiles,
  pod: Pick<Pod, 'containers'>,
  volumeName: string,
): ContentFiles {
  const files = content.files?.reveal() ?? NO_FILES;
  const taken = new Set([...files.keys()].map(firstOf));
  const places = mountPointsIn(pod, volumeName).filter((path) => !taken.has(firstOf(path)));
  if (places.length === 0) return content;
  return {
    files: new Sensitive(new Map([...files, ...places.map((path) => [path, MOUNT_POINT] as const)])),
    generation: sha256Hex(JSON.stringify([content.generation, places])).slice(0, 16),
  };
}

/** In the order of the paths, each once. A part of the volume is bound by itself, and has no places of its own. */
function mountPointsIn({ containers }: Pick<Pod, 'containers'>, volumeName: string): readonly string[] {
  const found = containers.flatMap(({ mounts }) =>
    inOrder(mounts)
      .filter(({ mount }) => mount.volume === volumeName && mount.part === undefined)
      .flatMap(({ place }) => outermostBelow(place, inOrder(mounts))),
  );
  return [...new Set(found)].filter(isPlace).sort();
}

interface Placed {
  readonly mount: VolumeMount;
  /** As the kernel takes it, with NUL for each slash and none at its end; of the container's root nothing is left. */
  readonly place: string;
}

const ordered = new WeakMap<readonly VolumeMount[], readonly Placed[]>();

/** What is below a place comes right behind it. A wish is never changed in place, so each list is put in order once. */
function inOrder(mounts: readonly VolumeMount[]): readonly Placed[] {
  const known = ordered.get(mounts);
  if (known !== undefined) return known;
  const placed = mounts.map((mount): Placed => {
    const path = posix.normalize(`/${mount.path}`);
    return { mount, place: (path.endsWith('/') ? path.slice(0, -1) : path).replaceAll('/', '\0') };
  });
  placed.sort((a, b) => compareText(a.place, b.place));
  ordered.set(mounts, placed);
  return placed;
}

/** What is mounted below one of them is that one's to have a place for. */
function outermostBelow(root: string, placed: readonly Placed[]): readonly string[] {
  const above = `${root}\0`;
  const found: string[] = [];
  let last: string | undefined;
  for (let at = firstFrom(above, placed); placed[at]?.place.startsWith(above) === true; at += 1) {
    const { place } = placed[at] as Placed;
    if (last !== undefined && `${place}\0`.startsWith(`${last}\0`)) continue;
    last = place;
    found.push(place.slice(above.length).replaceAll('\0', '/'));
  }
  return found;
}

/** The first that is not before `place` in their order. */
function firstFrom(place: string, placed: readonly Placed[]): number {
  let [from, to] = [0, placed.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (compareText(placed[middle]?.place ?? '', place) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** The writer's own names, and what can be no name, are no places. */
function isPlace(path: string): boolean {
  return parseContentTree(new Map([[path, MOUNT_POINT]])).ok;
}

function firstOf(path: string): string {
  return cleanPath(path).split('/', 1)[0] ?? '';
}
