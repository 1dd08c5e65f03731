/**
 * Where the containers of a pod have something mounted below a volume of files. They have the files read-only, so what
 * starts them can make no place there (kubelet: MakeNestedMountpoints). Pure.
 */
import { posix } from 'node:path';
import type { Pod } from '../../kubernetes/objects/objects.ts';
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
  const found = containers.flatMap(({ mounts }) => {
    const roots = mounts.filter(({ volume, part }) => volume === volumeName && part === undefined);
    return roots.flatMap(({ path: root }) => {
      const above = `${inContainer(root)}/`;
      const others = mounts.map(({ path }) => inContainer(path)).filter((path) => path.startsWith(above));
      return outermost(others).map((path) => path.slice(above.length));
    });
  });
  return [...new Set(found)].filter(isPlace).sort();
}

/** As the kernel takes it, without a slash at its end; of the container's root nothing is left. */
function inContainer(path: string): string {
  return posix.normalize(`/${path}`).replace(/\/+$/, '');
}

/** What is mounted below one of them is that one's to have a place for. */
function outermost(paths: readonly string[]): readonly string[] {
  return paths.filter((path) => !paths.some((other) => path.startsWith(`${other}/`)));
}

/** The writer's own names, and what can be no name, are no places. */
function isPlace(path: string): boolean {
  return parseContentTree(new Map([[path, MOUNT_POINT]])).ok;
}

function firstOf(path: string): string {
  return cleanPath(path).split('/', 1)[0] ?? '';
}
