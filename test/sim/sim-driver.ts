/**
 * A CSI driver over the simulated machine, correct by the specification (csi.v1, 1.13) unless its fates say otherwise:
 * its life, its sockets, one call of a volume at a time (ABORTED), and what goes wrong. What its calls do is
 * volume-service.ts. Killed, it forgets its open calls; mounts and volumes stay.
 */
import type { AbsolutePath, Cancel } from '../../mount/host.ts';
import {
  ControllerServiceCapability_RPC_Type as ControllerType,
  NodeServiceCapability_RPC_Type as NodeType,
  PluginCapability_Service_Type as ServiceType,
} from '../../plugins/csi/wire/generated/csi.ts';
import type { Backing, BackingOptions } from './backing.ts';
import {
  isQuestion,
  isRungCall,
  isTeardown,
  isVolumeMethod,
  placeOf,
  type RungCall,
  STATUS,
  type VolumeCallRecord,
} from './driver-call.ts';
import { drawFate, type Fate, type FateRates } from './driver-fates.ts';
import { attachesNow, type DriverNature, hasController, PLAIN_NATURE } from './driver-nature.ts';
import type { DriverOracle } from './driver-oracle.ts';
import type { Answer, Neighbour, Neighbours } from './neighbours.ts';
import type { Random } from './random.ts';
import type { SimKernel } from './sim-kernel.ts';
import { CANARY, type Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';
import { type Outcome, VolumeService } from './volume-service.ts';

export interface SimDriverParts {
  readonly name: string;
  readonly kernel: SimKernel;
  readonly time: VirtualTime;
  readonly random: Random;
  readonly neighbours: Neighbours;
  readonly trace: Trace;
  readonly oracle: DriverOracle;
  readonly nature: DriverNature;
  /** What it is when it starts again, in place of what it was. */
  readonly reborn?: (nature: DriverNature) => DriverNature;
  /** CSI socket and registration socket; the directories exist. */
  readonly endpoint: AbsolutePath;
  readonly registration: AbsolutePath | undefined;
  /** One call of a volume at a time; false is a driver that trusts its caller. */
  readonly locks: boolean;
  readonly fates: () => FateRates;
  readonly latencyMsMax: number;
  /** The caller's deadline, and the latest moment after the call at which a straggler has its effect. */
  readonly deadlineMs: number;
  readonly stragglerMsMax: number;
  /** Nothing on the machine says any more that this was called then: the volume's record was damaged since. */
  readonly isForgotten: (volumeId: string, calledMs: number) => boolean;
  /** A straggler has taken away what was there. */
  readonly onTaken: () => void;
  /** Error messages repeat what the request said, secrets included. */
  readonly echoesSecrets: boolean;
}

const STRAGGLER_MS_MIN = 500;
const CRASHED_MS_MAX = 20_000;
const START_AGAIN_MS = 1_000;
const HUNG_LOOK_MS = 1_000;
const HUNG_IS_BUSY = 0.6;
/** A call that this life of the driver does not have. */
const UNSERVED: Fate = { kind: 'status', status: STATUS.unimplemented, effect: false };

export class SimDriver implements Neighbour {
  readonly #parts: SimDriverParts;
  readonly #volumes: VolumeService;
  readonly #locked = new Set<string>();
  readonly #hung = new Set<string>();
  readonly #late = new Set<() => void>();
  readonly #timers = new Set<Cancel>();
  #nature: DriverNature;
  #sockets: number[] = [];
  #life = 0;
  #hasStarted = false;
  #boots = 0;
  readonly #straggling = new Set<RungCall>();
  /** Ends with the life, and when all is healed: nobody is at work any more on what was asked before. */
  #shift = 0;
  /** Has it ever answered UNIMPLEMENTED by fault? Only a new instance makes the agent ask again. */
  saidUnimplemented = false;

  constructor(parts: SimDriverParts) {
    this.#parts = parts;
    this.#nature = parts.nature;
    this.#volumes = new VolumeService(parts.kernel, () => this.#nature);
  }

  get isUp(): boolean {
    return this.#sockets.length > 0;
  }

  /** A call is open here, whether anybody waits for it or not. */
  get isBusy(): boolean {
    return this.#locked.size + this.#hung.size + this.#late.size + this.#timers.size > 0;
  }

  /** Calls that everybody has given up may still take effect. */
  get isStraggling(): boolean {
    return this.#straggling.size > 0;
  }

  /** What calls that everybody has given up are about, and may still mount. */
  get lateTargets(): readonly AbsolutePath[] {
    return [...this.#straggling]
      .filter((call) => !isTeardown(call))
      .map((call) => placeOf(call) as AbsolutePath);
  }

  get nature(): DriverNature {
    return this.#nature;
  }

  get name(): string {
    return this.#parts.name;
  }

  addVolume(handle: string, options: Partial<BackingOptions> = {}): Backing {
    return this.#volumes.addVolume(handle, options);
  }

  backing(handle: string): Backing | undefined {
    return this.#volumes.backing(handle);
  }

  backings(): IterableIterator<Backing> {
    return this.#volumes.backings();
  }

  /** By whoever attaches for a cluster. The answer: what the node's driver is to be told. */
  attach(handle: string): Readonly<Record<string, string>> {
    return this.#volumes.attach(handle);
  }

  moveAttachment(handle: string): Readonly<Record<string, string>> | undefined {
    return this.#volumes.moveAttachment(handle);
  }

  detach(handle: string): void {
    this.#volumes.detach(handle);
  }

  /** Starts, or starts again with new sockets; `nature` replaces what it can do from now on. */
  start(nature: DriverNature = this.#nature): void {
    if (this.isUp) this.stop();
    const { kernel, neighbours, endpoint, registration, trace, name, oracle } = this.#parts;
    if (nature.stages !== this.#nature.stages) oracle.forgetArguments();
    this.#nature = nature;
    const isHidden = [endpoint, registration].some(
      (path) => path !== undefined && kernel.isUnderStranger(path),
    );
    if (isHidden) {
      // It cannot come up where its directory is not.
      this.#parts.time.after(START_AGAIN_MS, () => {
        if (!this.isUp) this.start();
      });
      return;
    }
    for (const path of [endpoint, registration]) {
      if (path === undefined) continue;
      kernel.removeFile(path);
      this.#sockets.push(neighbours.listen(path, this));
    }
    if (this.#hasStarted) this.#nature = this.#parts.reborn?.(nature) ?? nature;
    this.#hasStarted = true;
    const { controller, nodeId } = this.#nature;
    oracle.noteNodeId(nodeId);
    const part = controller === 'whole' ? '' : `, controller ${controller}`;
    const node = nodeId === PLAIN_NATURE.nodeId ? '' : `, node ${nodeId}`;
    trace.add(`driver ${name} starts, stages ${nature.stages}, attaches ${nature.attaches}${part}${node}`);
  }

  /** Dies: open calls are never answered; `tidy` takes its sockets along. */
  stop(tidy = false): void {
    this.#shift += 1;
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
    this.#shift += 1;
    for (const handle of this.#hung) this.#locked.delete(handle);
    this.#hung.clear();
    for (const finish of [...this.#late]) finish();
  }

  /** The node lost power: what was staged without a mount is gone too. */
  losePower(): void {
    this.stop();
    this.#boots += 1;
    this.#straggling.clear();
    this.#volumes.losePower();
  }

  serve(path: string, request: unknown, waiting: () => boolean, answer: (answer: Answer) => boolean): void {
    const method = path.slice(path.lastIndexOf('/') + 1);
    if (isVolumeMethod(method))
      return this.#serveVolume({ method, request } as VolumeCallRecord, waiting, answer);
    const reply = this.#describe(method);
    this.#after(this.#parts.random.between(0, this.#parts.latencyMsMax), () => {
      answer(
        reply === undefined
          ? { kind: 'status', status: STATUS.unimplemented, message: method }
          : { kind: 'ok', reply },
      );
    });
  }

  #serveVolume(call: VolumeCallRecord, waiting: () => boolean, answer: (answer: Answer) => boolean): void {
    const { oracle, random, trace, latencyMsMax, locks, fates, echoesSecrets } = this.#parts;
    const { volumeId } = call.request;
    const shift = this.#shift;
    const end = oracle.begin(call, this.#nature, waiting, () => this.#shift === shift);
    const drawn = drawFate(fates(), random);
    const fate = this.#isServed(call) ? drawn : UNSERVED;
    trace.add(`driver ${call.method} ${volumeId} ${placeOf(call)} ${describe(fate)}`);
    const asks = isQuestion(call);
    const reply = (outcome: Outcome): void => {
      if (!asks) this.#locked.delete(volumeId);
      trace.add(`driver ${call.method} ${volumeId} answers ${outcome.status}`);
      if ('message' in outcome && outcome.status === STATUS.unimplemented) this.saidUnimplemented = true;
      const heard = answer(
        'message' in outcome
          ? { kind: 'status', ...outcome, message: outcome.message + (echoesSecrets ? spill(call) : '') }
          : { kind: 'ok', reply: outcome.reply },
      );
      end(outcome.status, heard);
    };
    if (this.#locked.has(volumeId) && locks && !asks) {
      this.#after(random.between(0, latencyMsMax), () =>
        end(STATUS.aborted, answer(status(STATUS.aborted, 'another call is running'))),
      );
      return;
    }
    // A driver answers questions without its lock; one that hangs hangs alone.
    if (!asks) this.#locked.add(volumeId);
    if (fate.kind === 'hung') {
      if (!asks) this.#hung.add(volumeId);
      return;
    }
    if (fate.kind === 'straggler' && isRungCall(call)) return this.#straggle(call);
    const hang = this.backing(volumeId)?.fileSystem.hang;
    // What it asks the mount about waits as everybody does; what it takes down it may find busy, and says so at once.
    if (hang !== undefined && asks)
      return this.#whileHung(volumeId, () => this.#finish(call, fate, reply, answer));
    if (hang !== undefined && isTeardown(call) && random.chance(HUNG_IS_BUSY))
      return reply({ status: STATUS.internal, message: 'target is busy' });
    const delayMs = fate.kind === 'late' ? fate.delayMs : random.between(0, latencyMsMax);
    const finish = (): void => {
      cancel();
      this.#late.delete(finish);
      this.#finish(call, fate, reply, answer);
    };
    const cancel = this.#after(delayMs, finish);
    if (fate.kind === 'late') this.#late.add(finish);
  }

  #isServed(call: VolumeCallRecord): boolean {
    const { method, request } = call;
    if (method !== 'ControllerPublishVolume' && method !== 'ControllerUnpublishVolume') return true;
    if (method === 'ControllerUnpublishVolume' && this.#nature.controller === 'attaches-nothing')
      this.#volumes.backing(request.volumeId)?.attachments.delete(request.nodeId);
    return attachesNow(this.#nature);
  }

  #whileHung(handle: string, onEnd: () => void): void {
    this.#after(HUNG_LOOK_MS, () => {
      if (this.backing(handle)?.fileSystem.hang === undefined) onEnd();
      else this.#whileHung(handle, onEnd);
    });
  }

  #straggle(call: RungCall): void {
    const { time, random, trace, deadlineMs, stragglerMsMax, onTaken, isForgotten } = this.#parts;
    const calledMs = time.nowMs();
    const life = this.#life;
    const boot = this.#boots;
    const { volumeId } = call.request;
    time.after(deadlineMs + 1, () => {
      if (life === this.#life) this.#locked.delete(volumeId);
    });
    this.#straggling.add(call);
    time.after(random.between(STRAGGLER_MS_MIN, stragglerMsMax), () => {
      if (boot !== this.#boots) return;
      this.#straggling.delete(call);
      if (call.method === 'NodeStageVolume' && isForgotten(volumeId, calledMs)) return;
      const { status, taken } = this.#volumes.straggle(call);
      trace.add(`driver ${call.method} ${volumeId} ${placeOf(call)} takes effect at last: ${status}`);
      if (taken) onTaken();
    });
  }

  #finish(
    call: VolumeCallRecord,
    fate: Fate,
    reply: (outcome: Outcome) => void,
    answer: (answer: Answer) => boolean,
  ): void {
    switch (fate.kind) {
      case 'status':
        if (fate.effect) this.#volumes.perform(call, 'plain');
        if (fate.status === STATUS.notFound) this.#volumes.forget(call);
        return reply({ status: fate.status, message: `fault ${fate.status}` });
      case 'lie':
        return reply(this.#volumes.lie(call));
      case 'crash':
        if (fate.effect) this.#volumes.perform(call, 'plain');
        this.stop();
        this.#parts.time.after(this.#parts.random.between(0, CRASHED_MS_MAX), () => {
          if (!this.isUp) this.start();
        });
        answer({ kind: 'broken', message: 'connection reset' });
        return;
      case 'plain':
      case 'late':
      case 'straggler':
      case 'hung':
      case 'stack':
        return reply(this.#volumes.perform(call, fate.kind));
    }
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
        return { capabilities: hasController(this.#nature) ? [{ type: service }] : [] };
      }
      case 'Probe':
        return { ready: true };
      case 'NodeGetInfo':
        return { nodeId: this.#nature.nodeId, maxVolumesPerNode: 0n, accessibleTopology: undefined };
      case 'NodeGetCapabilities':
        return { capabilities: nodeCapabilities(this.#nature).map(rpc) };
      case 'ControllerGetCapabilities':
        return hasController(this.#nature)
          ? { capabilities: controllerCapabilities(this.#nature).map(rpc) }
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

function nodeCapabilities(nature: DriverNature): number[] {
  return [
    ...(nature.stages ? [NodeType.STAGE_UNSTAGE_VOLUME] : []),
    ...(nature.expands === 'no' ? [] : [NodeType.EXPAND_VOLUME]),
    ...(nature.multiWriter ? [NodeType.SINGLE_NODE_MULTI_WRITER] : []),
    ...(nature.mountGroup ? [NodeType.VOLUME_MOUNT_GROUP] : []),
    ...(nature.statistics ? [NodeType.GET_VOLUME_STATS] : []),
    ...(nature.health ? [NodeType.GET_VOLUME_HEALTH] : []),
  ];
}

function controllerCapabilities(nature: DriverNature): number[] {
  return [
    ...(attachesNow(nature) ? [ControllerType.PUBLISH_UNPUBLISH_VOLUME] : []),
    ...(nature.controllerMultiWriter ? [ControllerType.SINGLE_NODE_MULTI_WRITER] : []),
  ];
}

function rpc(type: number): unknown {
  return { type: { $case: 'rpc', value: { type } } };
}

function status(code: number, message: string): Answer {
  return { kind: 'status', status: code, message };
}

function describe(fate: Fate): string {
  return fate.kind === 'plain' ? '' : JSON.stringify(fate);
}

/** What a careless driver writes into its errors. */
function spill({ request }: VolumeCallRecord): string {
  const secrets = 'secrets' in request ? Object.values(request.secrets) : [];
  return secrets.some((value) => value.includes(CANARY)) ? ` (credentials ${secrets.join(' ')})` : '';
}
