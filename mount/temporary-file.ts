/** How `Host.writeFile` calls a file until it is whole: a crash leaves it, and the next write replaces it. Pure. */
import { createHash } from 'node:crypto';
import { type AbsolutePath, below, nameIn, parentOf } from './absolute-path.ts';

export interface WriteOptions {
  readonly mode: number;
  readonly durable: boolean;
  /**
   * Fail with `path-wrong-kind` instead of replacing. It is made under its own name and no other, so one that is cut
   * short leaves a part of it.
   */
  readonly exclusive?: boolean;
}

const NAME_BYTES_MAX = 255;
const TEMPORARY = /^\.(.+)\.tmp$/;

/** `.<name>.tmp`; a name too long for that is replaced by its hash. */
export function temporaryName(name: string): string {
  const temporary = `.${name}.tmp`;
  if (Buffer.byteLength(temporary) <= NAME_BYTES_MAX) return temporary;
  return `.${createHash('sha256').update(name).digest('hex')}.tmp`;
}

/** The temporary file of the file at `path`, in the same directory. */
export function temporaryPath(path: AbsolutePath): AbsolutePath {
  return below(parentOf(path), temporaryName(nameIn(path)));
}

/** The name of the file that was to become whole (its hash, where it was too long); undefined for any other name. */
export function nameBegun(name: string): string | undefined {
  return TEMPORARY.exec(name)?.[1];
}
