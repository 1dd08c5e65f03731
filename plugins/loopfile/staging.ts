/** Stage: a volume's file system at one place of the node, or its block device. Unstage: nothing of it left. */
import { lstat } from 'node:fs/promises';
import { isUnclaimed, proveBlank } from './device/blank-proof.ts';
import { type Access, isReadOnly, isSameAccess } from './device/capability.ts';
import {
  bytesMin,
  checkFileSystem,
  type FsType,
  growAfterMount,
  growUnmounted,
  makeFileSystem,
  mountOptions,
  recognise,
} from './device/file-system.ts';
import {
  attachLoopDevice,
  detachLoopDevice,
  deviceBytes,
  type LoopDevice,
  refreshLoopDevice,
  setReadOnly,
} from './device/loop-device.ts';
import type { Report } from './events.ts';
import { isMountedAt, isMountOf, mountFileSystem, readMounts, topmost, unmount } from './device/mounts.ts';
import type { Pool, Volume } from './pool/pool.ts';
import { status, unlessAbsent } from './device/status.ts';
import type { Publication, Staged, VolumeId } from './pool/volume-record.ts';

export interface StagedVolume {
  readonly volume: Volume;
  readonly staged: Staged;
  readonly device: LoopDevice;
}

export interface Staging {
  stage(volume: Volume, path: string, access: Access): Promise<void>;
  unstage(id: VolumeId, path: string): Promise<void>;
  /** What is really staged: the record of this boot, and the kernel agrees. */
  find(volume: Volume): Promise<StagedVolume | undefined>;
}

export function createStaging(pool: Pool, bootId: string, report: Report): Staging {
  return new PoolStaging(pool, bootId, report);
}

class PoolStaging implements Staging {
  readonly #pool: Pool;
  readonly #bootId: string;
  readonly #report: Report;

  constructor(pool: Pool, bootId: string, report: Report) {
    this.#pool = pool;
    this.#bootId = bootId;
    this.#report = report;
  }

  async find(volume: Volume): Promise<StagedVolume | undefined> {
    const { staged } = volume.record;
    if (staged === null || staged.bootId !== this.#bootId) return undefined;
    const { attached } = await this.#pool.loopDevices(volume.record.id);
    const table = await readMounts();
    const inUse = attached.find((device) => table.entries.some((entry) => isMountOf(entry, device)));
    const device =
      staged.access.kind === 'block'
        ? (inUse ?? attached[0])
        : attached.find((one) => isMountedAt(table, staged.path, one));
    return device === undefined ? undefined : { volume, staged, device };
  }

  async stage(volume: Volume, path: string, wanted: Access): Promise<void> {
    const access = resolved(volume, wanted);
    await requireDirectory(path);
    const before = await this.find(volume);
    if (before !== undefined) {
      if (before.staged.path === path && isSameAccess(before.staged.access, access)) return;
      throw status('ALREADY_EXISTS', `${volume.record.id} is staged at ${before.staged.path} in another way`);
    }
    const covering = topmost(await readMounts(), path);
    if (covering !== undefined)
      throw status('FAILED_PRECONDITION', `${path} is a mount of ${covering.source}`);
    const publications = publicationsOf(volume, this.#bootId);
    const record = { ...volume.record, staged: { bootId: this.#bootId, path, access, publications } };
    await this.#pool.save(record);
    try {
      const ready = { ...volume, record };
      await (access.kind === 'block'
        ? this.#stageBlock(ready, access)
        : this.#stageFileSystem(ready, path, access));
    } catch (error) {
      await this.#unwind(volume.record.id, path);
      throw error;
    }
  }

  async #stageBlock(volume: Volume, access: Access): Promise<void> {
    // Whoever gets the device may write anything anywhere: from here on nothing in it is ours to format.
    await this.#pool.save({ ...volume.record, content: { state: 'used' } });
    const device = await this.#attach(volume);
    await setReadOnly(device, isReadOnly(access));
  }

  async #stageFileSystem(unused: Volume, path: string, access: Access): Promise<void> {
    const volume = isHalfMade(unused) ? await this.#pool.startOver(unused) : unused;
    const device = await this.#attach(volume);
    await setReadOnly(device, false);
    const fsType = access.fsType ?? volume.record.fsType;
    const found = await recognise(device);
    if (found.kind === 'other')
      throw status('FAILED_PRECONDITION', `the volume holds ${found.what}, no file system`);
    if (found.kind === 'file-system' && found.type !== fsType) {
      throw status(
        'FAILED_PRECONDITION',
        `the volume holds ${found.type}, not ${fsType}; it is never reformatted`,
      );
    }
    if (found.kind === 'nothing') await this.#format(volume, device, access, fsType);
    // Still mounted elsewhere (a container that outlived its pod): then a check would do harm and a mount is enough.
    const unclaimed = await isUnclaimed(device);
    if (unclaimed) await checkFileSystem(device, fsType);
    // The volume may have grown while it was not staged, or while a mounted file system could not.
    const isGrowing = !isReadOnly(access);
    const before = isGrowing && unclaimed ? await growUnmounted(device, fsType) : undefined;
    await this.#pool.save({ ...volume.record, fsType, content: { state: 'used' } });
    const readOnly = access.mode === 'SINGLE_NODE_READER_ONLY' ? ['ro'] : [];
    const options = mountOptions(fsType, [...access.options, ...readOnly]);
    await mountFileSystem({ device, target: path, fsType, options });
    const ungrown = before ?? (isGrowing ? await growAfterMount(device, fsType, path) : undefined);
    // What cannot be grown, and is whole, is served as large as it is.
    if (ungrown !== undefined)
      this.#report('file system not grown', { volume: volume.record.id, message: ungrown });
  }

  /**
   * INV-9: only what nobody used, by its record and by its bytes, with the intent on disk before the first write. The
   * proof comes before the intent, because the intent is a licence to throw the file away.
   */
  async #format(volume: Volume, device: LoopDevice, access: Access, fsType: FsType): Promise<void> {
    const { record, file, sizeBytes } = volume;
    const refuse = (because: string) => status('FAILED_PRECONDITION', `not formatted: ${because}`);
    if (record.content.state === 'used')
      throw refuse('the volume was used before, and no file system is found now');
    if (isReadOnly(access)) throw refuse('it is wanted read-only');
    if (sizeBytes < bytesMin(fsType))
      throw refuse(`${fsType} needs ${bytesMin(fsType)} bytes, it has ${sizeBytes}`);
    await proveBlank(device, await this.#pool.get(record.id));
    await this.#pool.save({
      ...record,
      fsType,
      content: { state: 'formatting', inode: file.inode, sizeBytes },
    });
    await makeFileSystem(device, fsType);
  }

  /** The one loop device of the volume. Others, which only a crash can leave, go, unless something mounts them. */
  async #attach(volume: Volume): Promise<LoopDevice> {
    const { attached, orphaned } = await this.#pool.loopDevices(volume.record.id);
    const table = await readMounts();
    const isMounted = (device: LoopDevice) => table.entries.some((entry) => isMountOf(entry, device));
    const chosen = attached.find(isMounted) ?? attached[0];
    for (const device of [...attached, ...orphaned]) {
      if (device !== chosen && !isMounted(device)) await detachLoopDevice(device);
    }
    if (chosen === undefined) return attachLoopDevice(volume.file);
    if ((await deviceBytes(chosen)) < volume.sizeBytes) await refreshLoopDevice(chosen);
    return chosen;
  }

