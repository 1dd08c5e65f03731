/** The pool: one directory per volume, `<pool>/<id>/data.img` and `<pool>/<id>/volume.json`. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import {
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  statfs,
} from 'node:fs/promises';
import { join } from 'node:path';
import type { Cancel } from '../../../mount/host.ts';
import { makeSparseFile, syncDirectory, writeDurably } from './durable-file.ts';
import type { FsType } from '../device/file-system.ts';
import { type BackingFile, findLoopDevices, type LoopDevices } from '../device/loop-device.ts';
import { errnoIn } from '../../../mount/errno.ts';
import { status, statusOf, unlessAbsent } from '../device/status.ts';
import {
  formatVolumeRecord,
  parseVolumeId,
  parseVolumeRecord,
  type VolumeId,
  type VolumeRecord,
} from './volume-record.ts';

export interface Volume {
  readonly record: VolumeRecord;
  readonly file: BackingFile;
  /** The size of the data file is the size of the volume: there is no second place to disagree with. */
  readonly sizeBytes: number;
  /** What it really takes on disk: the file is sparse. */
  readonly allocatedBytes: number;
}

export interface VolumeRequest {
  readonly name: string;
  readonly fsType: FsType;
  readonly sizeBytes: number;
}

export interface Pool {
  /** Its real path: loop devices are recognised by it. */
  readonly directory: string;
  /** NOT_FOUND when there is none; INTERNAL when its papers or its data file are damaged. */
  get(id: VolumeId): Promise<Volume>;
  find(id: VolumeId): Promise<Volume | undefined>;
  /** Sorted by id. Damaged volumes are left out and named, so that one of them does not hide the others. */
  list(): Promise<{ readonly volumes: readonly Volume[]; readonly damaged: readonly string[] }>;
  /** ABORTED when somebody else made a volume of that name meanwhile. */
  create(request: VolumeRequest): Promise<Volume>;
  save(record: VolumeRecord): Promise<void>;
  /** Grows the data file; a file that is large enough already stays. */
  grow(volume: Volume, sizeBytes: number): Promise<Volume>;
  /** Replaces the data file by a blank one of the same size. Only for a file that nobody ever used. */
  startOver(volume: Volume): Promise<Volume>;
  /** FAILED_PRECONDITION while a loop device shows the file. */
  remove(volume: Volume): Promise<void>;
  /** The loop devices of a volume, also of one whose directory is gone. */
  loopDevices(id: VolumeId): Promise<LoopDevices>;
  /** What can still be promised without promising the same room twice. */
  roomBytes(): Promise<number>;
  /**
   * Deletes what a crash in the middle of `create` or `remove` left behind, if it is the same an hour from now, unless
   * that is cancelled: until then a command beside the driver may be at work on it.
   */
  sweep(): Promise<Cancel>;
}

/** A new life for the same name gives the same id: that makes CreateVolume idempotent. */
export function volumeIdOf(name: string): VolumeId {
  return `vol-${createHash('sha256').update(name).digest('hex').slice(0, 32)}` as VolumeId;
}

const DATA = 'data.img';
const RECORD = 'volume.json';
const LEFTOVER = /^\.(new|gone)-/;
const LEFTOVER_AGE_MS = 3_600_000;

/**
 * Opens the pool, and makes the directory (0700) when it is missing. `capacityBytes` is what may be promised in total;
 * without it the free room of the file system is, so that sparse files never promise more than there is.
 */
export async function openPool(path: string, capacityBytes: number | undefined): Promise<Pool> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  return new DirectoryPool(await realpath(path), capacityBytes);
}

class DirectoryPool implements Pool {
  readonly directory: string;
  readonly #capacityBytes: number | undefined;

  constructor(directory: string, capacityBytes: number | undefined) {
    this.directory = directory;
    this.#capacityBytes = capacityBytes;
  }

