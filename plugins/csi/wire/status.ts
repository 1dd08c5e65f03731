/** What an answer that is not OK proves, and how it is told (docs/CSI.md, "What an answer means"). */
import type { Effect, Failure, FailureCode } from '../../../mount/failure.ts';
import type { RemoteReply } from '../../../mount/remote-call.ts';
import { printable } from '../../../mount/text/printable.ts';
import { withoutSecretValues } from '../../secret/secret-forms.ts';
import type { SecretData } from '../../secret/sensitive.ts';

/** What must not be shown of what a driver says. */
export interface Hidden {
  /** All secrets that it was given; their values are taken out. */
  readonly secrets: readonly (SecretData | undefined)[];
  /** The driver may know others, that cannot be taken out: of what it says nothing is shown. By default not. */
  readonly mayHoldOthers?: boolean;
}

export interface CallContext extends Hidden {
  readonly driver: string;
  /** As methodName gives it. */
  readonly method: string;
  /** A failed climbing call may have had no effect; of a failed teardown call nothing is ever certain. */
  readonly direction: 'climbing' | 'teardown';
}

interface Meaning {
  readonly name: string;
  readonly code: FailureCode;
  readonly effect: Effect;
}

/**
 * Effect `none` only where the CSI specification says the call was refused before anything happened. UNKNOWN, INTERNAL
 * and DATA_LOSS stay `unknown`: drivers wrap everything in them.
 */
const MEANINGS: ReadonlyMap<number, Meaning> = new Map([
  [1, { name: 'CANCELLED', code: 'driver-deadline', effect: 'unknown' }],
  [2, { name: 'UNKNOWN', code: 'driver-failed', effect: 'unknown' }],
  [3, { name: 'INVALID_ARGUMENT', code: 'driver-refused', effect: 'none' }],
  [4, { name: 'DEADLINE_EXCEEDED', code: 'driver-deadline', effect: 'unknown' }],
  [5, { name: 'NOT_FOUND', code: 'driver-not-found', effect: 'none' }],
  [6, { name: 'ALREADY_EXISTS', code: 'driver-conflict', effect: 'unknown' }],
  [7, { name: 'PERMISSION_DENIED', code: 'driver-refused', effect: 'none' }],
  [8, { name: 'RESOURCE_EXHAUSTED', code: 'driver-exhausted', effect: 'unknown' }],
  [9, { name: 'FAILED_PRECONDITION', code: 'driver-precondition', effect: 'none' }],
  [10, { name: 'ABORTED', code: 'driver-busy', effect: 'unknown' }],
  [11, { name: 'OUT_OF_RANGE', code: 'driver-refused', effect: 'none' }],
  [12, { name: 'UNIMPLEMENTED', code: 'driver-unimplemented', effect: 'none' }],
  [13, { name: 'INTERNAL', code: 'driver-failed', effect: 'unknown' }],
  [14, { name: 'UNAVAILABLE', code: 'driver-unreachable', effect: 'unknown' }],
  [15, { name: 'DATA_LOSS', code: 'driver-failed', effect: 'unknown' }],
  [16, { name: 'UNAUTHENTICATED', code: 'driver-refused', effect: 'none' }],
]);

export const STATUS_UNIMPLEMENTED = 12;
const STATUS_UNAVAILABLE = 14;

const BROKEN: Readonly<Record<'unreachable' | 'deadline' | 'undecodable', FailureCode>> = {
  unreachable: 'driver-unreachable',
  deadline: 'driver-deadline',
  undecodable: 'driver-answer-invalid',
};

export type NotOk = Exclude<RemoteReply<unknown>, { readonly kind: 'ok' }>;

/** As people know it: `/csi.v1.Node/NodeStageVolume` is `NodeStageVolume`. */
export function methodName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** The failure of a call that was not OK. Its message holds no secret of the call, no control byte, at most 1 KiB. */
export function failureOf(reply: NotOk, context: CallContext): Failure {
  const meaning = meaningOf(reply);
  const said = saidIn(reply, context);
  return {
    code: meaning.code,
    message: shown(`${context.driver} ${context.method}: ${meaning.name}${said === '' ? '' : `: ${said}`}`),
    effect: context.direction === 'teardown' ? 'unknown' : meaning.effect,
    blocker: context.driver,
    ...(isUnanswered(reply) ? { unanswered: true } : {}),
  };
}

/** What a driver said, without the secrets that it may know. */
export function sayable(text: string, { secrets, mayHoldOthers = false }: Hidden): string {
  if (text === '') return text;
  return mayHoldOthers ? NOT_SHOWN : redacted(text, secrets);
}

const NOT_SHOWN =
  "(not shown: it may hold a secret that is not known any more since the agent's restart; the driver's log has it)";

/** What broke is told in our own words, and hides nothing, however many secrets there are. */
function saidIn(reply: NotOk, context: CallContext): string {
  return reply.kind === 'broken' ? reply.message : sayable(reply.message, context);
}

function meaningOf(reply: NotOk): Meaning {
  if (reply.kind === 'broken') return { name: reply.because, code: BROKEN[reply.because], effect: 'unknown' };
  const unheardOf: Meaning = { name: `status ${reply.status}`, code: 'driver-failed', effect: 'unknown' };
  return MEANINGS.get(reply.status) ?? unheardOf;
}

/** The driver gave up what it was doing, as its context ended; what it had started may go on. */
const GIVEN_UP: ReadonlySet<number> = new Set([1, 4, STATUS_UNAVAILABLE]);

function isUnanswered(reply: NotOk): boolean {
  return reply.kind === 'broken' ? reply.because !== 'undecodable' : GIVEN_UP.has(reply.status);
}

/** The server is not there any more, or says so: worth looking whether it has been replaced. */
export function isUnreachable(reply: RemoteReply<unknown>): boolean {
  return (
    (reply.kind === 'broken' && reply.because === 'unreachable') ||
    (reply.kind === 'status' && reply.status === STATUS_UNAVAILABLE)
  );
}

const MESSAGE_BYTES_MAX = 1_024;

/** A text of a driver made fit for people, at most as long as the message of a failure. */
export function shown(text: string): string {
  return printable(text, MESSAGE_BYTES_MAX);
}

function redacted(message: string, secrets: readonly (SecretData | undefined)[]): string {
  return withoutSecretValues(
    message,
    secrets.flatMap((data) => Object.values(data?.reveal() ?? {})),
  );
}
