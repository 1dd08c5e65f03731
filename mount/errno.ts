/** The one table from errno to failure code. */
import { type Effect, type Failure, type FailureCode, fail } from './failure.ts';

const CODE_OF_ERRNO: Readonly<Record<string, FailureCode>> = {
  ENOENT: 'path-missing',
  ENOTDIR: 'path-wrong-kind',
  EISDIR: 'path-wrong-kind',
  EEXIST: 'path-wrong-kind',
  // readlink(2) of something that is no link; rename(2) of a directory into itself.
  EINVAL: 'path-wrong-kind',
  EXDEV: 'path-wrong-kind',
  ENXIO: 'path-wrong-kind',
  ELOOP: 'path-unsafe',
  ENOTEMPTY: 'directory-not-empty',
  EBUSY: 'mount-busy',
  ETXTBSY: 'mount-busy',
  EACCES: 'permission-denied',
  EPERM: 'permission-denied',
  EROFS: 'permission-denied',
  ENOSPC: 'disk-full',
  EDQUOT: 'disk-full',
  EFBIG: 'too-large',
  ENAMETOOLONG: 'too-large',
  EIO: 'input-output',
  ESTALE: 'input-output',
  ENOTCONN: 'input-output',
  EUCLEAN: 'input-output',
  ENODEV: 'input-output',
};

/**
 * By their numbers on Linux: Node.js has no name for them ("Unknown system error -116"), and calls EOPNOTSUPP by the
 * name of another one.
 */
const NAMELESS: ReadonlyMap<unknown, string> = new Map([
  [-95, 'EOPNOTSUPP'],
  [-116, 'ESTALE'],
  [-117, 'EUCLEAN'],
  [-122, 'EDQUOT'],
  [-123, 'ENOMEDIUM'],
]);

/** `ENOENT` and the like of an exception that node's fs threw; undefined: it is another one. */
export function errnoIn(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error && 'syscall' in error)) return undefined;
  if (typeof error.code !== 'string') return undefined;
  return ('errno' in error ? NAMELESS.get(error.errno) : undefined) ?? error.code;
}

/** As `errnoIn`; anything else is rethrown: a broken invariant. */
export function errnoOf(error: unknown): string {
  const errno = errnoIn(error);
  if (errno === undefined) throw error;
  return errno;
}

/** An errno that the table does not know is `input-output`. */
export function codeOfErrno(errno: string): FailureCode {
  return CODE_OF_ERRNO[errno] ?? 'input-output';
}

export function failErrno(
  error: unknown,
  doing: string,
  effect: Effect,
): { readonly ok: false; readonly failure: Failure } {
  const errno = errnoOf(error);
  return fail({ code: codeOfErrno(errno), message: `${doing}: ${errno}`, effect });
}
