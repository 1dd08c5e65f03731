/**
 * A CSI driver over the simulated machine, correct by the specification (csi.v1, 1.13) unless its fates say otherwise.
 *
 * Stage mounts a device of the volume at the staging path, publish binds it to a target that the driver creates,
 * unpublish and unstage take that back; all idempotent, judged by the mount table as a driver without memory does, with
 * one call of a volume at a time (ABORTED). Killed, it forgets its open calls; mounts and volumes stay.
 */
import type { AbsolutePath, Cancel } from '../../mount/host.ts';
import { parentOf } from '../../mount/host.ts';
import {
  ControllerServiceCapability_RPC_Type as ControllerType,
  NodeServiceCapability_RPC_Type as NodeType,
  PluginCapability_Service_Type as ServiceType,
} from '../../plugins/csi/generated/csi.ts';
import { drawFate, type Fate, type FateRates } from './driver-fates.ts';
import type { DriverNature, DriverOracle, VolumeCallRecord } from './driver-oracle.ts';
import { type FileSystem, plant } from './file-tree.ts';
import type { Answer, Neighbour, Neighbours } from './neighbours.ts';
import type { Random } from './random.ts';
import type { SimKernel } from './sim-kernel.ts';
import { CANARY, type Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface SimDriverParts {
  readonly name: string;
  readonly kernel: SimKernel;
  readonly time: VirtualTime;
  readonly random: Random;
  readonly neighbours: Neighbours;
  readonly trace: Trace;
  readonly oracle: DriverOracle;
  readonly nature: DriverNature;
  /** CSI socket and registration socket; the directories exist. */
  readonly endpoint: AbsolutePath;
  readonly registration: AbsolutePath | undefined;
  /** One call of a volume at a time; false is a driver that trusts its caller. */
  readonly locks: boolean;
  readonly fates: () => FateRates;
  readonly latencyMsMax: number;
  /** Error messages repeat what the request said, secrets included. */
  readonly echoesSecrets: boolean;
}

/** One volume at the storage's end. */
export interface Backing {
  readonly handle: string;
  readonly fileSystem: FileSystem;
  /** What ControllerPublish made for this node; undefined while not attached. */
  attachment: string | undefined;
  /** Staging paths of a driver that stages without a mount. */
  readonly stagedAt: Set<string>;
  /** What the driver holds for its publications, through reboots, until each is unpublished. */
  readonly resources: Set<string>;
}

type Outcome =
  | { readonly status: 0; readonly reply: unknown }
  | { readonly status: number; readonly message: string };

const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;
const FAILED_PRECONDITION = 9;
const ABORTED = 10;
const UNIMPLEMENTED = 12;
const INTERNAL = 13;
const EMPTY: Outcome = { status: 0, reply: {} };
const CRASHED_MS_MAX = 20_000;

export class SimDriver implements Neighbour {
  readonly #parts: SimDriverParts;
  readonly #backings = new Map<string, Backing>();
  readonly #locked = new Set<string>();
  readonly #hung = new Set<string>();
  readonly #late = new Set<() => void>();
  readonly #timers = new Set<Cancel>();
  #nature: DriverNature;
  #sockets: number[] = [];
  #life = 0;
  #attachments = 0;
  /** Has it ever answered UNIMPLEMENTED by fault? Only a new instance makes the agent ask again. */
  saidUnimplemented = false;

  constructor(parts: SimDriverParts) {
    this.#parts = parts;
    this.#nature = parts.nature;
  }

  get isUp(): boolean {
    return this.#sockets.length > 0;
  }

  get nature(): DriverNature {
    return this.#nature;
  }

  get name(): string {
    return this.#parts.name;
  }

  addVolume(handle: string): Backing {
    const fileSystem = this.#parts.kernel.makeFileSystem('ext4', `/dev/sim/${handle}`, false);
    plant(fileSystem.root, 'identity', handle);
    plant(fileSystem.root, 'counter', '0');
    const backing: Backing = {
      handle,
      fileSystem,
      attachment: undefined,
      stagedAt: new Set(),
      resources: new Set(),
    };
    this.#backings.set(handle, backing);
    return backing;
  }

  backing(handle: string): Backing | undefined {
    return this.#backings.get(handle);
  }

  /** Starts, or starts again with new sockets; `nature` replaces what it can do from now on. */
  start(nature: DriverNature = this.#nature): void {
    if (this.isUp) this.stop();
    const { kernel, neighbours, endpoint, registration, trace, name, oracle } = this.#parts;
    if (nature.stages !== this.#nature.stages) oracle.forgetArguments();
    this.#nature = nature;
    for (const path of [endpoint, registration]) {
      if (path === undefined) continue;
      kernel.removeFile(path);
      this.#sockets.push(neighbours.listen(path, this));
    }
    trace.add(`driver ${name} starts, stages ${nature.stages}, attaches ${nature.attaches}`);
  }

  /** Dies: open calls are never answered; `tidy` takes its sockets along. */
  stop(tidy = false): void {
    const { kernel, neighbours, endpoint, registration, trace, name } = this.#parts;
    this.#life += 1;
    for (const inode of this.#sockets) neighbours.close(inode);
    this.#sockets = [];
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    this.#locked.clear();
    this.#hung.clear();
    this.#late.clear();
    if (tidy) {
      kernel.removeFile(endpoint);
      if (registration !== undefined) kernel.removeFile(registration);
    }
    trace.add(`driver ${name} stops`);
  }

  /** Calls that hung end without a word, those that are late end now. */
  heal(): void {
    for (const handle of this.#hung) this.#locked.delete(handle);
    this.#hung.clear();
    for (const finish of [...this.#late]) finish();
  }

  /** The node lost power: what was staged without a mount is gone too. */
  losePower(): void {
    this.stop();
    for (const backing of this.#backings.values()) backing.stagedAt.clear();
  }

  serve(path: string, request: unknown, waiting: () => boolean, answer: (answer: Answer) => boolean): void {
    const method = path.slice(path.lastIndexOf('/') + 1);
    if (isVolumeMethod(method))
      return this.#serveVolume({ method, request } as VolumeCallRecord, waiting, answer);
    const reply = this.#describe(method);
    this.#after(this.#parts.random.between(0, this.#parts.latencyMsMax), () => {
      answer(
        reply === undefined
          ? { kind: 'status', status: UNIMPLEMENTED, message: method }
          : { kind: 'ok', reply },
      );
    });
  }

  #serveVolume(call: VolumeCallRecord, waiting: () => boolean, answer: (answer: Answer) => boolean): void {
    const { oracle, random, trace, latencyMsMax, locks, fates, echoesSecrets } = this.#parts;
    const { volumeId } = call.request;
    const end = oracle.begin(call, this.#nature, waiting);
    const fate = drawFate(fates(), random);
    trace.add(`driver ${call.method} ${volumeId} ${placeOf(call)} ${describe(fate)}`);
    const reply = (outcome: Outcome): void => {
      this.#locked.delete(volumeId);
      trace.add(`driver ${call.method} ${volumeId} answers ${outcome.status}`);
      if ('message' in outcome && outcome.status === UNIMPLEMENTED) this.saidUnimplemented = true;
      const heard = answer(
        'message' in outcome
          ? { kind: 'status', ...outcome, message: outcome.message + (echoesSecrets ? spill(call) : '') }
          : { kind: 'ok', reply: outcome.reply },
      );
      end(outcome.status, heard);
    };
    if (this.#locked.has(volumeId) && locks) {
      this.#after(random.between(0, latencyMsMax), () =>
        end(ABORTED, answer(status(ABORTED, 'another call is running'))),
      );
      return;
    }
    this.#locked.add(volumeId);
    if (fate.kind === 'hung') {
      this.#hung.add(volumeId);
      return;
    }
    const delayMs = fate.kind === 'late' ? fate.delayMs : random.between(0, latencyMsMax);
    const finish = (): void => {
      cancel();
      this.#late.delete(finish);
      this.#finish(call, fate, reply, answer);
    };
    const cancel = this.#after(delayMs, finish);
    if (fate.kind === 'late') this.#late.add(finish);
  }

  #finish(
    call: VolumeCallRecord,
    fate: Fate,
    reply: (outcome: Outcome) => void,
    answer: (answer: Answer) => boolean,
  ): void {
    switch (fate.kind) {
      case 'status':
        if (fate.effect) this.#perform(call, 'plain');
        if (fate.status === NOT_FOUND) this.#forget(call);
        return reply({ status: fate.status, message: `fault ${fate.status}` });
      case 'lie':
        return reply(this.#lie(call));
      case 'crash':
        if (fate.effect) this.#perform(call, 'plain');
        this.stop();
        this.#parts.time.after(this.#parts.random.between(0, CRASHED_MS_MAX), () => {
          if (!this.isUp) this.start();
        });
        answer({ kind: 'broken', message: 'connection reset' });
        return;
      case 'plain':
      case 'late':
      case 'hung':
      case 'stack':
        return reply(this.#perform(call, fate.kind));
    }
  }

  /** A driver that says at a teardown that it does not know the volume keeps nothing of what is not mounted (GR-05). */
  #forget({ method, request }: VolumeCallRecord): void {
    const backing = this.#backings.get(request.volumeId);
    const isMounted = (path: string): boolean => {
      const seen = this.#parts.kernel.lookUpMount(path as AbsolutePath);
      return typeof seen !== 'string' && seen.mounted;
    };
    if (method === 'NodeUnpublishVolume' && !isMounted(request.targetPath))
      backing?.resources.delete(request.targetPath);
    if (method === 'NodeUnstageVolume' && !isMounted(request.stagingTargetPath))
      backing?.stagedAt.delete(request.stagingTargetPath);
  }

  #perform(call: VolumeCallRecord, fate: Fate['kind']): Outcome {
    const backing = this.#backings.get(call.request.volumeId);
    const missing = missingFrom(call);
    if (missing !== undefined) return refuse(INVALID_ARGUMENT, `no ${missing}`);
    switch (call.method) {
      case 'ControllerPublishVolume':
        return this.#attach(backing);
      case 'ControllerUnpublishVolume':
        if (backing !== undefined) backing.attachment = undefined;
        return EMPTY;
      case 'NodeStageVolume':
        return this.#stage(
          call.request.stagingTargetPath as AbsolutePath,
          call.request.publishContext,
          backing,
          fate,
        );
      case 'NodeUnstageVolume':
        backing?.stagedAt.delete(call.request.stagingTargetPath);
        return this.#takeDown(call.request.stagingTargetPath as AbsolutePath, backing);
      case 'NodePublishVolume':
        return this.#publish(call.request, backing, fate);
      case 'NodeUnpublishVolume': {
        const target = call.request.targetPath as AbsolutePath;
        const down = this.#takeDown(target, backing);
        if (down.status !== 0) return down;
        this.#parts.kernel.removeDirectory(target);
        backing?.resources.delete(target);
        return EMPTY;
      }
    }
  }

  #attach(backing: Backing | undefined): Outcome {
    if (backing === undefined) return refuse(NOT_FOUND, 'no such volume');
    if (backing.attachment === undefined) {
      this.#attachments += 1;
      backing.attachment = `lun-${this.#attachments}`;
    }
    return { status: 0, reply: { publishContext: { device: backing.attachment } } };
  }

  #stage(
    path: AbsolutePath,
    context: Readonly<Record<string, string>>,
    backing: Backing | undefined,
    fate: Fate['kind'],
  ): Outcome {
    const { kernel } = this.#parts;
    if (backing === undefined) return refuse(NOT_FOUND, 'no such volume');
    if (
      this.#nature.attaches &&
      (backing.attachment === undefined || context['device'] !== backing.attachment)
    ) {
      return refuse(FAILED_PRECONDITION, `device ${context['device'] ?? ''} is not attached`);
    }
    const facts = kernel.inspect(path);
    if (typeof facts === 'string' || facts.kind !== 'directory')
      return refuse(INTERNAL, `no directory ${path}`);
    if (!this.#nature.stageMounts) {
      backing.stagedAt.add(path);
      return EMPTY;
    }
    return this.#mountOnce(path, backing, fate, () => kernel.mountFileSystem(backing.fileSystem, path, []));
  }

  #publish(
    request: Extract<VolumeCallRecord, { method: 'NodePublishVolume' }>['request'],
    backing: Backing | undefined,
    fate: Fate['kind'],
  ): Outcome {
    const { kernel } = this.#parts;
    const target = request.targetPath as AbsolutePath;
    const staging = request.stagingTargetPath as AbsolutePath;
    if (backing === undefined) return refuse(NOT_FOUND, 'no such volume');
    const options = request.readonly ? ['ro'] : [];
    if (this.#nature.stages && !this.#isStaged(staging, backing))
      return refuse(FAILED_PRECONDITION, 'not staged');
    const parent = kernel.inspect(parentOf(target));
    if (typeof parent === 'string' || parent.kind !== 'directory')
      return refuse(INTERNAL, `no directory above ${target}`);
    const made = kernel.makeDirectory(target, 0o750);
    if (made !== undefined && made !== 'EEXIST') return refuse(INTERNAL, made);
    const binds = this.#nature.stages && this.#nature.stageMounts;
    const outcome = this.#mountOnce(target, backing, fate, () => {
      return binds
        ? kernel.bind(staging, target, options)
        : kernel.mountFileSystem(backing.fileSystem, target, options);
    });
    if (outcome.status === 0) backing.resources.add(target);
    return outcome;
  }

  #mountOnce(
    path: AbsolutePath,
    backing: Backing,
    fate: Fate['kind'],
    mount: () => string | undefined,
  ): Outcome {
    const { kernel } = this.#parts;
    const top = kernel.mountsAt(path).at(-1);
    if (top !== undefined && top.fileSystem !== backing.fileSystem)
      return refuse(INTERNAL, `${path} has another mount`);
    const layers = (top === undefined ? 1 : 0) + (fate === 'stack' ? 1 : 0);
    for (let layer = 0; layer < layers; layer += 1) {
      const denied = mount();
      if (denied !== undefined) return refuse(INTERNAL, denied);
    }
    return EMPTY;
  }

  #isStaged(path: AbsolutePath, backing: Backing): boolean {
    if (!this.#nature.stageMounts) return backing.stagedAt.has(path);
    return this.#parts.kernel.mountsAt(path).at(-1)?.fileSystem === backing.fileSystem;
  }

  /** Unmounts what of this volume is mounted there; absent is success. */
  #takeDown(path: AbsolutePath, backing: Backing | undefined): Outcome {
    const { kernel } = this.#parts;
    for (let top = kernel.mountsAt(path).at(-1); top !== undefined; top = kernel.mountsAt(path).at(-1)) {
      if (backing !== undefined && top.fileSystem !== backing.fileSystem)
        return refuse(INTERNAL, 'not our mount');
      const denied = kernel.unmount(path);
      if (denied !== undefined) return refuse(INTERNAL, `umount ${path}: ${denied}`);
    }
    return EMPTY;
  }

  #lie(call: VolumeCallRecord): Outcome {
    if (call.method === 'ControllerPublishVolume' || call.method === 'ControllerUnpublishVolume') {
      return this.#perform(call, 'plain');
    }
    // It has forgotten what it never took down.
    const backing = this.#backings.get(call.request.volumeId);
    if (call.method === 'NodeUnpublishVolume') backing?.resources.delete(call.request.targetPath);
    if (call.method === 'NodeUnstageVolume') backing?.stagedAt.delete(call.request.stagingTargetPath);
    return EMPTY;
  }

  #describe(method: string): unknown {
    const { name, endpoint } = this.#parts;
    switch (method) {
      case 'GetInfo':
        return { type: 'CSIPlugin', name, endpoint, supportedVersions: ['1.0.0'] };
      case 'NotifyRegistrationStatus':
        return {};
      case 'GetPluginInfo':
        return { name, vendorVersion: `1.${this.#life}.0`, manifest: {} };
      case 'GetPluginCapabilities': {
        const service = { $case: 'service', value: { type: ServiceType.CONTROLLER_SERVICE } } as const;
        return { capabilities: this.#nature.attaches ? [{ type: service }] : [] };
      }
      case 'Probe':
        return { ready: true };
      case 'NodeGetInfo':
        return { nodeId: 'node-sim', maxVolumesPerNode: 0n, accessibleTopology: undefined };
      case 'NodeGetCapabilities':
        return { capabilities: this.#nature.stages ? [rpc(NodeType.STAGE_UNSTAGE_VOLUME)] : [] };
      case 'ControllerGetCapabilities':
        return this.#nature.attaches
          ? { capabilities: [rpc(ControllerType.PUBLISH_UNPUBLISH_VOLUME)] }
          : undefined;
      default:
        return undefined;
    }
  }

  #after(delayMs: number, act: () => void): Cancel {
    const cancel = this.#parts.time.after(delayMs, () => {
      this.#timers.delete(cancel);
      act();
    });
    this.#timers.add(cancel);
    return cancel;
  }
}

