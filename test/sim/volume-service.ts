/** What a simulated driver does when it is asked, correct by the specification (csi.v1, 1.13) and idempotent. */
import { type AbsolutePath, parentOf } from '../../mount/host.ts';
import type {
  NodeExpandVolumeRequest,
  NodePublishVolumeRequest,
  NodeStageVolumeRequest,
} from '../../plugins/csi/wire/generated/csi.ts';
import {
  type Backing,
  type BackingOptions,
  deviceOf,
  EPHEMERAL_KEY,
  nodeIdOf,
  PLAIN_BACKING,
} from './backing.ts';
import { missingFrom, placeOf, type RungCall, STATUS, type VolumeCallRecord } from './driver-call.ts';
import { DriverDevices } from './driver-devices.ts';
import type { Fate } from './driver-fates.ts';
import { type DriverNature, needsAttachment } from './driver-nature.ts';
import { type Inode, inodesOf, plant, plantDirectory } from './file-tree.ts';
import type { SimKernel } from './sim-kernel.ts';
import { answerQuestion } from './volume-questions.ts';

/** The directory that every volume is born with. */
export const TREE = 'tree';

export type Outcome =
  | { readonly status: 0; readonly reply: unknown }
  | { readonly status: number; readonly message: string };

export const EMPTY: Outcome = { status: 0, reply: {} };

export function refuse(status: number, message: string): Outcome {
  return { status, message };
}

const POOL_BYTES = 2n ** 50n;

export class VolumeService {
  readonly #kernel: SimKernel;
  readonly #nature: () => DriverNature;
  readonly #backings = new Map<string, Backing>();
  readonly #devices: DriverDevices;
  #attachments = 0;

  constructor(kernel: SimKernel, nature: () => DriverNature) {
    this.#kernel = kernel;
    this.#nature = nature;
    this.#devices = new DriverDevices(kernel);
  }

  addVolume(handle: string, options: Partial<BackingOptions> = {}): Backing {
    const { block, ephemeral, bytes, limitBytes } = { ...PLAIN_BACKING, ...options };
    const fileSystem = this.#kernel.makeFileSystem('ext4', `/dev/sim/${handle}`, false);
    plant(fileSystem.root, 'identity', handle);
    plant(fileSystem.root, 'counter', '0');
    plantTree(fileSystem.root);
    const backing: Backing = {
      handle,
      fileSystem,
      block,
      ephemeral,
      device: undefined,
      attachments: new Map(),
      setUpBy: undefined,
      setUpUnder: new Map(),
      stagedAt: new Set(),
      stageLied: false,
      loops: new Set(),
      resources: new Set(),
      storageBytes: bytes,
      nodeBytes: bytes,
      seenBy: undefined,
      limitBytes,
    };
    this.#backings.set(handle, backing);
    return backing;
  }

  backing(handle: string): Backing | undefined {
    return this.#backings.get(handle);
  }

  backings(): IterableIterator<Backing> {
    return this.#backings.values();
  }

  /** The node lost power: what was staged without a mount is gone too, and disks will be found anew. */
  losePower(): void {
    for (const backing of this.#backings.values()) {
      backing.stagedAt.clear();
      backing.loops.clear();
      backing.setUpUnder.clear();
      backing.device = undefined;
    }
  }

