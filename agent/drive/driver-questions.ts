/** What is asked of a driver before it is driven: whether it is ready, and what it says that it can do. */
import { numbersOf } from './oracle/oracle-nature.ts';
import type { DriverProcess } from './rig/driver-child.ts';
import {
  type Answer,
  answerText,
  codeOf,
  createDriverClient,
  type DriverClient,
} from './rig/driver-client.ts';
import { CLOCK, inodeOf, kindOf, pause } from './rig/machine.ts';
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

const READY_MS_MAX = 120_000;
const READY_LOOK_MS = 20;
const READY_CALL_MS = 2_000;

export function clientOf(remote: GrpcRemote, path: AbsolutePath, deadlineMs: number): DriverClient {
  return createDriverClient({
    socket: () => path,
    inode: () => inodeOf(path),
    remote: remote.call,
    clock: CLOCK,
    deadlineMs,
  });
}

/** Answers GetPluginInfo and does not say "not ready" to Probe; a sentence when it does not come to that. */
export async function waitUntilReady(
  remote: GrpcRemote,
  endpoint: AbsolutePath,
  driver: DriverProcess | undefined,
): Promise<string | undefined> {
  const client = clientOf(remote, endpoint, READY_CALL_MS);
  const untilMs = CLOCK.nowMs() + READY_MS_MAX;
  let last = 'there is no socket';
  while (CLOCK.nowMs() < untilMs) {
    if ((await kindOf(endpoint)) === 'socket') {
      const info = await client.call(IdentityService.getPluginInfo, {});
      const probe = info.ok ? await client.call(IdentityService.probe, {}) : undefined;
      if (info.ok && !(probe?.ok === true && probe.reply.ready === false)) return undefined;
      last = info.ok ? 'Probe says not ready' : `GetPluginInfo: ${answerText(info)}`;
    }
    if (driver !== undefined && driver.pid() === undefined) return `its process ended (${last})`;
    await pause(READY_LOOK_MS);
  }
  return `not ready within ${READY_MS_MAX / 1_000} s (${last})`;
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
