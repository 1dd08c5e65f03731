/** Which lines of mountinfo matter, told by their bytes: of 30,000 mounts of others not one is decoded. Pure. */
import { type AbsolutePath, parentOf } from './host.ts';

/** Is the line between these places of the buffer, without its end, one of those that are asked for? */
export type LineFilter = (buffer: Buffer, start: number, end: number) => boolean;

const SPACE = 0x20;
const SLASH = 0x2f;
/** Mount id, parent, device and root come before the target (proc(5)). */
const FIELDS_BEFORE_TARGET = 4;
const FIELDS_BEFORE_DEVICE = 2;

type Range = readonly [from: number, to: number];

const ALL: LineFilter = () => true;
/** The kernel writes others of them in octal, and which ones depends on its version. */
const PLAIN = /^[^\s\\#\x00-\x20\x7f]*$/;

/**
 * Mounts at `root`, below it, and on the way to it: all that a walk to a path below the root goes through, since the
 * mount that another one lies on is on the way to it. All mounts for a path with odd characters.
 */
export function aboutPath(root: AbsolutePath): LineFilter {
  if (!PLAIN.test(root)) return ALL;
  const isBelow = atOrBelow(root);
  const above: Buffer[] = [];
  for (let path = root; path !== '/'; path = parentOf(path)) above.push(Buffer.from(parentOf(path)));
  return (buffer, start, end) => {
    if (isBelow(buffer, start, end)) return true;
    const [from, to] = targetIn(buffer, start, end);
    return above.some(
      (path) => path.length === to - from && buffer.compare(path, 0, path.length, from, to) === 0,
    );
  };
}

/** Mounts at the path, and below it; all of them for a path with odd characters. */
export function atOrBelow(path: AbsolutePath): LineFilter {
  if (path === '/' || !PLAIN.test(path)) return ALL;
  const wanted = Buffer.from(path);
  const { length } = wanted;
  return (buffer, start, end) => {
    const [from, to] = targetIn(buffer, start, end);
    if (to - from < length || buffer.compare(wanted, 0, length, from, from + length) !== 0) return false;
    return to - from === length || buffer[from + length] === SLASH;
  };
}

/** The mount of this id. */
export function withId(mountId: number): LineFilter {
  const wanted = Buffer.from(`${mountId} `);
  return (buffer, start, end) =>
    end - start > wanted.length &&
    buffer.compare(wanted, 0, wanted.length, start, start + wanted.length) === 0;
}

/** Mounts of these file systems, by `major:minor`. */
export function ofDevices(devices: ReadonlySet<string>): LineFilter {
  return (buffer, start, end) => {
    const [from, to] = fieldIn(buffer, start, end, FIELDS_BEFORE_DEVICE);
    return devices.has(buffer.toString('latin1', from, to));
  };
}

function targetIn(buffer: Buffer, start: number, end: number): Range {
  return fieldIn(buffer, start, end, FIELDS_BEFORE_TARGET);
}

/** Empty when the line has no more than `before` fields. */
function fieldIn(buffer: Buffer, start: number, end: number, before: number): Range {
  let from = start;
  for (let field = 0; field < before; field += 1) {
    from = buffer.indexOf(SPACE, from) + 1;
    if (from === 0 || from > end) return [end, end];
  }
  const to = buffer.indexOf(SPACE, from);
  return [from, to < 0 || to > end ? end : to];
}