  perform(call: VolumeCallRecord, fate: Fate['kind']): Outcome {
    const backing = this.#backings.get(call.request.volumeId);
    const missing = missingFrom(call);
    if (missing !== undefined) return refuse(STATUS.invalidArgument, `no ${missing}`);
    switch (call.method) {
      case 'ControllerPublishVolume':
        return this.#attach(call.request.nodeId, backing);
      case 'ControllerUnpublishVolume':
        backing?.attachments.delete(call.request.nodeId);
        return EMPTY;
      case 'NodeStageVolume': {
        const { stagingTargetPath, publishContext } = call.request;
        if (!this.#takeAs(call.request, backing))
          return refuse(STATUS.alreadyExists, 'it is set up otherwise');
        return this.#stage(stagingTargetPath as AbsolutePath, publishContext, backing, fate);
      }
      case 'NodeUnstageVolume':
        return this.#unstage(call.request.stagingTargetPath as AbsolutePath, backing);
      case 'NodePublishVolume':
        if (!this.#takeAs(call.request, backing))
          return refuse(STATUS.alreadyExists, 'it is set up otherwise');
        return this.#publishMade(call.request, backing ?? this.#makeEphemeral(call.request), fate);
      case 'NodeUnpublishVolume':
        return this.#unpublish(call.request.targetPath as AbsolutePath, backing);
      case 'NodeExpandVolume':
        return this.#expand(call.request, backing);
      case 'NodeGetVolumeStats':
      case 'NodeGetVolumeHealth':
        return answerQuestion(call, backing, fate);
    }
  }

  /** What was begun long ago takes effect, on whatever is there by now; the directories are made again. */
  straggle(call: RungCall): { readonly status: number; readonly taken: boolean } {
    const place = placeOf(call);
    const before = this.#kernel.mountsAt(place).length;
    if (call.method === 'NodePublishVolume') this.#makeDirectories(parentOf(place as AbsolutePath));
    if (call.method === 'NodeStageVolume') this.#makeDirectories(place as AbsolutePath);
    const setUpUnder = this.#backings.get(call.request.volumeId)?.setUpUnder;
    const wasKnown = setUpUnder?.has(place) === true;
    const { status } = this.perform(call, 'plain');
    // Until the agent looks it is detached under what nobody knows of, and set up over it again.
    if (!wasKnown) setUpUnder?.delete(place);
    return { status, taken: this.#kernel.mountsAt(place).length < before };
  }

  #makeDirectories(path: AbsolutePath): void {
    const facts = this.#kernel.inspect(path);
    if (typeof facts !== 'string' && facts.kind !== 'absent') return;
    this.#makeDirectories(parentOf(path));
    this.#kernel.makeDirectory(path, 0o750);
  }

  /** It says OK and has done nothing; it has forgotten what it never took down. */
  lie(call: VolumeCallRecord): Outcome {
    const backing = this.#backings.get(call.request.volumeId);
    switch (call.method) {
      case 'NodeUnpublishVolume':
        backing?.resources.delete(call.request.targetPath);
        this.#forgetEphemeral(backing);
        if (backing !== undefined) this.#devices.unplug(backing);
        return EMPTY;
      case 'NodeUnstageVolume':
        backing?.stagedAt.delete(call.request.stagingTargetPath);
        backing?.loops.delete(call.request.stagingTargetPath);
        if (backing !== undefined) this.#devices.unplug(backing);
        return EMPTY;
      case 'NodeStageVolume':
        if (backing !== undefined) backing.stageLied = true;
        return EMPTY;
      case 'NodePublishVolume':
        return EMPTY;
      default:
        return this.perform(call, 'lie');
    }
  }

  /** A driver that says at a teardown that it does not know the volume keeps nothing of what is not mounted (GR-05). */
  forget({ method, request }: VolumeCallRecord): void {
    const backing = this.#backings.get(request.volumeId);
    const isMounted = (path: string): boolean => {
      const seen = this.#kernel.lookUpMount(path as AbsolutePath);
      return typeof seen !== 'string' && seen.mounted;
    };
    if (method === 'NodeUnpublishVolume' && !isMounted(request.targetPath)) {
      backing?.resources.delete(request.targetPath);
      this.#forgetEphemeral(backing);
    }
    if (method === 'NodeUnstageVolume' && !isMounted(request.stagingTargetPath)) {
      backing?.stagedAt.delete(request.stagingTargetPath);
      backing?.loops.delete(request.stagingTargetPath);
    }
    if (backing !== undefined) this.#devices.unplug(backing);
  }

  attach(handle: string): Readonly<Record<string, string>> {
    const backing = this.#backings.get(handle);
    const { attaches, nodeId } = this.#nature();
    if (backing === undefined || !attaches) return {};
    this.#attach(nodeId, backing);
    return { device: deviceOf(backing) ?? '' };
  }

  /** The storage shows it to the node elsewhere; what stands goes on. The answer: what a driver is told from now on. */
  moveAttachment(handle: string): Readonly<Record<string, string>> | undefined {
    const backing = this.#backings.get(handle);
    if (backing === undefined || backing.attachments.size === 0 || !this.#nature().attaches) return undefined;
    backing.attachments.clear();
    return this.attach(handle);
  }

  detach(handle: string): void {
    this.#backings.get(handle)?.attachments.clear();
  }

  #attach(nodeId: string, backing: Backing | undefined): Outcome {
    if (backing === undefined) return refuse(STATUS.notFound, 'no such volume');
    const known = backing.attachments.get(nodeId);
    if (known !== undefined) return { status: 0, reply: { publishContext: { device: known } } };
    this.#attachments += 1;
    const device = `lun-${this.#attachments}`;
    backing.attachments.set(nodeId, device);
    return { status: 0, reply: { publishContext: { device } } };
  }

  /** Nothing of it stands: it becomes what is asked for; else it is that, or not to be had. */
  #takeAs(
    { volumeCapability }: NodeStageVolumeRequest | NodePublishVolumeRequest,
    backing?: Backing,
  ): boolean {
    if (backing === undefined) return true;
    const block = volumeCapability?.accessType?.$case === 'block';
    const isUsed =
      backing.stagedAt.size > 0 ||
      backing.resources.size > 0 ||
      this.#kernel.mounts().some(({ fileSystem }) => fileSystem === backing.fileSystem);
    if (!isUsed) backing.block = block;
    return backing.block === block;
  }

  #stage(
    path: AbsolutePath,
    context: Readonly<Record<string, string>>,
    backing: Backing | undefined,
    fate: Fate['kind'],
  ): Outcome {
    if (backing === undefined) return refuse(STATUS.notFound, 'no such volume');
    const nature = this.#nature();
    const { stageMounts } = nature;
    const { device } = context;
    const nodeId = nodeIdOf(backing, device);
    if (needsAttachment(nature) && nodeId === undefined)
      return refuse(STATUS.failedPrecondition, `device ${device ?? ''} is not attached`);
    const facts = this.#kernel.inspect(path);
    if (typeof facts === 'string' || facts.kind !== 'directory')
      return refuse(STATUS.internal, `no directory ${path}`);
    if (!this.#isStaged(path, backing)) {
      noteSetUp(backing, path, nature, device);
      const seen = nodeId === undefined ? undefined : device;
      this.#see(backing, seen);
      backing.setUpBy = seen;
    }
    if (backing.block) return outcomeOf(this.#devices.stage(backing, path, stageMounts));
    if (stageMounts) {
      const mount = () => this.#kernel.mountFileSystem(backing.fileSystem, path, []);
      const mounted = this.#mountOnce(path, backing, fate, mount);
      if (mounted.status === 0) backing.loops.add(path);
      return mounted;
    }
    backing.stagedAt.add(path);
    return EMPTY;
  }

  #see(backing: Backing, device: string | undefined): void {
    backing.nodeBytes = backing.storageBytes;
    backing.seenBy = device;
  }