const VOLUME_METHODS: ReadonlySet<string> = new Set([
  'ControllerPublishVolume',
  'ControllerUnpublishVolume',
  'NodeStageVolume',
  'NodeUnstageVolume',
  'NodePublishVolume',
  'NodeUnpublishVolume',
] satisfies VolumeCallRecord['method'][]);

function isVolumeMethod(method: string): method is VolumeCallRecord['method'] {
  return VOLUME_METHODS.has(method);
}

function missingFrom(call: VolumeCallRecord): string | undefined {
  const { method, request } = call;
  if (request.volumeId === '') return 'volume id';
  if ('targetPath' in request && request.targetPath === '') return 'target path';
  const staging = method === 'NodeStageVolume' || method === 'NodeUnstageVolume';
  if (staging && request.stagingTargetPath === '') return 'staging path';
  return 'volumeCapability' in request && request.volumeCapability === undefined ? 'capability' : undefined;
}

function rpc(type: number): unknown {
  return { type: { $case: 'rpc', value: { type } } };
}

function refuse(code: number, message: string): Outcome {
  return { status: code, message };
}

function status(code: number, message: string): Answer {
  return { kind: 'status', status: code, message };
}

function placeOf({ request }: VolumeCallRecord): string {
  if ('targetPath' in request) return request.targetPath;
  return 'stagingTargetPath' in request ? request.stagingTargetPath : '';
}

function describe(fate: Fate): string {
  return fate.kind === 'plain' ? '' : JSON.stringify(fate);
}

/** What a careless driver writes into its errors. */
function spill({ request }: VolumeCallRecord): string {
  const secrets = 'secrets' in request ? Object.values(request.secrets) : [];
  return secrets.some((value) => value.includes(CANARY)) ? ` (credentials ${secrets.join(' ')})` : '';
}
