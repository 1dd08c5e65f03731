/** Who the driver says it is, to us and to a registry, and whether it stays with that. */
import {
  ControllerServiceCapability_RPC_Type as Controller,
  ControllerService,
  IdentityService,
  NodeService,
  NodeServiceCapability_RPC_Type as Node,
  PluginCapability_Service_Type as Service,
} from '../../../plugins/csi/wire/generated/csi.ts';
import { topologyBreach } from '../../../plugins/csi/driver/topology-label.ts';
import { isDriverName } from '../../../plugins/volume.ts';
import { type Duty, expectOk } from './duty.ts';
import type { Life } from '../rig/life.ts';
import { mountsAt, readMounts } from '../rig/machine.ts';
import { numbersOf } from '../oracle/oracle-nature.ts';
import { stableJson } from '../oracle/oracle-history.ts';
import type { Notes } from '../oracle/verdict.ts';

const VENDOR_VERSION_BYTES_MAX = 128;
const NODE_ID_BYTES_MAX = 256;
const NODE_ID_BYTES_ADVISED_MAX = 128;
/** What csi-sanity asks for beyond the specification. */
const SANITY_NAME = /^[a-zA-Z][a-zA-Z0-9.-]*[a-zA-Z]$/;

async function identity({ rig: { client } }: Life, notes: Notes): Promise<void> {
  const info = await client.call(IdentityService.getPluginInfo, {});
  if (!expectOk(notes, 'GetPluginInfo', info)) return;
  const { name, vendorVersion } = info.reply;
  notes.expect(isDriverName(name), `the name "${name}" is not in domain notation of at most 63 characters`);
  if (!SANITY_NAME.test(name)) notes.remark(`csi-sanity refuses the name "${name}": a letter at both ends`);
  notes.expect(vendorVersion !== '', 'vendor_version is empty, and it is required');
  const bytes = Buffer.byteLength(vendorVersion);
  notes.expect(bytes <= VENDOR_VERSION_BYTES_MAX, `vendor_version has ${bytes} bytes, 128 are allowed`);
  const again = await client.call(IdentityService.getPluginInfo, {});
  if (expectOk(notes, 'GetPluginInfo again', again))
    notes.expect(
      stableJson(again.reply) === stableJson(info.reply),
      'GetPluginInfo answers something else each time',
    );
  const probe = await client.call(IdentityService.probe, {});
  if (expectOk(notes, 'Probe', probe))
    notes.expect(probe.reply.ready !== false, 'Probe says not ready, though it said ready before');
  const plugin = await client.call(IdentityService.getPluginCapabilities, {});
  if (expectOk(notes, 'GetPluginCapabilities', plugin))
    remarkUnknown(notes, 'service', plugin.reply, Service);
}

function remarkUnknown(
  notes: Notes,
  kind: 'service' | 'rpc',
  reply: Parameters<typeof numbersOf>[0],
  known: Readonly<Record<string, number>>,
): void {
  const numbers = new Set(Object.values(known).filter((one) => one > 0));
  for (const number of numbersOf(reply, kind)) {
    if (number === 0) notes.remark('a capability of type UNKNOWN is claimed');
    else if (!numbers.has(number))
      notes.remark(`unknown capability ${number} (orchestrators must ignore it)`);
  }
}

