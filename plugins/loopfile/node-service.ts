/** CSI Node: what happens to a volume on this node. Each call checks its fields, then works alone on its volume. */
import { statfs } from 'node:fs/promises';
import {
  NodeServiceCapability_RPC_Type as Rpc,
  type NodeService,
  type VolumeUsage,
  VolumeUsage_Unit as Unit,
} from '../csi/wire/generated/csi.ts';
import type { GrpcImplementation } from '../csi/wire/grpc-service.ts';
import { isReadOnly, requireAccess } from './device/capability.ts';
import { growMounted } from './device/file-system.ts';
import { deviceBytes, type LoopDevice, refreshLoopDevice } from './device/loop-device.ts';
import type { Pool, Volume } from './pool/pool.ts';
import type { Publishing } from './publishing.ts';
import { requirePath, requireVolumeId } from './request-fields.ts';
import type { StagedVolume, Staging } from './staging.ts';
import { status } from './device/status.ts';
import type { VolumeLocks } from './volume-locks.ts';
import type { VolumeId } from './pool/volume-record.ts';

export interface NodeParts {
  readonly nodeId: string;
  /** `topology.<driver>/node` */
  readonly topologyKey: string;
  /** Volumes must be published to this node by the controller first (`--attach`). */
  readonly attach: boolean;
  readonly pool: Pool;
  readonly staging: Staging;
  readonly publishing: Publishing;
  readonly locks: VolumeLocks;
}

const CAPABILITIES = [
  Rpc.STAGE_UNSTAGE_VOLUME,
  Rpc.GET_VOLUME_STATS,
  Rpc.EXPAND_VOLUME,
  Rpc.SINGLE_NODE_MULTI_WRITER,
] as const;

export function createNodeService(parts: NodeParts): GrpcImplementation<typeof NodeService> {
  const { nodeId, topologyKey, pool, staging, publishing, locks } = parts;
  return {
    nodeGetInfo: async () => ({
      nodeId,
      maxVolumesPerNode: 0n,
      accessibleTopology: { segments: { [topologyKey]: nodeId } },
    }),

    nodeGetCapabilities: async () => ({
      capabilities: CAPABILITIES.map((type) => ({ type: { $case: 'rpc', value: { type } } })),
    }),

    nodeStageVolume: async ({ volumeId, stagingTargetPath, volumeCapability }) => {
      const id = requireVolumeId(volumeId);
      const path = requirePath('staging_target_path', stagingTargetPath);
      const access = requireAccess(volumeCapability);
      await locks.exclusively(id, async () => {
        const volume = await pool.get(id);
        requireAttachment(parts, volume);
        await staging.stage(volume, path, access);
      });
      return {};
    },

    nodeUnstageVolume: async ({ volumeId, stagingTargetPath }) => {
      const id = requireVolumeId(volumeId);
      const path = requirePath('staging_target_path', stagingTargetPath);
      await locks.exclusively(id, () => staging.unstage(id, path));
      return {};
    },

    nodePublishVolume: async ({ volumeId, stagingTargetPath, targetPath, volumeCapability, readonly }) => {
      const id = requireVolumeId(volumeId);
      const target = requirePath('target_path', targetPath);
      const access = requireAccess(volumeCapability);
      if (stagingTargetPath === '') throw status('FAILED_PRECONDITION', 'staging_target_path is missing');
      const stagingPath = requirePath('staging_target_path', stagingTargetPath);
      await locks.exclusively(id, async () =>
        publishing.publish(await pool.get(id), { stagingPath, target, access, readOnly: readonly }),
      );
      return {};
    },

    nodeUnpublishVolume: async ({ volumeId, targetPath }) => {
      const id = requireVolumeId(volumeId);
      const target = requirePath('target_path', targetPath);
      await locks.exclusively(id, () => publishing.unpublish(id, target));
      return {};
    },

    ...usage(parts),
  };
}

/** How full a volume is, and that it grows. */
function usage(parts: NodeParts): GrpcImplementation<typeof NodeService> {
  return {
    nodeGetVolumeStats: async ({ volumeId, volumePath }) => {
      const id = requireVolumeId(volumeId);
      if (volumePath === '') throw status('INVALID_ARGUMENT', 'volume_path is missing');
      const { staged, device } = await requirePlace(parts, id, volumePath);
      const usage =
        staged.access.kind === 'mount' ? await fileSystemUsage(staged.path) : await deviceUsage(device);
      return { usage, volumeCondition: undefined };
    },

    nodeExpandVolume: async ({ volumeId, volumePath, capacityRange }) => {
      const id = requireVolumeId(volumeId);
      if (volumePath === '') throw status('INVALID_ARGUMENT', 'volume_path is missing');
      return parts.locks.exclusively(id, async () => {
        const { volume, staged, device } = await requirePlace(parts, id, volumePath);
        if (capacityRange !== undefined && Number(capacityRange.requiredBytes) > volume.sizeBytes) {
          // Not OUT_OF_RANGE, which is for good: somebody else has to do something first, and then it can be done.
          throw status(
            'ABORTED',
            `${id} has ${volume.sizeBytes} bytes: ControllerExpandVolume comes first, or by hand ` +
              `mooring-loopfile grow --name ${volume.record.name}`,
          );
        }
        await refreshLoopDevice(device);
        if (staged.access.kind === 'mount') {
          // FAILED_PRECONDITION tells the orchestrator not to try again while it is staged like this.
          if (isReadOnly(staged.access)) throw status('FAILED_PRECONDITION', `${id} is staged read-only`);
          await growMounted(device, volume.record.fsType, staged.path);
        }
        return { capacityBytes: BigInt(await deviceBytes(device)) };
      });
    },
  };
}

/** The staged volume behind a path that it is staged or published at; NOT_FOUND for any other path. */
async function requirePlace(
  { pool, staging, publishing }: NodeParts,
  id: VolumeId,
  path: string,
): Promise<StagedVolume> {
  const found = await staging.find(await pool.get(id));
  const places = found === undefined ? [] : [found.staged, ...(await publishing.live(found))];
  const isPlace = places.some((place) => ('target' in place ? place.target : place.path) === path);
  if (found === undefined || !isPlace)
    throw status('NOT_FOUND', `${id} is not staged or published at ${path}`);
  return found;
}

function requireAttachment({ attach, nodeId }: NodeParts, { record }: Volume): void {
  if (!attach || record.attachedTo === nodeId) return;
  throw status('FAILED_PRECONDITION', `${record.id} is not attached to ${nodeId}`);
}

/** What is used inside is known only to whoever uses the device. */
async function deviceUsage(device: LoopDevice): Promise<VolumeUsage[]> {
  return [{ unit: Unit.BYTES, total: BigInt(await deviceBytes(device)), used: 0n, available: 0n }];
}

async function fileSystemUsage(path: string): Promise<VolumeUsage[]> {
  const { bsize, blocks, bfree, bavail, files, ffree } = await statfs(path, { bigint: true });
  const bytes = {
    unit: Unit.BYTES,
    total: blocks * bsize,
    used: (blocks - bfree) * bsize,
    available: bavail * bsize,
  };
  const inodes = { unit: Unit.INODES, total: files, used: files - ffree, available: ffree };
  // btrfs has no fixed number of inodes and says 0.
  return files === 0n ? [bytes] : [bytes, inodes];
}
