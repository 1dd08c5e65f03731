/** Publish: a staged volume at the place where a pod sees it. Unpublish: nothing left at that place. */
import { lstat, mkdir, open, readdir, rmdir, unlink } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { type Access, isReadOnly } from './device/capability.ts';
import { type LoopDevice, setReadOnly } from './device/loop-device.ts';
import { bindMount, isMountedAt, isMountOf, readMounts, topmost, unmount } from './device/mounts.ts';
import type { Pool, Volume } from './pool/pool.ts';
import type { StagedVolume, Staging } from './staging.ts';
import { errnoIn } from '../../mount/errno.ts';
import { status, unlessAbsent } from './device/status.ts';
import type { Publication, VolumeId } from './pool/volume-record.ts';

export interface PublishCall {
  readonly stagingPath: string;
  readonly target: string;
  readonly access: Access;
  readonly readOnly: boolean;
}

export interface Publishing {
  publish(volume: Volume, call: PublishCall): Promise<void>;
  unpublish(id: VolumeId, target: string): Promise<void>;
  /** The publications of a staged volume that the kernel really shows. */
  live(staged: StagedVolume): Promise<readonly Publication[]>;
}

export function createPublishing(pool: Pool, staging: Staging): Publishing {
  async function live({ staged, device }: StagedVolume): Promise<readonly Publication[]> {
    const table = await readMounts();
    return staged.publications.filter(({ target }) => isMountedAt(table, target, device));
  }

  async function publish(volume: Volume, call: PublishCall): Promise<void> {
    const { target, access } = call;
    const found = await requireStaged(volume, call);
    const { staged, device } = found;
    const readOnly = call.readOnly || isReadOnly(access) || isReadOnly(staged.access);
    const wanted = { target, mode: access.mode, readOnly };
    if (await isThere(found, wanted)) return;
    const others = (await live(found)).filter((one) => one.target !== target);
    refuseSharing(wanted, others);
    if (access.kind === 'block') await switchDevice(device, wanted, others);

    // Recorded first: after a crash a half-made read-only publication is known to be meant read-only.
    await pool.save({ ...volume.record, staged: { ...staged, publications: [...others, wanted] } });
    await makeTarget(target, access.kind);
    const source = access.kind === 'block' ? device.path : staged.path;
    try {
      await bindMount({ device, source, target, readOnly });
    } catch (error) {
      await removeTarget(target);
      throw error;
    }
  }

  /** Published already, and in this way. False also for a bind that a crash left before it became read-only. */
  async function isThere({ staged, device }: StagedVolume, wanted: Publication): Promise<boolean> {
    const top = topmost(await readMounts(), wanted.target);
    if (top === undefined) return false;
    const recorded = staged.publications.find((one) => one.target === wanted.target);
    if (!isMountOf(top, device) || !isDeepStrictEqual(recorded, wanted)) {
      throw status(
        'ALREADY_EXISTS',
        `${wanted.target} is taken: by another way of publishing, or another mount`,
      );
    }
    return !wanted.readOnly || top.options.includes('ro');
  }

  async function requireStaged(volume: Volume, { stagingPath, access }: PublishCall): Promise<StagedVolume> {
    const found = await staging.find(volume);
    if (found === undefined || found.staged.path !== stagingPath) {
      throw status('FAILED_PRECONDITION', `${volume.record.id} is not staged at ${stagingPath}`);
    }
    const { kind, fsType } = found.staged.access;
    if (access.kind !== kind || (access.fsType !== undefined && access.fsType !== fsType)) {
      throw status('FAILED_PRECONDITION', `${volume.record.id} is staged as ${fsType ?? kind}`);
    }
    return found;
  }

  async function unpublish(id: VolumeId, target: string): Promise<void> {
    const volume = await pool.find(id);
    const { attached, orphaned } = await pool.loopDevices(id);
    const devices = [...attached, ...orphaned];
    if (volume === undefined && devices.length === 0) throw status('NOT_FOUND', `no volume ${id}`);
    await unmount(target, devices);
    await removeTarget(target);
    if (volume === undefined) return;
    const { staged } = volume.record;
    if (staged?.publications.some((one) => one.target === target) !== true) return;
    const publications = staged.publications.filter((one) => one.target !== target);
    await pool.save({ ...volume.record, staged: { ...staged, publications } });
  }

  return { publish, unpublish, live };
}

/** CSI, NodePublishVolume: only SINGLE_NODE_MULTI_WRITER may be at two targets of one node. */
function refuseSharing(wanted: Publication, others: readonly Publication[]): void {
  const alone = [wanted, ...others].find(({ mode }) => mode !== 'SINGLE_NODE_MULTI_WRITER');
  const [other] = others;
  if (other === undefined || alone === undefined) return;
  throw status(
    'FAILED_PRECONDITION',
    `already published at ${other.target}, and ${alone.mode} allows one target`,
  );
}

/** One device serves all targets, so either all of them may write or none. */
async function switchDevice(
  device: LoopDevice,
  wanted: Publication,
  others: readonly Publication[],
): Promise<void> {
  const other = others.find(({ readOnly }) => readOnly !== wanted.readOnly);
  if (other !== undefined) {
    const how = other.readOnly ? 'read-only' : 'writable';
    throw status('FAILED_PRECONDITION', `the block device is published ${how} at ${other.target}`);
  }
  await setReadOnly(device, wanted.readOnly);
}

/** CSI: the plugin creates the target, the orchestrator its parent. Only an empty place is taken. */
async function makeTarget(target: string, kind: Access['kind']): Promise<void> {
  try {
    if (kind === 'mount') await mkdir(target, { mode: 0o750 });
    else await (await open(target, 'wx', 0o600)).close();
  } catch (error) {
    if (errnoIn(error) === 'ENOENT')
      throw status('FAILED_PRECONDITION', `the parent of ${target} does not exist`);
    if (errnoIn(error) !== 'EEXIST') throw error;
    if (topmost(await readMounts(), target) === undefined) await requireEmpty(target, kind);
  }
}

async function requireEmpty(target: string, kind: Access['kind']): Promise<void> {
  const facts = await lstat(target);
  const empty =
    kind === 'mount'
      ? facts.isDirectory() && (await readdir(target)).length === 0
      : facts.isFile() && facts.size === 0;
  if (!empty) throw status('FAILED_PRECONDITION', `${target} is taken by something else`);
}

/** Never recursive: what is not an empty directory or an empty file is somebody's data. */
async function removeTarget(target: string): Promise<void> {
  const facts = await unlessAbsent(lstat(target));
  if (facts === undefined) return;
  if (facts.isDirectory()) await rmdir(target);
  else if (facts.isFile() && facts.size === 0) await unlink(target);
  else throw status('FAILED_PRECONDITION', `${target} is neither an empty directory nor an empty file`);
}