async function nodeInfo({ rig: { client, facts } }: Life, notes: Notes): Promise<void> {
  const info = await client.call(NodeService.nodeGetInfo, {});
  if (!expectOk(notes, 'NodeGetInfo', info)) return;
  const { nodeId, maxVolumesPerNode, accessibleTopology } = info.reply;
  const bytes = Buffer.byteLength(nodeId);
  notes.expect(nodeId !== '', 'node_id is empty');
  notes.expect(bytes <= NODE_ID_BYTES_MAX, `node_id has ${bytes} bytes, ${NODE_ID_BYTES_MAX} are allowed`);
  if (bytes > NODE_ID_BYTES_ADVISED_MAX) notes.remark(`node_id has ${bytes} bytes, 128 are advised`);
  notes.expect(maxVolumesPerNode >= 0n, `max_volumes_per_node is ${maxVolumesPerNode}`);
  const segments = Object.entries(accessibleTopology?.segments ?? {});
  const constrained = facts.services.has(Service.VOLUME_ACCESSIBILITY_CONSTRAINTS);
  notes.expect(
    !constrained || segments.length > 0,
    'VOLUME_ACCESSIBILITY_CONSTRAINTS, but no accessible_topology',
  );
  const keys = new Set(segments.map(([key]) => key.toLowerCase()));
  notes.expect(keys.size === segments.length, 'topology keys differ by case only');
  const breach = topologyBreach(accessibleTopology?.segments ?? {});
  notes.expect(breach === undefined, breach ?? '');
  const again = await client.call(NodeService.nodeGetInfo, {});
  if (expectOk(notes, 'NodeGetInfo again', again))
    notes.expect(again.reply.nodeId === nodeId, `node_id was "${nodeId}", then "${again.reply.nodeId}"`);
}

/** the same version has the same capabilities, so that they may be kept. */
async function capabilities({ rig }: Life, notes: Notes): Promise<void> {
  const ask = async (): Promise<string | undefined> => {
    const node = await rig.client.call(NodeService.nodeGetCapabilities, {});
    if (!expectOk(notes, 'NodeGetCapabilities', node)) return undefined;
    remarkUnknown(notes, 'rpc', node.reply, Node);
    if (!rig.facts.servesController) return JSON.stringify([...numbersOf(node.reply, 'rpc')].sort());
    const controller = await rig.client.call(ControllerService.controllerGetCapabilities, {});
    if (!expectOk(notes, 'ControllerGetCapabilities', controller)) return undefined;
    remarkUnknown(notes, 'rpc', controller.reply, Controller);
    return JSON.stringify([node.reply, controller.reply].map((one) => [...numbersOf(one, 'rpc')].sort()));
  };
  const first = await ask();
  const second = await ask();
  notes.expect(first === second, 'the capabilities are others the second time');
  if (rig.driver === undefined || first === undefined) return;
  await rig.driver.kill();
  await rig.driver.start();
  const late = await rig.untilReady();
  if (late !== undefined) return notes.fail(`after a restart: ${late}`);
  const third = await ask();
  notes.expect(first === third, 'after a restart of the same version the capabilities are others');
}

/** what the driver mounts must be seen where it is used. */
async function propagation(life: Life, notes: Notes): Promise<void> {
  if (life.rig.driver !== undefined)
    return notes.skip('the driver runs in the mount namespace of this program');
  const place = await life.published(notes);
  if (place === undefined || (await mountsAt(place.target)).length > 0) return;
  const receives = await receivesMounts(life.directory);
  if (receives) {
    notes.remark('nothing is mounted at the target, though mounts of others would be seen here');
    return;
  }
  notes.fail(
    'the driver said OK, but its mount is not seen here: the directory is on no shared mount. ' +
      'Make it one where the driver runs (mount --make-rshared), and name it with --directory',
  );
}

/** Is the mount that carries the path a slave of a shared one? */
export async function receivesMounts(path: string): Promise<boolean> {
  const carriers = (await readMounts()).filter(({ target }) => {
    return target === '/' || path === target || path.startsWith(`${target}/`);
  });
  const longest = carriers.reduce((length, { target }) => Math.max(length, target.length), 0);
  const carrier = carriers.filter(({ target }) => target.length === longest).at(-1);
  return carrier?.propagation.some((one) => one.startsWith('master:') || one.startsWith('shared:')) ?? false;
}

const plain = { looksAtMounts: false } as const;

export const IDENTITY_DUTIES: readonly Duty[] = [
  { name: 'identity', title: 'says who it is', source: 'A-006 A-009 S25-27', ...plain, run: identity },
  { name: 'node-info', title: 'says what node this is', source: 'A-050 A-051 S2', ...plain, run: nodeInfo },
  {
    name: 'capabilities',
    title: 'capabilities that may be kept',
    source: 'A-007 A-011 S1',
    ...plain,
    run: capabilities,
  },
  { name: 'propagation', title: 'mounts seen on the node', source: 'A-004', ...plain, run: propagation },
];
