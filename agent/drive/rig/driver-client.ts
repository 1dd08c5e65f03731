/** Calls to the driver under test: one line each, bounded, and every word of its errors looked at for secrets. */
import type { AbsolutePath, Clock } from '../../../mount/host.ts';
import type { RemoteCall, RemoteMethod, RemoteReply } from '../../../mount/remote-call.ts';
import { methodName, shown } from '../../../plugins/csi/wire/status.ts';
import { type OnWait, tellWhileSlow } from './patience.ts';
import { withoutSecrets } from '../oracle/recorded-call.ts';

/** `code` undefined: no answer at all (dead, too late, no message). */
export type Answer<Reply> =
  | { readonly ok: true; readonly reply: Reply }
  | { readonly ok: false; readonly code: number | undefined; readonly text: string };

export interface DriverClient {
  call<Request, Reply>(method: RemoteMethod<Request, Reply>, request: Request): Promise<Answer<Reply>>;
  /** Methods of which an error message held a value that was sent as a secret. */
  readonly leaks: ReadonlySet<string>;
  /** Calls made so far. */
  count(): number;
}

/** The canonical codes by name (gRPC core, statuscodes). */
const CODE_NAMES = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
] as const;

export type CodeName = (typeof CODE_NAMES)[number];

function codeName(code: number | undefined): string {
  return code === undefined ? 'no answer' : (CODE_NAMES[code] ?? `code ${code}`);
}

/** The number of a canonical code. */
export function codeOf(name: CodeName): number {
  return CODE_NAMES.indexOf(name);
}

/** "OK" or "INTERNAL: what it said". */
export function answerText(answer: Answer<unknown>): string {
  if (answer.ok) return 'OK';
  return `${codeName(answer.code)}${answer.text === '' ? '' : `: ${answer.text}`}`;
}

export interface ClientParts {
  readonly socket: () => AbsolutePath;
  /** The inode of the socket file, now: a new one is a new server. */
  readonly inode: () => Promise<number>;
  readonly remote: <Request, Reply>(call: RemoteCall<Request, Reply>) => Promise<RemoteReply<Reply>>;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly deadlineMs: number;
  readonly onWait: OnWait;
}

/** Never rejects: what goes wrong is an answer that is not ok. */
export function createDriverClient(parts: ClientParts): DriverClient {
  const leaks = new Set<string>();
  let count = 0;

  async function call<Request, Reply>(
    method: RemoteMethod<Request, Reply>,
    request: Request,
  ): Promise<Answer<Reply>> {
    count += 1;
    const socket = { path: parts.socket(), inode: await parts.inode() };
    const { deadlineMs, onWait } = parts;
    const answered = tellWhileSlow(methodName(method.path), deadlineMs, onWait);
    const reply = await parts.remote({ socket, method, request, deadlineMs }).finally(answered);
    if (reply.kind === 'ok') return { ok: true, reply: reply.reply };
    const { secrets = {} } = request as { readonly secrets?: Readonly<Record<string, string>> };
    const { message, found } = withoutSecrets(reply.message, Object.values(secrets));
    if (found) leaks.add(methodName(method.path));
    return { ok: false, code: reply.kind === 'status' ? reply.status : undefined, text: shown(message) };
  }

  return { call, leaks, count: () => count };
}
