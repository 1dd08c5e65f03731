/** The files of one generation, checked, as a tree: what the atomic writer writes and compares with. */
import { type Failure, type FailureCode, fail, ok, type Result } from '../../mount/failure.ts';

export interface ContentFile {
  readonly content: Uint8Array;
  /** Permission bits, 0 to 0o777. */
  readonly mode: number;
  /** It is a directory in place of a file: a container has something mounted there. */
  readonly isMountPoint?: true;
}

export interface ContentDirectory {
  readonly files: ReadonlyMap<string, ContentFile>;
  readonly directories: ReadonlyMap<string, ContentDirectory>;
}

/** All of one volume. */
export interface ContentTree extends ContentDirectory {
  /** Directories that lie beside the generations and outlive them; none is below a file of the tree. */
  readonly mountPoints: readonly string[];
}

/** Far above what an API object can hold (1 MiB); both bound what one publish may read and write. */
export const CONTENT_BYTES_MAX = 8 * 1024 * 1024;
export const CONTENT_FILES_MAX = 8_192;

/** Links of the present and of the wanted generation, generations that crashes left, and the writer's own names. */
export const ROOT_ENTRIES_MAX = 2 * CONTENT_FILES_MAX + 1_024;

const COMPONENT_BYTES_MAX = 255;
/** The kubelet's limit is 4,096; the volume's own path and the generation's name need room below PATH_MAX. */
const PATH_BYTES_MAX = 2_048;
const MODE_MAX = 0o777;
const LONE_SURROGATE = /\p{Surrogate}/u;

interface GrowingDirectory {
  readonly files: Map<string, ContentFile>;
  readonly directories: Map<string, GrowingDirectory>;
}

/**
 * Refuses, before anything is written, every path that could leave the volume or meet the writer's own names (SE-05):
 * absolute, `..` anywhere, a first component that begins with `..`, NUL, or over-long; and paths that cannot exist
 * together. `.` and empty components are dropped as the kubelet does. Failures: `spec-invalid`, `too-large`; never an
 * effect, never a content.
 */
export function parseContentTree(files: ReadonlyMap<string, ContentFile>): Result<ContentTree> {
  const root: GrowingDirectory = { files: new Map(), directories: new Map() };
  const mountPoints: string[] = [];
  let bytes = 0;
  if (files.size > CONTENT_FILES_MAX)
    return refuse('too-large', `${files.size} files, ${CONTENT_FILES_MAX} allowed`);
  for (const [path, file] of files) {
    const wrong = checkPath(path) ?? checkMode(file.mode);
    if (wrong === undefined && file.isMountPoint === true) mountPoints.push(cleanPath(path));
    const refused = wrong ?? (file.isMountPoint ? undefined : add(root, componentsOf(path), file));
    if (refused !== undefined)
      return refuse('spec-invalid', `path ${JSON.stringify(path.slice(0, 256))}: ${refused}`);
    bytes += file.content.byteLength;
  }
  return bytes > CONTENT_BYTES_MAX
    ? refuse('too-large', `${bytes} bytes, ${CONTENT_BYTES_MAX} allowed`)
    : ok({ ...root, mountPoints });
}

/** As the kubelet cleans it: two ways to write one path become one. */
export function cleanPath(path: string): string {
  return componentsOf(path).join('/');
}

function componentsOf(path: string): readonly string[] {
  return path.split('/').filter((one) => one !== '' && one !== '.');
}

function checkPath(path: string): string | undefined {
  const components = componentsOf(path);
  if (components.length === 0) return 'names no file';
  if (path.startsWith('/')) return 'is not relative';
  if (path.includes('\0') || LONE_SURROGATE.test(path)) return 'holds a character that no file name can';
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) return `is longer than ${PATH_BYTES_MAX} bytes`;
  if (components.includes('..')) return 'contains ..';
  if (components[0]?.startsWith('..') === true) return 'begins with .., which is reserved';
  const tooLong = components.some((one) => Buffer.byteLength(one) > COMPONENT_BYTES_MAX);
  return tooLong ? `has a component longer than ${COMPONENT_BYTES_MAX} bytes` : undefined;
}

function checkMode(mode: number): string | undefined {
  return Number.isInteger(mode) && mode >= 0 && mode <= MODE_MAX
    ? undefined
    : 'its mode is not between 0 and 0777';
}

function add(root: GrowingDirectory, components: readonly string[], file: ContentFile): string | undefined {
  let at = root;
  for (const component of components.slice(0, -1)) {
    if (at.files.has(component)) return 'lies below another file';
    const next = at.directories.get(component) ?? { files: new Map(), directories: new Map() };
    at.directories.set(component, next);
    at = next;
  }
  const name = components.at(-1) ?? '';
  if (at.directories.has(name)) return 'is a directory for another file';
  if (at.files.has(name)) return 'is given twice';
  at.files.set(name, file);
  return undefined;
}

function refuse(code: FailureCode, message: string): { readonly ok: false; readonly failure: Failure } {
  return fail({ code, message, effect: 'none' });
}
