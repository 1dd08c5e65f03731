/** Expansion: what is said to have grown has grown in the kernel's eyes. */
import {
  ControllerExpandVolumeRequest,
  ControllerService,
  ControllerServiceCapability_RPC_Type as Controller,
  NodeExpandVolumeRequest,
  NodeService,
  NodeServiceCapability_RPC_Type as Node,
  PluginCapability_VolumeExpansion_Type as Expansion,
} from '../../../plugins/csi/wire/generated/csi.ts';
import { answerText, codeOf } from '../rig/driver-client.ts';
import { type Duty, expectOk } from './duty.ts';
import type { Life } from '../rig/life.ts';
import type { TestVolume } from '../rig/test-volume.ts';
import { fileSystemBytes } from '../rig/machine.ts';
import { attachesOf } from '../rig/rig.ts';
import type { Notes } from '../oracle/verdict.ts';

/** A file system spends some of its device on itself. */
const GROWN_PART_MIN = 70n;
const HUNDRED = 100n;

async function expand(life: Life, notes: Notes): Promise<void> {
  const { facts, options } = life.rig;
  const byNode = facts.node.has(Node.EXPAND_VOLUME);
  const byController = facts.controller.has(Controller.EXPAND_VOLUME);
  if (!byNode && !byController) return notes.skip('the driver claims no EXPAND_VOLUME');
  const offline = facts.expansion.has(Expansion.OFFLINE) && !facts.expansion.has(Expansion.ONLINE);
  const volume = await life.staged(notes);
  if (volume === undefined) return;
  const first = await life.newTarget();
  if (!expectOk(notes, 'NodePublishVolume', await life.publish(volume, { target: first }))) return;
  const size = volume.capacityBytes > 0n ? volume.capacityBytes : options.sizeBytes;
  if (offline) return afterOffline(life, notes, volume, first, size * 2n);
  await grow(life, notes, volume, { path: first, look: first, to: size * 2n, how: 'while it is published' });
  if (notes.failures.length > 0 || volume.staging === '') return;
  await life.unpublishAll();
  await grow(life, notes, volume, {
    path: volume.staging,
    look: volume.staging,
    to: size * 3n,
    how: 'before it is published',
  });
}

interface Growth {
  readonly path: string;
  readonly look: string;
  readonly to: bigint;
  readonly how: string;
}

async function grow(
  life: Life,
  notes: Notes,
  volume: TestVolume,
  { path, look, to, how }: Growth,
): Promise<void> {
  const before = await fileSystemBytes(look);
  const needed = await growController(life, notes, volume, to);
  if (needed === undefined) return;
  if (needed && life.rig.facts.node.has(Node.EXPAND_VOLUME)) {
    const answer = await growNode(life, volume, path, to);
    if (!answer.ok && answer.code === codeOf('FAILED_PRECONDITION')) {
      notes.remark(`${how} it cannot grow (${answerText(answer)}); it was staged anew`);
      return afterStagedAnew(life, notes, volume, { before, to });
    }
    if (!expectOk(notes, `NodeExpandVolume ${how}`, answer)) return;
    const { capacityBytes } = answer.reply;
    const enough = capacityBytes === 0n || capacityBytes >= to;
    notes.expect(enough, `NodeExpandVolume ${how}: asked for ${to} bytes, answered ${capacityBytes}`);
    const again = await growNode(life, volume, path, to);
    expectOk(notes, `NodeExpandVolume ${how}, the same call again`, again);
  }
  expectGrown(notes, how, { before, after: await fileSystemBytes(look), to, capacity: volume.capacityBytes });
}

/** FAILED_PRECONDITION: not while it is in use. Then it grows when it is set up the next time. */
async function afterStagedAnew(
  life: Life,
  notes: Notes,
  volume: TestVolume,
  { before, to }: { readonly before: bigint | undefined; readonly to: bigint },
): Promise<void> {
  await life.unpublishAll();
  if (volume.staging !== '') {
    expectOk(notes, 'NodeUnstageVolume', await life.unstage(volume));
    if (!expectOk(notes, 'NodeStageVolume', await life.stage(volume))) return;
  }
  const target = await life.newTarget();
  if (!expectOk(notes, 'NodePublishVolume', await life.publish(volume, { target }))) return;
  let after = await fileSystemBytes(target);
  if (before !== undefined && after !== undefined && after <= before) {
    expectOk(notes, 'NodeExpandVolume after it was staged anew', await growNode(life, volume, target, to));
    after = await fileSystemBytes(target);
  }
  expectGrown(notes, 'by being staged anew', { before, after, to, capacity: volume.capacityBytes });
  await life.unpublish(volume, target);
}