  #unstage(path: AbsolutePath, backing: Backing | undefined): Outcome {
    const outcome = this.#unstaged(path, backing);
    if (outcome.status === 0) backing?.setUpUnder.delete(path);
    return outcome;
  }

  #unstaged(path: AbsolutePath, backing: Backing | undefined): Outcome {
    if (backing?.block === true) return outcomeOf(this.#devices.unstage(backing, path));
    backing?.stagedAt.delete(path);
    const down = this.#takeDown(path, backing);
    if (down.status === 0) backing?.loops.delete(path);
    return down;
  }

  /** An inline volume that was made for this and could not be published is taken back. */
  #publishMade(request: NodePublishVolumeRequest, backing: Backing | undefined, fate: Fate['kind']): Outcome {
    const outcome = this.#publish(request, backing, fate);
    if (outcome.status !== 0) this.#forgetEphemeral(backing);
    return outcome;
  }

  #publish(request: NodePublishVolumeRequest, backing: Backing | undefined, fate: Fate['kind']): Outcome {
    const nature = this.#nature();
    const { stages, stageMounts, bindsDevices } = nature;
    const target = request.targetPath as AbsolutePath;
    const staging = request.stagingTargetPath as AbsolutePath;
    if (backing === undefined) return refuse(STATUS.notFound, 'no such volume');
    const isStaging = stages && !backing.ephemeral;
    if (isStaging && !this.#isStaged(staging, backing))
      return refuse(STATUS.failedPrecondition, 'not staged');
    const parent = this.#kernel.inspect(parentOf(target));
    if (typeof parent === 'string' || parent.kind !== 'directory')
      return refuse(STATUS.internal, `no directory above ${target}`);
    if (!isStaging) {
      const { device } = request.publishContext;
      const isFresh = backing.resources.size === 0;
      // What came late of one that was detached since may be there, unknown to its orchestrator (seed 109425225).
      if (isFresh || backing.seenBy !== device) this.#see(backing, device);
      if (isFresh) backing.setUpBy = device;
      if (!backing.resources.has(target)) noteSetUp(backing, target, nature, device);
    }
    if (backing.block) {
      const how = { binds: bindsDevices, twice: fate === 'stack' };
      return outcomeOf(this.#devices.publish(backing, target, how));
    }
    const made = this.#kernel.makeDirectory(target, 0o750);
    if (made !== undefined && made !== 'EEXIST') return refuse(STATUS.internal, made);
    const options = request.readonly ? ['ro'] : [];
    const outcome = this.#mountOnce(target, backing, fate, () => {
      return isStaging && stageMounts
        ? this.#kernel.bind(staging, target, options)
        : this.#kernel.mountFileSystem(backing.fileSystem, target, options);
    });
    if (outcome.status !== 0) return outcome;
    backing.resources.add(target);
    applyMountGroup(request, backing);
    return outcome;
  }

  #unpublish(target: AbsolutePath, backing: Backing | undefined): Outcome {
    const outcome = this.#unpublished(target, backing);
    if (outcome.status === 0) backing?.setUpUnder.delete(target);
    return outcome;
  }

  #unpublished(target: AbsolutePath, backing: Backing | undefined): Outcome {
    if (backing?.block === true) return outcomeOf(this.#devices.unpublish(backing, target));
    const down = this.#takeDown(target, backing);
    if (down.status !== 0) return down;
    this.#kernel.removeDirectory(target);
    backing?.resources.delete(target);
    this.#forgetEphemeral(backing);
    return EMPTY;
  }

  #expand(request: NodeExpandVolumeRequest, backing: Backing | undefined): Outcome {
    const { expands, stages } = this.#nature();
    if (expands === 'no') return refuse(STATUS.unimplemented, 'this driver grows nothing');
    const isHere =
      backing !== undefined &&
      (backing.resources.has(request.volumePath) ||
        (stages && this.#isStaged(request.volumePath as AbsolutePath, backing)));
    if (!isHere) return refuse(STATUS.notFound, `no volume at ${request.volumePath}`);
    const wanted = request.capacityRange?.requiredBytes ?? backing.storageBytes;
    if (wanted > backing.limitBytes) return refuse(STATUS.outOfRange, `more than ${backing.limitBytes}`);
    if (expands === 'offline' && backing.resources.size > 0)
      return refuse(STATUS.failedPrecondition, 'it is in use');
    if (wanted > backing.nodeBytes) backing.nodeBytes = wanted;
    return { status: 0, reply: { capacityBytes: sizeTold(backing) } };
  }

  #makeEphemeral({ volumeId, volumeContext }: NodePublishVolumeRequest): Backing | undefined {
    return volumeContext[EPHEMERAL_KEY] === 'true'
      ? this.addVolume(volumeId, { ephemeral: true })
      : undefined;
  }

  #forgetEphemeral(backing: Backing | undefined): void {
    if (backing?.ephemeral === true && backing.resources.size === 0) this.#backings.delete(backing.handle);
  }

  #mountOnce(
    path: AbsolutePath,
    backing: Backing,
    fate: Fate['kind'],
    mount: () => string | undefined,
  ): Outcome {
    if (this.#kernel.isUnderStranger(path)) return refuse(STATUS.internal, `${path} is not what it was`);
    const top = this.#kernel.mountsAt(path).at(-1);
    if (top !== undefined && top.fileSystem !== backing.fileSystem)
      return refuse(STATUS.internal, `${path} has another mount`);
    const layers = (top === undefined ? 1 : 0) + (fate === 'stack' ? 1 : 0);
    for (let layer = 0; layer < layers; layer += 1) {
      const denied = mount();
      if (denied !== undefined) return refuse(STATUS.internal, denied);
    }
    return EMPTY;
  }

  #isStaged(path: AbsolutePath, backing: Backing): boolean {
    if (backing.block || !this.#nature().stageMounts) return backing.stagedAt.has(path);
    return this.#kernel.mountsAt(path).at(-1)?.fileSystem === backing.fileSystem;
  }

  /** Unmounts what of this volume is mounted there; absent is success. */
  #takeDown(path: AbsolutePath, backing: Backing | undefined): Outcome {
    const kernel = this.#kernel;
    if (kernel.isUnderStranger(path)) return refuse(STATUS.internal, `${path} is not what it was`);
    for (let top = kernel.mountsAt(path).at(-1); top !== undefined; top = kernel.mountsAt(path).at(-1)) {
      if (backing !== undefined && top.fileSystem !== backing.fileSystem)
        return refuse(STATUS.internal, 'not our mount');
      const denied = kernel.unmount(path);
      if (denied !== undefined) return refuse(STATUS.internal, `umount ${path}: ${denied}`);
    }
    return EMPTY;
  }
}

