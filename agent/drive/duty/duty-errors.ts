/** Wrong calls get the code the specification names, and no message holds a secret. */
import { join } from 'node:path';
import {
  NodeExpandVolumeRequest,
  NodeGetVolumeStatsRequest,
  NodePublishVolumeRequest,
  NodeService,
  NodeServiceCapability_RPC_Type as Node,
  NodeStageVolumeRequest,
  NodeUnpublishVolumeRequest,
  NodeUnstageVolumeRequest,
} from '../../../plugins/csi/wire/generated/csi.ts';
import { type Answer, type CodeName, codeOf } from '../rig/driver-client.ts';
import { type Duty, expectCode } from './duty.ts';
import type { Life } from '../rig/life.ts';
import type { TestVolume } from '../rig/test-volume.ts';
import { capabilityOf, createsOf, stagesOf } from '../rig/rig.ts';
import type { Notes } from '../oracle/verdict.ts';

/** A volume that is not there, and what a driver may say to that. */
interface Unknown {
  readonly volumeId: string;
  readonly codes: readonly CodeName[];
}

/** One that was there: of a handle that it never gave out a driver may as well say that the field is invalid. */
async function unknownVolume(life: Life, duty: string): Promise<Unknown> {
  const { rig } = life;
  const made = createsOf(rig)
    ? await life.create(`mooring-drive-${rig.runId}-${duty}-gone`, capabilityOf(rig, 'mount'))
    : undefined;
  const volumeId = made?.ok === true ? made.reply.volume?.volumeId : undefined;
  if (volumeId === undefined || volumeId === '')
    return { volumeId: 'mooring-drive-no-such-volume', codes: ['NOT_FOUND', 'INVALID_ARGUMENT'] };
  await life.forget(volumeId);
  return { volumeId, codes: ['NOT_FOUND'] };
}

async function errors(life: Life, notes: Notes): Promise<void> {
  const volume = await life.staged(notes);
  if (volume === undefined) return;
  const target = await life.newTarget();
  const { node } = life.rig.facts;
  const unknown = await unknownVolume(life, 'errors');
  if (stagesOf(life.rig)) await stageErrors(life, notes, volume, unknown);
  await publishErrors(life, notes, { volume, target, unknown });
  if (node.has(Node.GET_VOLUME_STATS)) {
    await lookErrors(notes, 'NodeGetVolumeStats', { volume, target, unknown }, (volumeId, volumePath) =>
      life.rig.client.call(
        NodeService.nodeGetVolumeStats,
        NodeGetVolumeStatsRequest.fromPartial({ volumeId, volumePath, stagingTargetPath: volume.staging }),
      ),
    );
  }
  if (node.has(Node.EXPAND_VOLUME)) {
    await lookErrors(notes, 'NodeExpandVolume', { volume, target, unknown }, (volumeId, volumePath) =>
      life.rig.client.call(
        NodeService.nodeExpandVolume,
        NodeExpandVolumeRequest.fromPartial({ volumeId, volumePath, volumeCapability: volume.capability }),
      ),
    );
  }
}

interface Wrong {
  readonly volume: TestVolume;
  readonly target: string;
  readonly unknown: Unknown;
}

async function lookErrors(
  notes: Notes,
  method: string,
  { volume, target, unknown }: Wrong,
  call: (volumeId: string, volumePath: string) => Promise<Answer<unknown>>,
): Promise<void> {
  expectCode(notes, `${method} without volume_id`, await call('', target), INVALID);
  expectCode(notes, `${method} without volume_path`, await call(volume.id, ''), INVALID);
  const asked = await call(unknown.volumeId, target);
  expectCode(notes, `${method} of an unknown volume`, asked, unknown.codes);
}

const INVALID: readonly CodeName[] = ['INVALID_ARGUMENT'];
const NO_VOLUME = { volumeId: '' };

/** Straight to the client: none of these calls sets anything up that would have to be taken down. */
async function stageErrors({ rig }: Life, notes: Notes, volume: TestVolume, unknown: Unknown): Promise<void> {
  const { id: volumeId, capability: volumeCapability, staging: stagingTargetPath } = volume;
  const { context: volumeContext, publishContext } = volume;
  const stage = (changed: object) => {
    const good = { volumeId, stagingTargetPath, volumeCapability, volumeContext, publishContext };
    const request = NodeStageVolumeRequest.fromPartial({ ...good, ...changed });
    return rig.client.call(NodeService.nodeStageVolume, request);
  };
  const unstage = (changed: object) => {
    const request = NodeUnstageVolumeRequest.fromPartial({ volumeId, stagingTargetPath, ...changed });
    return rig.client.call(NodeService.nodeUnstageVolume, request);
  };
  const nowhere = { stagingTargetPath: '' };
  expectCode(notes, 'NodeStageVolume without volume_id', await stage(NO_VOLUME), INVALID);
  expectCode(notes, 'NodeStageVolume without a path', await stage(nowhere), INVALID);
  const bare = await stage({ volumeCapability: undefined });
  expectCode(notes, 'NodeStageVolume without volume_capability', bare, INVALID);
  const { volumeId: unknownId, codes } = unknown;
  const staged = await stage({ volumeId: unknownId });
  expectCode(notes, 'NodeStageVolume of an unknown volume', staged, codes);
  expectCode(notes, 'NodeUnstageVolume without volume_id', await unstage(NO_VOLUME), INVALID);
  expectCode(notes, 'NodeUnstageVolume without a path', await unstage(nowhere), INVALID);
  const unstaged = await unstage({ volumeId: unknownId });
  expectCode(notes, 'NodeUnstageVolume of an unknown volume', unstaged, [...codes, 'OK']);
}

