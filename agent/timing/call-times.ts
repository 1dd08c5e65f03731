/** What CSI calls of this node take, by the kubelet's name (package `csi` of pkg/volume). */
import type { Clock, Host } from '../../mount/host.ts';
import type { RemoteCall, RemoteReply } from '../../mount/remote-call.ts';
import { isDriverName } from '../../plugins/volume.ts';
import { createHistogram, STORAGE_BOUNDS } from './histogram.ts';

export interface CallTimes {
  /** The same calls, counted from now on. */
  timed(call: Host['call']): Host['call'];
  text(): string;
}

/** As `grpc/codes` of Go spells what the specification of gRPC numbers. */
const STATUS_NAMES = [
  'OK',
  'Canceled',
  'Unknown',
  'InvalidArgument',
  'DeadlineExceeded',
  'NotFound',
  'AlreadyExists',
  'PermissionDenied',
  'ResourceExhausted',
  'FailedPrecondition',
  'Aborted',
  'OutOfRange',
  'Unimplemented',
  'Internal',
  'Unavailable',
  'DataLoss',
  'Unauthenticated',
] as const;

/** What gRPC's own clients make of what is no answer. */
const BROKEN_NAMES = { unreachable: 'Unavailable', deadline: 'DeadlineExceeded', undecodable: 'Internal' };

const CSI_METHOD = /^\/csi\.v1\.[A-Za-z]+\/[A-Za-z]+$/;
const PLUGIN_INFO = '/csi.v1.Identity/GetPluginInfo';
/** A node has fewer sockets of drivers than it looks at. */
const SOCKETS_MAX = 1_024;

/**
 * A driver is called as it has said last at its socket; calls to one that has not said so yet are not counted.
 * Guarantees: nobody waits longer for an answer because it is counted.
 */
export function createCallTimes(clock: Pick<Clock, 'nowMs'>): CallTimes {
  const times = createHistogram({
    name: 'csi_operations_seconds',
    help: 'What a CSI call took, in seconds, with the gRPC status that it ended with.',
    bounds: STORAGE_BOUNDS,
  });
  const names = new Map<string, string>();

  function learn(socket: string, reply: unknown): void {
    const name: unknown = Reflect.get(Object(reply), 'name');
    if (typeof name !== 'string' || !isDriverName(name)) return;
    if (names.has(socket) || names.size < SOCKETS_MAX) names.set(socket, name);
  }

  function note(
    { socket, method }: Pick<RemoteCall<never, never>, 'socket' | 'method'>,
    reply: RemoteReply<unknown>,
    sinceMs: number,
  ): void {
    if (!CSI_METHOD.test(method.path)) return;
    if (method.path === PLUGIN_INFO && reply.kind === 'ok') learn(socket.path, reply.reply);
    const driver = names.get(socket.path);
    if (driver === undefined) return;
    const labels = {
      driver_name: driver,
      grpc_status_code: statusName(reply),
      method_name: method.path,
      migrated: 'false',
    };
    times.observe(labels, (clock.nowMs() - sinceMs) / 1_000);
  }

  return {
    timed(call) {
      return (request) => {
        const sinceMs = clock.nowMs();
        const answer = call(request);
        void answer.then((reply) => note(request as never, reply, sinceMs));
        return answer;
      };
    },
    text: times.text,
  };
}

/** A number that gRPC does not have is somebody's invention. */
function statusName(reply: RemoteReply<unknown>): string {
  if (reply.kind === 'ok') return STATUS_NAMES[0];
  if (reply.kind === 'broken') return BROKEN_NAMES[reply.because];
  return STATUS_NAMES[reply.status] ?? 'Unknown';
}
