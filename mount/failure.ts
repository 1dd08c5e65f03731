/**
 * Failures are values. A `throw` anywhere in Mooring is a broken invariant: the process dies, systemd starts it
 * again, and the state is rebuilt from the kernel and the records.
 */
import { withinBytes } from './text/byte-bound.ts';

/**
 * Every failure code, and when it is worth trying again.
 *
 * `later`: by back-off, and at once when the cause is known to have changed.
 * `on-change`: never by time alone; only when the wish or the driver instance changes (CSI: UNIMPLEMENTED "MUST NOT
 * retry").
 *
 * docs/OPERATING.md has one paragraph and one cure per code; a test keeps the two lists equal.
 */
export const FAILURE_RETRY = {
  // The machine.
  'mount-failed': 'later',
  'mount-busy': 'later',
  'mount-stacked': 'later',
  'mount-foreign': 'later',
  'mount-lost': 'later',
  'hold-lost': 'later',
  'file-system-dead': 'later',
  'unmount-failed': 'later',
  'table-unreadable': 'later',
  'path-missing': 'later',
  'path-unsafe': 'later',
  'path-wrong-kind': 'later',
  'disk-not-mounted': 'later',
  'subpath-lost': 'later',
  'subpath-missing': 'later',
  'subpath-unsafe': 'later',
  'directory-not-empty': 'later',
  'directory-replaced': 'later',
  'permission-denied': 'later',
  'disk-full': 'later',
  'input-output': 'later',
  'too-large': 'later',
  'tool-missing': 'later',
  'deadline-passed': 'later',
  'broker-lost': 'later',
  'already-running': 'on-change',
  'kubelet-running': 'on-change',
  // The driver.
  'driver-not-registered': 'later',
  'endpoint-unsafe': 'later',
  'driver-unreachable': 'later',
  'driver-deadline': 'later',
  'driver-busy': 'later',
  'driver-exhausted': 'later',
  'driver-refused': 'later',
  'driver-precondition': 'later',
  'driver-conflict': 'later',
  'driver-not-found': 'later',
  'driver-unimplemented': 'on-change',
  'driver-failed': 'later',
  'driver-answer-invalid': 'later',
  'late-effect': 'later',
  'staged-not-mounted': 'later',
  'published-not-mounted': 'later',
  'unpublished-still-mounted': 'later',
  'unstaged-still-mounted': 'later',
  'device-changed': 'later',
  'device-replaced': 'later',
  'published-not-a-device': 'later',
  'device-in-use': 'later',
  'device-content': 'later',
  'target-refused': 'later',
  'target-unreachable': 'later',
  'expand-in-use': 'on-change',
  'expand-infeasible': 'on-change',
  'lifecycle-mode': 'on-change',
  'wrong-topology': 'on-change',
  // The wish.
  'spec-invalid': 'on-change',
  'kind-unsupported': 'on-change',
  'reference-missing': 'on-change',
  'claim-not-bound': 'on-change',
  'not-attached': 'on-change',
  'in-use-unreported': 'on-change',
  'in-use-contested': 'later',
  'claim-mismatch': 'on-change',
  'host-path-check': 'later',
  'volume-in-use': 'later',
  'group-unfinished': 'later',
  'token-missing': 'on-change',
  quarantined: 'on-change',
  'source-unreadable': 'on-change',
  'manifest-vanished': 'later',
  'removed-last': 'later',
  'volume-held': 'later',
  'no-longer-wanted': 'later',
  // Our own papers.
  'record-unreadable': 'later',
  'record-write': 'later',
} as const satisfies Record<string, 'later' | 'on-change'>;

export type FailureCode = keyof typeof FAILURE_RETRY;

/** May the machine (or the driver) have changed? `none` is a promise; doubt is `unknown`. */
export type Effect = 'none' | 'unknown';

/**
 * Why a file system that is mounted can be used no more. `read-only`: it was written before. `input-output`: it fails
 * what one that is there answers (an XFS that is shut down).
 */
export type DeathCause =
  | 'shut-down'
  | 'emergency-read-only'
  | 'read-only'
  | 'daemon-gone'
  | 'device-gone'
  | 'stale'
  | 'damaged'
  | 'input-output';

export interface Failure {
  readonly code: FailureCode;
  /** For people; never parsed, never holds a secret, at most 1 KiB of UTF-8 (`fail` and `bounded` see to that). */
  readonly message: string;
  readonly effect: Effect;
  /** Who or what stands in the way, when known: a pid, a path, a driver, an object name. */
  readonly blocker?: string;
  /**
   * The mount that somebody seems to keep busy. Who that is is looked for when the answer was told already
   * (`Host.findHolders`): it is only a reason, and what is held may hang.
   */
  readonly heldAt?: string;
  /** The driver has answered an unpublish: the volume is not published there any more. What failed came after. */
  readonly ended?: true;
  /** What `file-system-dead` died of. */
  readonly death?: DeathCause;
  /** The device of the file system that was found dead, as in MountIdentity; undefined: not known. */
  readonly deadDevice?: string;
  /** Nothing was mounted at the place when its publish began: what is there now nobody was told of. */
  readonly wasBare?: true;
  /** What was to be there before anything was done was not: whoever expected it looks for himself. */
  readonly isUnexpected?: true;
  /** Nobody was asked in time, since all who could ask wait for others: it says nothing of what was to be asked. */
  readonly isUnasked?: true;
  /** Nobody heard how a call of a driver ended, so its effect may come minutes from now. */
  readonly unanswered?: true;
}

export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly failure: Failure };

export const done: Result<void> = { ok: true, value: undefined };

export function ok<T>(value: T): Result<T> {
  return { ok: true, value };
}

export function fail(failure: Failure): { readonly ok: false; readonly failure: Failure } {
  return { ok: false, failure: bounded(failure) };
}

/** For a failure that is told and not returned. A message that is too long loses its end. */
export function bounded(failure: Failure): Failure {
  const message = withinBytes(failure.message, MESSAGE_BYTES_MAX);
  return message === failure.message ? failure : { ...failure, message };
}

const MESSAGE_BYTES_MAX = 1_024;

/** Dies when a promise of the code itself is broken; never for input or for the world. */
export function assert(condition: boolean, promise: string): asserts condition {
  if (!condition) throw new Error(`broken invariant: ${promise}`);
}

export function assertNever(value: never): never {
  throw new Error(`broken invariant: unreachable ${JSON.stringify(value)}`);
}