async function publishErrors(life: Life, notes: Notes, { volume, target, unknown }: Wrong): Promise<void> {
  const { client } = life.rig;
  const { id: volumeId, capability: volumeCapability, staging: stagingTargetPath } = volume;
  const { context: volumeContext, publishContext } = volume;
  const publish = (changed: object) => {
    const paths = { stagingTargetPath, targetPath: target };
    const good = { volumeId, ...paths, volumeCapability, volumeContext, publishContext };
    const request = NodePublishVolumeRequest.fromPartial({ ...good, ...changed });
    return client.call(NodeService.nodePublishVolume, request);
  };
  const unpublish = (changed: object) => {
    const request = NodeUnpublishVolumeRequest.fromPartial({ volumeId, targetPath: target, ...changed });
    return client.call(NodeService.nodeUnpublishVolume, request);
  };
  if (stagesOf(life.rig)) {
    const unstaged = await publish({ stagingTargetPath: '' });
    const what = 'NodePublishVolume without staging_target_path';
    if (!unstaged.ok && unstaged.code === codeOf('INVALID_ARGUMENT'))
      notes.remark(`${what}: INVALID_ARGUMENT, the specification says FAILED_PRECONDITION`);
    else expectCode(notes, what, unstaged, ['FAILED_PRECONDITION']);
  }
  const nowhere = { targetPath: '' };
  expectCode(notes, 'NodePublishVolume without volume_id', await publish(NO_VOLUME), INVALID);
  expectCode(notes, 'NodePublishVolume without a target', await publish(nowhere), INVALID);
  const bare = await publish({ volumeCapability: undefined });
  expectCode(notes, 'NodePublishVolume without volume_capability', bare, INVALID);
  const { volumeId: unknownId, codes } = unknown;
  const published = await publish({ volumeId: unknownId });
  expectCode(notes, 'NodePublishVolume of an unknown volume', published, codes);
  expectCode(notes, 'NodeUnpublishVolume without volume_id', await unpublish(NO_VOLUME), INVALID);
  expectCode(notes, 'NodeUnpublishVolume without a target', await unpublish(nowhere), INVALID);
  const unpublished = await unpublish({ volumeId: unknownId });
  expectCode(notes, 'NodeUnpublishVolume of an unknown volume', unpublished, [...codes, 'OK']);
  await life.unpublish(volume, target);
}

/** Calls that must fail, each with a secret nobody has seen before; what the driver says is searched for it. */
async function secrets(life: Life, notes: Notes): Promise<void> {
  const { rig } = life;
  const canary = `canary-${Math.floor(rig.random() * 2 ** 48).toString(36)}-${rig.runId}`;
  const carried = { username: `${canary}-user`, password: canary };
  const volume = await life.volume(notes);
  if (volume === undefined) return;
  const nowhere = join(life.directory, 'nowhere', 'mount');
  const { volumeId } = await unknownVolume(life, 'secrets');
  const unknown: TestVolume = { ...volume, id: volumeId };
  const odd = capabilityOf(rig, 'mount');
  if (odd.accessType?.$case === 'mount') odd.accessType.value.fsType = 'mooring-no-such-fs';
  if (stagesOf(rig)) {
    await life.stage(unknown, { secrets: carried });
    await life.stage(volume, { secrets: carried, path: nowhere });
    await life.stage(volume, { secrets: carried, capability: odd });
    await life.unstage(volume);
  }
  await life.publish(unknown, { target: nowhere, secrets: carried });
  await life.publish(volume, { target: nowhere, staging: nowhere, secrets: carried });
  await life.unpublish(volume, nowhere);
  if (rig.facts.node.has(Node.EXPAND_VOLUME)) {
    const request = { volumeId, volumePath: nowhere, secrets: carried };
    await rig.client.call(NodeService.nodeExpandVolume, NodeExpandVolumeRequest.fromPartial(request));
  }
  for (const method of rig.client.leaks)
    notes.fail(`${method}: the error message holds a secret of its request`);
  if (rig.driver?.output().includes(canary) === true) notes.fail('the driver prints a secret to its log');
}

export const ERROR_DUTIES: readonly Duty[] = [
  {
    name: 'errors',
    title: 'the right code for wrong calls',
    source: 'A.3 S3-21',
    looksAtMounts: false,
    run: errors,
  },
  { name: 'secrets', title: 'tells nobody its secrets', source: 'A-038', looksAtMounts: false, run: secrets },
];
