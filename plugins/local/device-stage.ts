/** The file system of a device, mounted once for all pods of its volume; made first where nothing is for certain. */
import {
  type FileSystemType,
  FILE_SYSTEM_TYPES,
  growsMounted,
  isFileSystemType,
  optionsOf,
} from '../../mount/device/file-system-tools.ts';
import { done, type Failure, fail, ok, type Result } from '../../mount/failure.ts';
import type { GrowingFileSystem } from '../../mount/block-devices.ts';
import {
  type AbsolutePath,
  type DeviceNumber,
  type Host,
  type MountIdentity,
  type MountLookup,
  parentOf,
} from '../../mount/host.ts';
import type { Mounter } from '../../mount/mounter.ts';
import { printable } from '../../mount/text/printable.ts';
import { isMountOn } from '../device/mounted-device.ts';
import { refuseHeldDevice } from '../device/shared-device.ts';
import type { Layout } from '../layout/layout.ts';
import type { Staged, VolumeCall } from '../plugin.ts';
import { doubtful, inOrder } from '../steps.ts';

export interface DeviceStageParts {
  readonly host: Host;
  readonly layout: Pick<Layout, 'root'>;
  readonly mounter: Mounter;
}

/** What is to be mounted where. */
export interface StagedDevice {
  /** What people call its volume. */
  readonly title: string;
  /** Empty: whatever is there. */
  readonly fsType: string;
  readonly mountOptions: readonly string[];
  readonly target: AbsolutePath;
  /** The file that tells of an mkfs that was begun. */
  readonly intent: AbsolutePath;
}

/** As `Staged`, of what is mounted for certain. */
interface StagedOnDevice extends Staged {
  readonly stagedMount: MountIdentity;
}

interface Prepared extends Pick<Staged, 'ungrown'> {
  readonly type: FileSystemType;
}

const AS_LARGE: Result<undefined> = ok(undefined);
const MODE = 0o750;
const INTENT_BYTES_MAX = 16_384;
/** As the kubelet has it, where the PersistentVolume names none. */
const DEFAULT_TYPE: FileSystemType = 'ext4';
/** A check of a large disk. */
const WORK_MS_MAX = 30 * 60_000;
/** What mount(8) is not to be told of a device. */
const OF_BINDS: ReadonlySet<string> = new Set(['bind', 'defaults']);

export class DeviceStage {
  readonly #parts: DeviceStageParts;

  constructor(parts: DeviceStageParts) {
    this.#parts = parts;
  }

  /** `device`: the real path of its node. What is mounted there already, and is of the device, stays as it is. */
  async stage(volume: StagedDevice, device: AbsolutePath, call: VolumeCall): Promise<Result<StagedOnDevice>> {
    const { host } = this.#parts;
    const { target } = volume;
    const number = await host.deviceOf(device);
    if (!number.ok) return number;
    if (number.value === undefined)
      return fail({ code: 'path-missing', message: `there is no device at ${device}`, effect: 'none' });
    const before = await host.lookUpMount(target);
    if (!before.ok) return before;
    call.step({ kind: 'working', deadlineMs: WORK_MS_MAX });
    const staged = before.value.mounted
      ? await this.#identified(before.value, number.value, target)
      : await this.#make(volume, { device, number: number.value }, call);
    if (!staged.ok) return staged;
    const isForReading = isReadOnly(volume) || staged.value.stagedMount.readOnly === true;
    const finished = await this.#finish(volume, device, isForReading);
    if (!finished.ok) return doubtful<never>(finished);
    return ok({ ...staged.value, ungrown: finished.value ?? staged.value.ungrown });
  }

