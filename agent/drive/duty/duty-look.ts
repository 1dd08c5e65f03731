/** Statistics and health: questions that change nothing, answered truthfully. */
import { join } from 'node:path';
import {
  NodeGetVolumeHealthRequest,
  NodeGetVolumeStatsRequest,
  NodeService,
  NodeServiceCapability_RPC_Type as Node,
  VolumeUsage_Unit as Unit,
} from '../../../plugins/csi/wire/generated/csi.ts';
import { type Duty, expectCode, expectOk } from './duty.ts';
import type { Life } from '../rig/life.ts';
import type { TestVolume } from '../rig/test-volume.ts';
import type { Notes } from '../oracle/verdict.ts';

async function stats(life: Life, notes: Notes): Promise<void> {
  if (!life.rig.facts.node.has(Node.GET_VOLUME_STATS))
    return notes.skip('the driver does not claim GET_VOLUME_STATS');
  const place = await life.published(notes);
  if (place === undefined) return;
  const { volume, target } = place;
  const answer = await statsAt(life, volume, target);
  if (!expectOk(notes, 'NodeGetVolumeStats', answer)) return;
  const { usage } = answer.reply;
  notes.expect(usage.length > 0, 'NodeGetVolumeStats said OK without any usage');
  for (const { unit, total, used, available } of usage) {
    const name = unit === Unit.BYTES ? 'bytes' : unit === Unit.INODES ? 'inodes' : `unit ${unit}`;
    if (unit !== Unit.BYTES && unit !== Unit.INODES) notes.fail(`a usage has unit ${unit}`);
    notes.expect(
      total >= 0n && used >= 0n && available >= 0n,
      `${name}: negative: ${[total, used, available].join(', ')}`,
    );
    if (total > 0n) notes.expect(used <= total, `${name}: ${used} of ${total} are used`);
  }
  if (!usage.some(({ unit, total }) => unit === Unit.BYTES && total > 0n))
    notes.remark('no total of bytes is given');
  if (volume.staging !== '') {
    const staged = await statsAt(life, volume, volume.staging);
    if (!staged.ok)
      notes.remark('no stats at the staging path; the specification allows any path of the volume');
  }
  const nowhere = await statsAt(life, volume, join(life.directory, 'nowhere'));
  expectCode(notes, 'NodeGetVolumeStats at a path that does not exist', nowhere, ['NOT_FOUND']);
  const elsewhere = await statsAt(life, volume, life.directory);
  if (elsewhere.ok) notes.remark('stats are given for a directory that is not the volume');
}

function statsAt({ rig }: Life, volume: TestVolume, volumePath: string) {
  const request = { volumeId: volume.id, volumePath, stagingTargetPath: volume.staging };
  return rig.client.call(NodeService.nodeGetVolumeStats, NodeGetVolumeStatsRequest.fromPartial(request));
}

const CLAIMS = [Node.VOLUME_CONDITION, Node.GET_VOLUME_HEALTH, Node.GET_STORAGE_HEALTH] as const;
const CAMEL_CASE = /^[A-Z][A-Za-z0-9]*$/;

async function health(life: Life, notes: Notes): Promise<void> {
  const { node } = life.rig.facts;
  if (!CLAIMS.some((one) => node.has(one))) return notes.skip('the driver claims no health capability');
  const place = await life.published(notes);
  if (place === undefined) return;
  const { volume, target } = place;
  if (node.has(Node.VOLUME_CONDITION)) {
    const answer = await statsAt(life, volume, target);
    if (expectOk(notes, 'NodeGetVolumeStats', answer)) {
      const condition = answer.reply.volumeCondition;
      if (condition === undefined) notes.remark('VOLUME_CONDITION is claimed, but no condition is given');
      else if (condition.abnormal)
        notes.remark(`a fresh volume is abnormal: ${condition.message.slice(0, 200)}`);
    }
  }
  if (node.has(Node.GET_VOLUME_HEALTH)) await volumeHealth(life, notes, volume, target);
  if (!node.has(Node.GET_STORAGE_HEALTH)) return;
  const storage = await life.rig.client.call(NodeService.nodeGetStorageHealth, { secrets: {} });
  if (!expectOk(notes, 'NodeGetStorageHealth', storage)) return;
  for (const { reason } of storage.reply.backendHealth) expectReason(notes, reason);
}

async function volumeHealth(life: Life, notes: Notes, volume: TestVolume, target: string): Promise<void> {
  const request = NodeGetVolumeHealthRequest.fromPartial({
    volumeId: volume.id,
    volumePublishPath: target,
    stagingTargetPath: volume.staging,
  });
  const answer = await life.rig.client.call(NodeService.nodeGetVolumeHealth, request);
  if (!expectOk(notes, 'NodeGetVolumeHealth', answer)) return;
  const found = answer.reply.volumeHealth;
  if (found === undefined) return;
  notes.expect(found.volumeId === volume.id, `asked for ${volume.id}, told about ${found.volumeId}`);
  const pairs = new Set(found.healthStatuses.map(({ status, reason }) => `${status} ${reason}`));
  notes.expect(pairs.size === found.healthStatuses.length, 'the same status and reason are told twice');
  for (const { status, reason } of found.healthStatuses) {
    expectReason(notes, reason);
    notes.remark(`a fresh volume has health status ${status} (${reason.slice(0, 64)})`);
  }
}

function expectReason(notes: Notes, reason: string): void {
  notes.expect(CAMEL_CASE.test(reason), `a reason must be one CamelCase word: "${reason.slice(0, 64)}"`);
}

export const LOOK_DUTIES: readonly Duty[] = [
  { name: 'stats', title: 'true statistics', source: 'A-068 S15-18', looksAtMounts: true, run: stats },
  { name: 'health', title: 'health and condition', source: 'A-074 A-075', looksAtMounts: true, run: health },
];
