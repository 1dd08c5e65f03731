/** The kernel's mount table, read from /proc/self/mountinfo (proc(5)), the richer form of /proc/mounts. */
import { fail, ok, type Result } from './failure.ts';
import type { AbsolutePath } from './host.ts';

export interface MountEntry {
  readonly mountId: number;
  readonly parentId: number;
  /** `major:minor`; for btrfs an anonymous device that stat(2) does not show. */
  readonly device: string;
  /** What of the file system is mounted; `/` unless it is a bind of a part; may end in `//deleted`. */
  readonly root: string;
  readonly target: AbsolutePath;
  /** Per-mount options: `ro` here is a read-only bind. */
  readonly options: readonly string[];
  /** shared:N, master:N, propagate_from:N, unbindable. */
  readonly propagation: readonly string[];
  readonly fsType: string;
  readonly source: string;
  /** Options of the file system itself; `ro` or `emergency_ro` here is a sick or read-only file system. */
  readonly superOptions: readonly string[];
}

export interface MountTable {
  /** All entries, in the kernel's order: of two on one target the later one is visible. */
  readonly entries: readonly MountEntry[];
  /** The stack at a target, lowest first; empty when nothing is mounted there. */
  at(target: AbsolutePath): readonly MountEntry[];
}

const NOTHING: readonly MountEntry[] = [];

export function createMountTable(entries: readonly MountEntry[]): MountTable {
  const byTarget = new Map<string, MountEntry[]>();
  for (const entry of entries) {
    const stack = byTarget.get(entry.target);
    if (stack === undefined) byTarget.set(entry.target, [entry]);
    else stack.push(entry);
  }
  return { entries, at: (target) => byTarget.get(target) ?? NOTHING };
}

/** Pure and total: any bytes in, a table or a failure that shows the line. Undoes the kernel's octal escapes. */
export function parseMountTable(text: string): Result<MountTable> {
  const entries: MountEntry[] = [];
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const entry = parseMountLine(line);
    if (!entry.ok) return entry;
    entries.push(entry.value);
  }
  return ok(createMountTable(entries));
}

const MOUNT_ID = /^[0-9]{1,10}$/;
const DEVICE = /^[0-9]{1,10}:[0-9]{1,10}$/;

export function parseMountLine(line: string): Result<MountEntry> {
  const fields = line.split(' ');
  const separator = fields.indexOf('-', 6);
  const [id, parent, device, root, target, options] = fields;
  const [fsType, source, ...superFields] = separator < 0 ? [] : fields.slice(separator + 1);
  if (
    id === undefined ||
    !MOUNT_ID.test(id) ||
    parent === undefined ||
    !MOUNT_ID.test(parent) ||
    device === undefined ||
    !DEVICE.test(device) ||
    root === undefined ||
    root === '' ||
    !target?.startsWith('/') ||
    options === undefined ||
    fsType === undefined ||
    source === undefined ||
    superFields.length === 0
  ) {
    return fail({
      code: 'table-unreadable',
      message: `mountinfo line: ${line.slice(0, 256)}`,
      effect: 'none',
    });
  }
  return ok({
    mountId: Number(id),
    parentId: Number(parent),
    device,
    root: unescapeOctal(root),
    target: unescapeOctal(target) as AbsolutePath,
    options: options.split(','),
    propagation: fields.slice(6, separator),
    fsType: unescapeOctal(fsType),
    source: unescapeOctal(source),
    // The last field is the file system's own, and some do not escape a space in it.
    superOptions: superFields.join(' ').split(','),
  });
}

/** proc(5): the kernel escapes space, tab, newline, backslash and `#`, a byte at a time. */
const OCTAL = /(?:\\[0-3][0-7]{2})+/g;

function unescapeOctal(field: string): string {
  if (!field.includes('\\')) return field;
  return field.replace(OCTAL, (escapes) =>
    Buffer.from(
      escapes
        .slice(1)
        .split('\\')
        .map((digits) => Number.parseInt(digits, 8)),
    ).toString('utf8'),
  );
}
