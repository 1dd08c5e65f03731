/** One RPC about one volume: made when its turn comes, and its answer put in our words. */
import { type Failure, type FailureCode, fail, ok, type Result } from '../../../mount/failure.ts';
import type { Host } from '../../../mount/host.ts';
import type { RemoteMethod } from '../../../mount/remote-call.ts';
import type { VolumeCall } from '../../plugin.ts';
import type { SecretData } from '../../secret/sensitive.ts';
import { doubtful, noLongerWanted } from '../../steps.ts';
import type { CsiVolumeSpec } from '../../volume.ts';
import type { CallLanes, LaneTurn, RunningCall, Sharing } from './volume-call-queue.ts';
import type { DriverInstance, DriverRegistry } from '../driver/driver.ts';
import { hiddenFrom } from './hidden-words.ts';
import type { SecretMemory } from './secret-memory.ts';
import { type CallContext, failureOf, isUnreachable, methodName } from '../wire/status.ts';

export interface VolumeRpcParts {
  readonly host: Pick<Host, 'call'>;
  readonly drivers: Pick<DriverRegistry, 'get'> & { suspect(driver: string): void };
  readonly lanes: CallLanes;
  readonly deadlineMs: number;
  /** What the driver was given in earlier calls. */
  readonly memory: Pick<SecretMemory, 'of' | 'knows'>;
}

/** The request is built when the call is made, from the driver as it is then. */
export interface Rpc<Request, Reply> {
  readonly method: RemoteMethod<Request, Reply>;
  readonly build: (driver: DriverInstance) => Result<Request>;
  readonly direction: CallContext['direction'];
  readonly sharing: Sharing;
  /** What a publish sends beside the secrets of the volume; taken out of what the driver says, as those are. */
  readonly tokens?: SecretData | undefined;
  /**
   * Asked when its turn has come: does the rung below still hold? `isDisturbed`: since it got in line a call of the
   * volume failed.
   */
  readonly recheck?: (isDisturbed: boolean) => Promise<Result<void>>;
  /** gRPC status numbers that mean something else for this method than for others. */
  readonly codes?: ReadonlyMap<number, FailureCode>;
}

type CallFacts = Pick<VolumeCall, 'stillWanted' | 'secrets' | 'facts' | 'step'>;

/** Makes the call when its turn comes; `no-longer-wanted` when the world has moved on by then. */
export type VolumeRpc = <Request, Reply>(
  spec: CsiVolumeSpec,
  call: CallFacts,
  rpc: Rpc<Request, Reply>,
) => Promise<Result<Reply>>;

/** Guarantees: one call in flight per volume, with nothing of ours between the end of one and the start of the next. */
export function createVolumeRpc({ host, drivers, lanes, deadlineMs, memory }: VolumeRpcParts): VolumeRpc {
  /** Asks in the lane. Assumes: nothing the answer depends on was read before. */
  async function ask<Request, Reply>(
    spec: CsiVolumeSpec,
    call: CallFacts,
    rpc: Rpc<Request, Reply>,
  ): Promise<Result<Reply>> {
    if (!call.stillWanted()) return noLongerWanted();
    const driver = drivers.get(spec.driver);
    if (driver === undefined) return notRegistered(spec.driver);
    const request = rpc.build(driver);
    if (!request.ok) return request;
    const { method } = rpc;
    const name = methodName(method.path);
    call.step({ kind: 'called', rpc: name, deadlineMs });
    const reply = await host.call({ socket: driver.endpoint, method, request: request.value, deadlineMs });
    call.step({ kind: 'verifying', rpc: name });
    if (reply.kind === 'ok') return ok(reply.reply);
    if (isUnreachable(reply)) drivers.suspect(spec.driver);
    const failure = failureOf(reply, {
      driver: spec.driver,
      method: name,
      direction: rpc.direction,
      ...hiddenFrom(memory, { ...call, spec }, rpc.tokens),
    });
    const code = reply.kind === 'status' ? rpc.codes?.get(reply.status) : undefined;
    return fail(code === undefined ? failure : { ...failure, code });
  }

  return async (spec, call, rpc) => {
    const ground = lanes.disturbances(spec.id);
    const turn: LaneTurn = {
      name: methodName(rpc.method.path),
      onQueued: (behind) => call.step({ kind: 'queued', behind }),
    };
    const askOnGround = async () => {
      call.step({ kind: 'working' });
      const holds = await rpc.recheck?.(lanes.disturbances(spec.id) !== ground);
      return holds?.ok === false ? holds : ask(spec, call, rpc);
    };
    let hadCompany = false;
    const once = async (own: RunningCall) => {
      const result = await askOnGround();
      if (!result.ok) lanes.disturb(spec.id);
      if (rpc.sharing === 'shared' && isBusy(result)) lanes.serialise(spec.id);
      ({ hadCompany } = own);
      return result;
    };
    const first = await lanes.run(spec.id, rpc.sharing, once, turn);
    if (!hadCompany || !isBusy(first)) return first;
    // ABORTED means "another call is pending": alone in the lane there is none of ours. Whatever the second
    // call says, the first one may still take effect.
    return doubtful(await lanes.run(spec.id, 'alone', askOnGround, turn));
  };
}

function isBusy(result: Result<unknown>): boolean {
  return !result.ok && result.failure.code === 'driver-busy';
}

/** The driver does not know the volume: of a teardown that is success if the kernel agrees (GR-05). */
export function mayBeGone(failure: Failure): boolean {
  return failure.code === 'driver-not-found';
}

export function notRegistered(driver: string): Result<never> {
  const message = `driver ${driver} is not registered`;
  return fail({ code: 'driver-not-registered', message, effect: 'none', blocker: driver });
}