  async find(id: VolumeId): Promise<Volume | undefined> {
    const text = await unlessAbsent(readFile(join(this.#placeOf(id), RECORD), 'utf8'));
    if (text === undefined) return undefined;
    const record = parseVolumeRecord(text);
    if (!record.ok) throw status('INTERNAL', `volume ${id}: ${record.failure.message} cannot be read`);
    if (record.value.id !== id)
      throw status('INTERNAL', `volume ${id}: its ${RECORD} is that of ${record.value.id}`);
    const path = join(this.#placeOf(id), DATA);
    const facts = await unlessAbsent(lstat(path));
    if (facts?.isFile() !== true)
      throw status('INTERNAL', `volume ${id}: its ${DATA} is missing or not a file`);
    return {
      record: record.value,
      file: { path, inode: facts.ino, device: majorMinor(facts.dev) },
      sizeBytes: facts.size,
      allocatedBytes: facts.blocks * 512,
    };
  }

  async get(id: VolumeId): Promise<Volume> {
    const volume = await this.find(id);
    if (volume === undefined) throw status('NOT_FOUND', `no volume ${id} in ${this.directory}`);
    return volume;
  }

  async list(): Promise<{ readonly volumes: readonly Volume[]; readonly damaged: readonly string[] }> {
    const ids = (await readdir(this.directory))
      .map(parseVolumeId)
      .filter((id) => id !== undefined)
      .sort();
    const volumes: Volume[] = [];
    const damaged: string[] = [];
    for (const id of ids) {
      try {
        const volume = await this.find(id);
        if (volume !== undefined) volumes.push(volume);
      } catch (error) {
        damaged.push(statusOf(error).message);
      }
    }
    return { volumes, damaged };
  }

  /** Built aside and renamed, so that a volume is there whole or not at all. */
  async create({ name, fsType, sizeBytes }: VolumeRequest): Promise<Volume> {
    const id = volumeIdOf(name);
    const nursery = await mkdtemp(join(this.directory, '.new-'));
    try {
      await makeSparseFile(join(nursery, DATA), sizeBytes);
      const record = {
        id,
        name,
        fsType,
        content: { state: 'blank' },
        attachedTo: null,
        staged: null,
      } as const;
      await writeDurably(join(nursery, RECORD), formatVolumeRecord(record));
      await rename(nursery, this.#placeOf(id));
    } catch (error) {
      await rm(nursery, { recursive: true, force: true });
      const taken = ['ENOTEMPTY', 'EEXIST'].includes(errnoIn(error) ?? '');
      throw taken ? status('ABORTED', `volume ${name} was made by somebody else at the same time`) : error;
    }
    await syncDirectory(this.directory);
    return this.get(id);
  }

  async save(record: VolumeRecord): Promise<void> {
    await writeDurably(join(this.#placeOf(record.id), RECORD), formatVolumeRecord(record));
  }

  async grow(volume: Volume, sizeBytes: number): Promise<Volume> {
    if (sizeBytes <= volume.sizeBytes) return volume;
    const file = await open(volume.file.path, constants.O_WRONLY | constants.O_NOFOLLOW);
    try {
      await file.truncate(sizeBytes);
      await file.sync();
    } finally {
      await file.close();
    }
    return this.get(volume.record.id);
  }

  /**
   * A new file instead of a truncated one: a mkfs that a killed driver left running writes into the old, deleted file
   * and harms nobody.
   */
  async startOver({ record, file, sizeBytes }: Volume): Promise<Volume> {
    const fresh = `${file.path}.new`;
    await rm(fresh, { force: true });
    await makeSparseFile(fresh, sizeBytes);
    await rename(fresh, file.path);
    await syncDirectory(this.#placeOf(record.id));
    await this.save({ ...record, content: { state: 'blank' } });
    return this.get(record.id);
  }

  /** Out of sight first: after the rename nobody can attach the file any more, so the second look is final. */
  async remove({ record, file }: Volume): Promise<void> {
    const { id } = record;
    await refuseAttached(id, await findLoopDevices(file.path, file));
    const gone = join(this.directory, `.gone-${id}`);
    await rm(gone, { recursive: true, force: true });
    await rename(this.#placeOf(id), gone);
    const moved = { ...file, path: join(gone, DATA) };
    try {
      await refuseAttached(id, await findLoopDevices(moved.path, moved));
    } catch (error) {
      await rename(gone, this.#placeOf(id));
      throw error;
    }
    await syncDirectory(this.directory);
    await rm(gone, { recursive: true, force: true });
  }

  async loopDevices(id: VolumeId): Promise<LoopDevices> {
    return findLoopDevices(join(this.#placeOf(id), DATA), (await this.find(id))?.file);
  }

  async roomBytes(): Promise<number> {
    const { volumes } = await this.list();
    const total = (count: (volume: Volume) => number): number =>
      volumes.reduce((sum, one) => sum + count(one), 0);
    if (this.#capacityBytes !== undefined)
      return Math.max(0, this.#capacityBytes - total(({ sizeBytes }) => sizeBytes));
    const { bavail, bsize } = await statfs(this.directory);
    const promised = total(({ sizeBytes, allocatedBytes }) => Math.max(0, sizeBytes - allocatedBytes));
    return Math.max(0, bavail * bsize - promised);
  }

  /** By no clock that can be set: how long it was there before nobody knows. */
  async sweep(): Promise<Cancel> {
    const left = await this.#leftovers();
    if (left.size === 0) return () => {};
    // What cannot be removed waits for the next start.
    const remove = (): unknown => this.#removeOld(left).catch(() => {});
    const timer = setTimeout(remove, LEFTOVER_AGE_MS).unref();
    return () => clearTimeout(timer);
  }

  async #removeOld(left: ReadonlyMap<string, number>): Promise<void> {
    for (const [path, inode] of await this.#leftovers())
      if (left.get(path) === inode) await rm(path, { recursive: true, force: true });
  }

  /** Their paths, with the inodes that they have. */
  async #leftovers(): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    for (const name of (await readdir(this.directory)).filter((one) => LEFTOVER.test(one))) {
      const path = join(this.directory, name);
      const facts = await unlessAbsent(lstat(path));
      if (facts !== undefined) found.set(path, facts.ino);
    }
    return found;
  }

  #placeOf(id: VolumeId): string {
    return join(this.directory, id);
  }
}

function refuseAttached(id: VolumeId, { attached }: LoopDevices): void {
  const [device] = attached;
  if (device !== undefined)
    throw status('FAILED_PRECONDITION', `volume ${id} is in use through ${device.path}`);
}

/** As makedev(3) packs it. */
function majorMinor(device: number): string {
  const bits = BigInt(device);
  const major = ((bits >> 8n) & 0xfffn) | ((bits >> 32n) & 0xfffff000n);
  const minor = (bits & 0xffn) | ((bits >> 12n) & 0xffffff00n);
  return `${major}:${minor}`;
}