/** Some drivers say nothing of a device, and some tell the size of all that they have, in place of the volume's. */
function sizeTold({ block, handle, nodeBytes }: Backing): bigint {
  if (block) return 0n;
  const isPools = (handle.codePointAt(handle.length - 1) ?? 0) % 2 === 0;
  return isPools ? POOL_BYTES : nodeBytes;
}

function noteSetUp(backing: Backing, path: string, nature: DriverNature, device: string | undefined): void {
  const nodeId = nodeIdOf(backing, device);
  if (needsAttachment(nature) && nodeId !== undefined) backing.setUpUnder.set(path, nodeId);
  else backing.setUpUnder.delete(path);
}

/** Something to walk: directories in each other, with files. */
function plantTree(root: Inode): void {
  const tree = plantDirectory(root, TREE);
  for (const name of ['a', 'b']) {
    const directory = plantDirectory(tree, name);
    plant(directory, 'file', name);
    plant(plantDirectory(directory, 'deeper'), 'file', name);
  }
}

function outcomeOf(denied: string | undefined): Outcome {
  return denied === undefined ? EMPTY : refuse(STATUS.internal, denied);
}

/** A driver with VOLUME_MOUNT_GROUP gives all of the volume to the group it is told, as a mount option would. */
function applyMountGroup({ volumeCapability }: NodePublishVolumeRequest, { fileSystem }: Backing): void {
  const access = volumeCapability?.accessType;
  if (access?.$case !== 'mount' || access.value.volumeMountGroup === '') return;
  const gid = Number(access.value.volumeMountGroup);
  for (const inode of inodesOf(fileSystem.root)) inode.gid = gid;
}
