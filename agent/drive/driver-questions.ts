/** What is asked of a driver before it is driven: whether it is ready, and what it says that it can do. */
import { numbersOf } from './oracle/oracle-nature.ts';
import {
  type Answer,
  answerText,
  codeOf,
  createDriverClient,
  type DriverClient,
} from './rig/driver-client.ts';
import { CLOCK, inodeOf, kindOf } from './rig/machine.ts';
import {
  insteadOfSocket,
  type Look,
  missing,
  type OnWait,
  type Patience,
  waitWithWords,
} from './rig/patience.ts';
import type { DriverFacts } from './rig/rig.ts';
import { fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import {
  ControllerService,
  IdentityService,
  NodeService,
  PluginCapability_Service_Type as Service,
} from '../../plugins/csi/wire/generated/csi.ts';
import type { GrpcRemote } from '../../plugins/csi/wire/grpc.ts';

const READY_CALL_MS = 2_000;

/** `onWait`: told of calls that take long. */
export function clientOf(
  remote: GrpcRemote,
  path: AbsolutePath,
  deadlineMs: number,
  onWait: OnWait,
): DriverClient {
  return createDriverClient({
    socket: () => path,
    inode: () => inodeOf(path),
    remote: remote.call,
    clock: CLOCK,
    deadlineMs,
    onWait,
  });
}

/** Answers GetPluginInfo and does not say "not ready" to Probe; a sentence when it does not come to that. */
export async function waitUntilReady(
  remote: GrpcRemote,
  endpoint: AbsolutePath,
  patience: Patience,
): Promise<string | undefined> {
  const client = clientOf(remote, endpoint, READY_CALL_MS, () => {});
  const look = async (): Promise<Look<true>> => {
    const kind = await kindOf(endpoint);
    if (kind !== 'socket') return missing(insteadOfSocket(kind));
    const info = await client.call(IdentityService.getPluginInfo, {});
    if (!info.ok) return missing(`GetPluginInfo: ${answerText(info)}`);
    const probe = await client.call(IdentityService.probe, {});
    const isReady = !probe.ok || probe.reply.ready !== false;
    return isReady ? { kind: 'there', value: true } : missing('Probe says not ready');
  };
  const seen = await waitWithWords(`the driver at ${endpoint}`, look, patience);
  return seen.kind === 'there' ? undefined : seen.because;
}

export async function readFacts(client: DriverClient): Promise<Result<DriverFacts>> {
  const unanswered = (method: string, answer: Answer<unknown>): Result<never> =>
    fail({ code: 'driver-failed', message: `${method}: ${answerText(answer)}`, effect: 'none' });
  const info = await client.call(IdentityService.getPluginInfo, {});
  if (!info.ok) return unanswered('GetPluginInfo', info);
  const plugin = await client.call(IdentityService.getPluginCapabilities, {});
  if (!plugin.ok) return unanswered('GetPluginCapabilities', plugin);
  const node = await client.call(NodeService.nodeGetCapabilities, {});
  if (!node.ok) return unanswered('NodeGetCapabilities', node);
  const here = await client.call(NodeService.nodeGetInfo, {});
  if (!here.ok) return unanswered('NodeGetInfo', here);
  const services = numbersOf(plugin.reply, 'service');
  const hasController = services.has(Service.CONTROLLER_SERVICE);
  const controller = hasController
    ? await client.call(ControllerService.controllerGetCapabilities, {})
    : undefined;
  // A driver is one name with several sockets: its identity says the same at each, whatever is served there.
  const isElsewhere = controller?.ok === false && controller.code === codeOf('UNIMPLEMENTED');
  if (controller?.ok === false && !isElsewhere) return unanswered('ControllerGetCapabilities', controller);
  const constrained = services.has(Service.VOLUME_ACCESSIBILITY_CONSTRAINTS);
  return ok({
    name: info.reply.name,
    vendorVersion: info.reply.vendorVersion,
    services,
    expansion: new Set(
      plugin.reply.capabilities.flatMap(({ type }) =>
        type?.$case === 'volumeExpansion' ? [type.value.type] : [],
      ),
    ),
    node: numbersOf(node.reply, 'rpc'),
    servesController: controller?.ok === true,
    controller: controller?.ok === true ? numbersOf(controller.reply, 'rpc') : new Set<number>(),
    nodeId: here.reply.nodeId,
    topology: constrained ? here.reply.accessibleTopology?.segments : undefined,
  });
}