  async unstage(id: VolumeId, path: string): Promise<void> {
    const volume = await this.#pool.find(id);
    const { attached, orphaned } = await this.#pool.loopDevices(id);
    const devices = [...attached, ...orphaned];
    if (volume === undefined && devices.length === 0) throw status('NOT_FOUND', `no volume ${id}`);
    const elsewhere = volume === undefined ? undefined : await this.find(volume);
    if (elsewhere !== undefined && elsewhere.staged.path !== path) {
      throw status('FAILED_PRECONDITION', `${id} is staged at ${elsewhere.staged.path}, not at ${path}`);
    }
    const table = await readMounts();
    const places = table.entries.filter((entry) => devices.some((device) => isMountOf(entry, device)));
    const busy = places.find((entry) => entry.target !== path);
    if (busy !== undefined) throw status('FAILED_PRECONDITION', `${id} is still mounted at ${busy.target}`);
    if (places.length > 0) await unmount(path, devices);
    for (const device of devices) await detachLoopDevice(device);
    if (volume !== undefined && volume.record.staged !== null)
      await this.#pool.save({ ...volume.record, staged: null });
  }

  /** A refused stage leaves nothing behind. When that fails as well, the caller unstages and it is tried again. */
  async #unwind(id: VolumeId, path: string): Promise<void> {
    try {
      await this.unstage(id, path);
    } catch {
      // The first failure is the one to tell; what is left is found again in the kernel, not in memory.
    }
  }
}

/** The access with its file system named, so that two ways of saying the same compare equal. */
function resolved(volume: Volume, access: Access): Access {
  return access.kind === 'block' ? access : { ...access, fsType: access.fsType ?? volume.record.fsType };
}

/** Publications outlive a staging mount that somebody took away. */
function publicationsOf({ record: { staged } }: Volume, bootId: string): readonly Publication[] {
  return staged?.bootId === bootId ? staged.publications : [];
}

/** A crash came between the intent and the end of mkfs, and this is still the very file the intent names. */
function isHalfMade({ record: { content }, file, sizeBytes }: Volume): boolean {
  return content.state === 'formatting' && content.inode === file.inode && content.sizeBytes <= sizeBytes;
}

/** CSI: the orchestrator creates the staging directory. */
async function requireDirectory(path: string): Promise<void> {
  const facts = await unlessAbsent(lstat(path));
  if (facts?.isDirectory() !== true)
    throw status('FAILED_PRECONDITION', `staging_target_path ${path} is no directory`);
}
