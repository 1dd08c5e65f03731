/**
 * A recording proxy: a gRPC server on a Unix socket in front of a CSI driver. Forwards every unary CSI method as raw
 * bytes, records what went by without secrets, and does harm to calls where it is told to.
 */
import type { Clock } from '../../../mount/host.ts';
import type { RemoteCall, RemoteReply, SocketIdentity } from '../../../mount/remote-call.ts';
import { type GrpcServer, type GrpcService, GrpcStatus } from '../../../plugins/csi/wire/grpc-service.ts';
import { serveGrpc } from '../../../plugins/csi/wire/grpc.ts';
import { methodName } from '../../../plugins/csi/wire/status.ts';
import {
  readReply,
  readRequest,
  type RecordedCall,
  type RequestFields,
  WIRE_SERVICES,
  type WireService,
  withoutSecrets,
} from '../oracle/recorded-call.ts';

/** What is done to one call. */
export type Injection =
  /** Passed on after a while. */
  | { readonly kind: 'delay'; readonly delayMs: number }
  /** Answered with a code; the driver never sees it. */
  | { readonly kind: 'refuse'; readonly code: number }
  /** Passed on, and the driver's answer replaced by a code: the effect happened and nobody heard. */
  | { readonly kind: 'lose'; readonly code: number }
  /**
   * Answered with a code at once, and passed on when the time has come: the handler gave up, and what it had started
   * takes effect. `passedOn` is told what the driver answered then.
   */
  | {
      readonly kind: 'straggle';
      readonly code: number;
      readonly until: Promise<void>;
      readonly passedOn: (code: number) => void;
    };

export interface ArrivingCall {
  readonly method: string;
  /** Redacted. */
  readonly request: RequestFields;
}

export interface ProxyParts {
  /** The orchestrator dials there. */
  readonly listen: string;
  /** The driver's socket; a driver that is started again behind the same path is found again. */
  readonly driver: string;
  readonly remote: <Request, Reply>(call: RemoteCall<Request, Reply>) => Promise<RemoteReply<Reply>>;
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  /** How long the driver may take for one call. A caller that gives up earlier does not stop it, as in real life. */
  readonly deadlineMs: number;
  readonly inject?: (call: ArrivingCall) => Injection | undefined;
  /** A call has arrived; call what it returns when it was answered. For an oracle that judges as it goes. */
  readonly onArrival?: (call: ArrivingCall & { readonly startMs: number }) => (ended: RecordedCall) => void;
}

export interface CallProxy {
  /** What was answered so far, in the order of the answers; at most the last CALLS_MAX. */
  readonly calls: readonly RecordedCall[];
  close(): Promise<void>;
}

const CALLS_MAX = 100_000;
const UNAVAILABLE = 14;
const DEADLINE_EXCEEDED = 4;
const INTERNAL = 13;

interface Outcome {
  readonly code: number;
  readonly message: string;
  readonly bytes: Buffer | undefined;
  readonly reachedDriver: boolean;
}

/** Rejects when the socket cannot be served (serveGrpc). */
export async function startProxy(parts: ProxyParts): Promise<CallProxy> {
  const calls: RecordedCall[] = [];
  const record = (call: RecordedCall): void => {
    calls.push(call);
    if (calls.length > CALLS_MAX) calls.shift();
  };
  const server: GrpcServer = await serveGrpc(
    parts.listen,
    WIRE_SERVICES.map((service) => forwarding(service, parts, record)),
  );
  return { calls, close: () => server.close() };
}

type WireMethodOf = WireService extends ReadonlyMap<string, infer Method> ? Method : never;