  async #make(
    volume: StagedDevice,
    { device, number }: { readonly device: AbsolutePath; readonly number: DeviceNumber },
    call: VolumeCall,
  ): Promise<Result<StagedOnDevice>> {
    const { host, layout } = this.#parts;
    const unheld = await refuseHeldDevice(host, layout.root, number);
    if (!unheld.ok) return unheld;
    const prepared = await this.#prepared(volume, device, call);
    if (!prepared.ok) return prepared;
    const { type, ungrown } = prepared.value;
    const mounted = await this.#mount(volume, { device, type, number });
    return mounted.ok ? ok({ ...mounted.value, ungrown }) : doubtful<never>(mounted);
  }

  /** Also of what was mounted before: a crash may have come between. */
  async #finish(
    volume: StagedDevice,
    device: AbsolutePath,
    isForReading: boolean,
  ): Promise<Result<Failure | undefined>> {
    const { host } = this.#parts;
    const removed = await host.removeFile(volume.intent);
    if (!removed.ok || isForReading) return removed.ok ? AS_LARGE : removed;
    const content = await host.readDeviceContent(device);
    if (!content.ok || content.value.kind !== 'file-system') return content.ok ? AS_LARGE : content;
    const { type } = content.value;
    const { target: mountPoint } = volume;
    return isFileSystemType(type) && growsMounted(type) ? this.#grow({ device, type, mountPoint }) : AS_LARGE;
  }

  /** What cannot be grown, and is whole, is served as large as it is. */
  async #grow(place: GrowingFileSystem): Promise<Result<Failure | undefined>> {
    const grown = await this.#parts.host.growFileSystem(place);
    if (grown.ok) return AS_LARGE;
    return grown.failure.effect === 'none' ? ok(grown.failure) : grown;
  }

  /** Nothing is there of a directory. */
  unstage(target: AbsolutePath): Promise<Result<void>> {
    const { host, mounter } = this.#parts;
    return inOrder(
      () => mounter.unmount(target),
      () => host.removeEmptyDirectory(target),
    );
  }

  /** The file system that is on the device, checked; one of another type than is wanted is never replaced. */
  async #prepared(volume: StagedDevice, device: AbsolutePath, call: VolumeCall): Promise<Result<Prepared>> {
    const { host } = this.#parts;
    const content = await host.readDeviceContent(device);
    if (!content.ok) return content;
    if (content.value.kind === 'nothing') return this.#format(volume, device, call);
    if (content.value.kind === 'other') return this.#refuse(volume, device, `holds ${content.value.what}`);
    const { type } = content.value;
    if (!isFileSystemType(type))
      return this.#refuseAsItIs(
        volume,
        device,
        `holds ${type}, and one of ${FILE_SYSTEM_TYPES.join(', ')} is known here`,
      );
    if (volume.fsType !== '' && volume.fsType !== type)
      return this.#refuseAsItIs(
        volume,
        device,
        `holds ${type}, not ${volume.fsType}; it is never reformatted`,
      );
    if (isReadOnly(volume)) return ok({ type });
    call.progress('checking the file system');
    const good = await host.checkFileSystem(device, type);
    if (!good.ok || growsMounted(type)) return good.ok ? ok({ type }) : good;
    const grown = await this.#grow({ device, type, mountPoint: undefined });
    return grown.ok ? ok({ type, ungrown: grown.value }) : grown;
  }

  /**
   * INV-9: only what is proven to be blank, with the intent on disk before the first write. The intent is no licence to
   * throw anything away: it tells a person what became of the device when mkfs was cut short.
   */
  async #format(volume: StagedDevice, device: AbsolutePath, call: VolumeCall): Promise<Result<Prepared>> {
    const { host } = this.#parts;
    const type = volume.fsType === '' ? DEFAULT_TYPE : volume.fsType;
    if (!isFileSystemType(type))
      return this.#refuse(volume, device, `is blank, and ${type} is none of ${FILE_SYSTEM_TYPES.join(', ')}`);
    if (isReadOnly(volume)) return this.#refuse(volume, device, 'is blank, and is wanted read-only');
    const blank = await host.proveBlank(device);
    if (!blank.ok) {
      const isData = blank.failure.code === 'device-content';
      return isData ? this.#refuse(volume, device, `cannot be formatted: ${blank.failure.message}`) : blank;
    }
    const { intent } = volume;
    const begun: Intent = { version: 1, device, type, bootId: host.bootId };
    const text = JSON.stringify(begun);
    call.progress(`making ${type}`);
    const noted = await inOrder(
      () => host.makeDirectory(parentOf(intent), MODE),
      () => host.writeFile(intent, new TextEncoder().encode(text), { mode: 0o640, durable: true }),
    );
    if (!noted.ok) return noted;
    const made = await host.makeFileSystem(device, type);
    if (made.ok) return ok({ type });
    // Nothing was begun, so nobody is to be told later that it was cut short.
    const removed = made.failure.effect === 'none' ? await host.removeFile(intent) : done;
    return doubtful<never>(removed.ok ? made : removed);
  }

  async #mount(
    volume: StagedDevice,
    { device, type, number }: { device: AbsolutePath; type: FileSystemType; number: DeviceNumber },
  ): Promise<Result<StagedOnDevice>> {
    const { host } = this.#parts;
    const { target } = volume;
    const options = [...optionsOf(type), ...volume.mountOptions.filter((one) => !OF_BINDS.has(one))];
    const placed = await host.makeDirectory(target, MODE);
    if (!placed.ok) return placed;
    const said = await host.mount({ fsType: type, source: device, target, options });
    // The kernel is the judge: a mount that failed or was killed may be there.
    const after = await host.lookUpMount(target);
    if (!after.ok) return after;
    if (after.value.mounted) {
      const staged = await this.#identified(after.value, number, target);
      const isOfOther = !staged.ok && staged.failure.code === 'device-changed';
      return isOfOther && said.ok ? this.#takeDown(target, after.value, staged) : staged;
    }
    const message = `mount said done, but nothing is mounted at ${target}`;
    return said.ok ? fail({ code: 'mount-failed', message, effect: 'unknown', blocker: device }) : said;
  }

  /**
   * While mount(8) was on its way the disk has gone, and another one was given the name of its node. A single mount is
   * the one that was just made, and nobody else would take it down; with a stranger's beside it both stay.
   */
  async #takeDown(
    target: AbsolutePath,
    { mountId }: MountIdentity,
    refused: Result<never>,
  ): Promise<Result<never>> {
    const { host, mounter } = this.#parts;
    const table = await host.readMountTable(target);
    if (!table.ok || table.value.at(target).length !== 1) return refused;
    const gone = await mounter.unmountOnly(target, mountId);
    return gone.ok ? refused : doubtful<never>(gone);
  }

  /** What cannot be told any more, of a btrfs, is taken for it. */
  async #identified(
    { mountId, device, readOnly, turnedReadOnly }: Mounted,
    number: DeviceNumber,
    target: AbsolutePath,
  ): Promise<Result<StagedOnDevice>> {
    const mount = { target, mountId };
    const isOfIt = device === number ? ok(true) : await isMountOn(this.#parts.host, mount, number);
    if (!isOfIt.ok) return isOfIt;
    if (isOfIt.value === false) {
      const message = `${target} is a mount of device ${device}, and the volume is ${number} now`;
      return fail({ code: 'device-changed', message, effect: 'none', blocker: target });
    }
    const isMadeSo = readOnly === true && turnedReadOnly !== true;
    return ok({ stagedMount: { mountId, device, ...(isMadeSo ? { readOnly } : {}) } });
  }

  async #refuse(volume: StagedDevice, device: AbsolutePath, because: string): Promise<Result<never>> {
    const { host } = this.#parts;
    const intent = await host.readFile(volume.intent, INTENT_BYTES_MAX);
    const advice = intent.ok ? `; ${adviceOf(intent.value, device, host.bootId)}` : '';
    return this.#refuseAsItIs(volume, device, `${because}${advice}`);
  }

  /** No mkfs that was cut short has left it. */
  #refuseAsItIs({ title }: StagedDevice, device: AbsolutePath, because: string): Result<never> {
    const message = `device ${device} of ${title} ${because}`;
    return fail({ code: 'device-content', message, effect: 'none', blocker: device });
  }
}

interface Intent {
  readonly version: 1;
  readonly device: string;
  readonly type: FileSystemType;
  readonly bootId: string;
}

/** Names of disks are other disks' after a reboot, and a PersistentVolume may have got another disk since. */
function adviceOf(content: Uint8Array, device: AbsolutePath, bootId: string): string {
  const intent = intentIn(content);
  if (intent?.device === device && intent.bootId === bootId)
    return 'an mkfs of this agent was cut short: if nothing else wrote to it, run wipefs --all';
  const where = typeof intent?.device === 'string' ? printable(intent.device, 256) : 'a device';
  const when = intent?.bootId === bootId ? '' : ', before a reboot';
  return (
    `an mkfs of this agent was cut short on ${where}${when}: ` +
    'run wipefs --all only if it is the same disk, and nothing else wrote to it'
  );
}

function intentIn(content: Uint8Array): Partial<Intent> | undefined {
  try {
    return (JSON.parse(Buffer.from(content).toString()) as Partial<Intent> | null) ?? undefined;
  } catch {
    return undefined;
  }
}

function isReadOnly({ mountOptions }: StagedDevice): boolean {
  return mountOptions.includes('ro');
}

type Mounted = Extract<MountLookup, { mounted: true }>;