function expectGrown(
  notes: Notes,
  how: string,
  sizes: {
    readonly before: bigint | undefined;
    readonly after: bigint | undefined;
    readonly to: bigint;
    readonly capacity: bigint;
  },
): void {
  const { before, after, to, capacity } = sizes;
  if (before === undefined || after === undefined) return notes.fail(`the size cannot be read ${how}`);
  // A directory of a larger file system: its size says nothing about the volume.
  if (capacity > 0n && before > to) {
    return notes.remark('the file system is larger than the volume and shows nothing of its size');
  }
  const enough = after > before && after * HUNDRED >= to * GROWN_PART_MIN;
  notes.expect(
    enough,
    `expanded ${how} to ${to} bytes: OK, but the file system had ${before} bytes and has ${after}`,
  );
}

/** Is NodeExpandVolume needed? Undefined after a failure. */
async function growController(
  life: Life,
  notes: Notes,
  volume: TestVolume,
  to: bigint,
): Promise<boolean | undefined> {
  const { facts, client, options } = life.rig;
  if (!facts.controller.has(Controller.EXPAND_VOLUME)) return true;
  const request = ControllerExpandVolumeRequest.fromPartial({
    volumeId: volume.id,
    capacityRange: { requiredBytes: to, limitBytes: 0n },
    secrets: options.secrets.controllerExpand,
    volumeCapability: volume.capability,
  });
  const answer = await client.call(ControllerService.controllerExpandVolume, request);
  if (!expectOk(notes, 'ControllerExpandVolume', answer)) return undefined;
  const { capacityBytes, nodeExpansionRequired } = answer.reply;
  notes.expect(capacityBytes >= to, `ControllerExpandVolume to ${to} bytes answered ${capacityBytes}`);
  const impossible = nodeExpansionRequired && !facts.node.has(Node.EXPAND_VOLUME);
  notes.expect(!impossible, 'node_expansion_required, but the node has no EXPAND_VOLUME');
  return nodeExpansionRequired;
}

function growNode({ rig }: Life, volume: TestVolume, volumePath: string, to: bigint) {
  const request = NodeExpandVolumeRequest.fromPartial({
    volumeId: volume.id,
    volumePath,
    capacityRange: { requiredBytes: to, limitBytes: 0n },
    stagingTargetPath: volume.staging,
    volumeCapability: volume.capability,
    secrets: rig.options.secrets.expand,
  });
  return rig.client.call(NodeService.nodeExpandVolume, request);
}

/** OFFLINE only: the controller expands what is not in use. */
async function afterOffline(
  life: Life,
  notes: Notes,
  volume: TestVolume,
  target: string,
  to: bigint,
): Promise<void> {
  const before = await fileSystemBytes(target);
  await life.unpublish(volume, target);
  if (volume.staging !== '') await life.unstage(volume);
  if (attachesOf(life.rig)) await life.detach(volume);
  const needed = await growController(life, notes, volume, to);
  if (needed === undefined) return;
  if (attachesOf(life.rig) && !expectOk(notes, 'ControllerPublishVolume', await life.attach(volume))) return;
  if (volume.staging !== '' && !expectOk(notes, 'NodeStageVolume', await life.stage(volume))) return;
  const again = await life.newTarget();
  if (!expectOk(notes, 'NodePublishVolume', await life.publish(volume, { target: again }))) return;
  if (needed && life.rig.facts.node.has(Node.EXPAND_VOLUME))
    expectOk(notes, 'NodeExpandVolume', await growNode(life, volume, again, to));
  const after = await fileSystemBytes(again);
  expectGrown(notes, 'offline', { before, after, to, capacity: volume.capacityBytes });
}

export const EXPAND_DUTY: Duty = {
  name: 'expand',
  title: 'grows, and the kernel sees it',
  source: 'A-069 A-070 A-072 S22',
  looksAtMounts: true,
  run: expand,
};