/** The service with bytes in and bytes out: nothing of a message that we do not know is lost. */
function forwarding(
  service: WireService,
  parts: ProxyParts,
  record: (call: RecordedCall) => void,
): GrpcService<Record<string, never>> {
  const same = (bytes: Buffer): Buffer => bytes;
  const definition: Record<string, object> = {};
  const implementation: Record<string, (request: Buffer) => Promise<Buffer>> = {};
  for (const [name, method] of service) {
    definition[name] = {
      path: method.path,
      requestStream: false,
      responseStream: false,
      requestSerialize: same,
      requestDeserialize: same,
      responseSerialize: same,
      responseDeserialize: same,
    };
    implementation[name] = (bytes) => pass(method, bytes, parts, record);
  }
  return { definition, implementation } as unknown as GrpcService<Record<string, never>>;
}

async function pass(
  method: WireMethodOf,
  bytes: Buffer,
  parts: ProxyParts,
  record: (call: RecordedCall) => void,
): Promise<Buffer> {
  const startMs = parts.clock.nowMs();
  const { fields: request, unknownBytes, secrets } = readRequest(method, bytes);
  const name = methodName(method.path);
  const ended = parts.onArrival?.({ method: name, request, startMs });
  const injection = parts.inject?.({ method: name, request });
  const outcome = await afflicted(method, bytes, injection, parts);
  const { message, found } = withoutSecrets(outcome.message, secrets);
  const call: RecordedCall = {
    method: name,
    request,
    unknownBytes,
    startMs,
    endMs: parts.clock.nowMs(),
    code: outcome.code,
    message,
    reply: outcome.bytes === undefined ? undefined : readReply(method, outcome.bytes),
    secretInMessage: found,
    injected: injection === undefined ? undefined : injectionText(injection),
    reachedDriver: outcome.reachedDriver,
  };
  record(call);
  ended?.(call);
  if (outcome.bytes !== undefined) return outcome.bytes;
  throw new GrpcStatus(outcome.code, outcome.message);
}

async function afflicted(
  method: WireMethodOf,
  bytes: Buffer,
  injection: Injection | undefined,
  parts: ProxyParts,
): Promise<Outcome> {
  if (injection?.kind === 'refuse') return injected(injection.code, false);
  if (injection?.kind === 'straggle') {
    void injection.until
      .then(() => forward(method.path, bytes, parts))
      .then(({ code }) => injection.passedOn(code));
    return injected(injection.code, false);
  }
  if (injection?.kind === 'delay')
    await new Promise<void>((resolve) => void parts.clock.timer(injection.delayMs, resolve));
  const outcome = await forward(method.path, bytes, parts);
  return injection?.kind === 'lose' ? injected(injection.code, true) : outcome;
}

function injected(code: number, reachedDriver: boolean): Outcome {
  return { code, message: 'injected by mooring drive', bytes: undefined, reachedDriver };
}

async function forward(path: string, request: Buffer, parts: ProxyParts): Promise<Outcome> {
  const same = (bytes: Buffer): Buffer => bytes;
  // One inode for ever: the channel dials again by itself when the driver comes back.
  const socket = { path: parts.driver, inode: 0 } as SocketIdentity;
  const reply = await parts.remote({
    socket,
    method: { path, requestSerialize: same, responseDeserialize: same },
    request,
    deadlineMs: parts.deadlineMs,
  });
  if (reply.kind === 'ok') return { code: 0, message: '', bytes: reply.reply, reachedDriver: true };
  if (reply.kind === 'status') {
    return { code: reply.status, message: reply.message, bytes: undefined, reachedDriver: true };
  }
  const code = { unreachable: UNAVAILABLE, deadline: DEADLINE_EXCEEDED, undecodable: INTERNAL }[
    reply.because
  ];
  return { code, message: reply.message, bytes: undefined, reachedDriver: reply.because !== 'unreachable' };
}

function injectionText(injection: Injection): string {
  switch (injection.kind) {
    case 'delay':
      return `delayed by ${injection.delayMs} ms`;
    case 'refuse':
      return `refused with code ${injection.code} before the driver`;
    case 'straggle':
      return `given up with code ${injection.code}, and passed on later`;
    case 'lose':
      return `answer lost, code ${injection.code}`;
  }
}
