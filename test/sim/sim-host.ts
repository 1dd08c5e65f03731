/**
 * One life of the agent's Host over the simulated machine. Every method is one effect: begun, landed, answered, with
 * time between, faults by the weather, and a boundary before and after at which the process may die.
 *
 * Guarantees of a dead life: no promise of it ever settles, no timer of it ever fires; an effect that was under way
 * has landed, or half landed, or not, by the seed. A driver call that reached the driver goes on without us.
 */
import type { WriteOptions } from '../../mount/temporary-file.ts';
import type { Usage, UsageRequest } from '../../mount/usage.ts';
import { usageOf } from './sim-usage.ts';
import type { PlaceHolder, PlaceHolders } from '../../mount/holder/place-holder.ts';
import { isDeepStrictEqual } from 'node:util';
import { fail, type Failure, type FailureCode, ok, type Result } from '../../mount/failure.ts';
import type { OwnershipPart, OwnershipPartReport } from '../../mount/broker/file/ownership-part.ts';
import {
  type AbsolutePath,
  below,
  type Cancel,
  type DeviceNumber,
  type ContentStamp,
  type DirectoryIdentity,
  type DirectoryReading,
  type Disk,
  type FileEntry,
  type FileSystemProbe,
  type Host,
  type MountLookup,
  type MountPlace,
  type MountRequest,
  parentOf,
  type PathFacts,
  wayTo,
} from '../../mount/host.ts';
import type { IscsiLogin, IscsiSession, IscsiWay } from '../../mount/block-devices.ts';
import type { BoundPart, PartBind } from '../../mount/part-bind.ts';
import type { OwnershipReport, OwnershipRequest } from '../../mount/ownership.ts';
import type { RemoteCall, RemoteReply } from '../../mount/remote-call.ts';
import type { Transition, TransitionArgs } from '../../mount/transition.ts';
import type { GrowingFileSystem } from '../../mount/block-devices.ts';
import {
  type DeviceContent,
  type FileSystemType,
  isFileSystemType,
} from '../../mount/device/file-system-tools.ts';
import { createFileSystemQuestion } from '../../mount/agent-side/file-system-question.ts';
import { createMountTable, type MountTable } from '../../mount/mount-table.ts';
import { createOwnership, type OwnershipParts } from '../../mount/agent-side/fs-group-walk.ts';
import { aboutPath } from '../contract/about-path.ts';
import { withinRoom } from '../contract/content-room.ts';
import { performStepwise } from '../perform-stepwise.ts';
import type { Errno, FileSystem, Inode } from './file-tree.ts';
import { doubtAbout, failureOf, refusalOf } from './host-failures.ts';
import type { Neighbours } from './neighbours.ts';
import { OpenWork } from './open-work.ts';
import { bindPart, preparePart } from './part-effects.ts';
import type { Random } from './random.ts';
import { factsOf, type SimKernel } from './sim-kernel.ts';
import type { Trace } from './trace.ts';
import { changeOwnershipPart, removeBelow } from './tree-effects.ts';
import type { VirtualTime } from './virtual-time.ts';
import type { EffectFaults, EffectKind, Weather } from './weather.ts';

export interface SimHostParts {
  readonly kernel: SimKernel;
  readonly time: VirtualTime;
  readonly random: Random;
  readonly neighbours: Neighbours;
  readonly trace: Trace;
  /** Read anew for every effect. */
  readonly weather: () => Weather;
  /** Called before an effect lands and before it answers; true: the process dies at this point. */
  readonly boundary: (kind: EffectKind, moment: 'before' | 'after') => boolean;
  /** Called when an effect begins, with the path it is about. */
  readonly onEffect: (kind: EffectKind, path: string) => void;
  /** What left the process by file, for the search for secrets. */
  readonly onWrite: (path: AbsolutePath, content: Uint8Array) => void;
  /** Every listing the agent was answered, for the oracle of what it can know. */
  readonly onListing: (path: AbsolutePath) => void;
  /** It is looked at which disk has the number of what is there. */
  readonly onIdentify: (path: AbsolutePath) => void;
  /** An effect was answered with a failure, or given up. */
  readonly onFailed: (kind: EffectKind, path: string, code: FailureCode) => void;
  /** An effect that takes no time and no chance: what a seed is not about leaves its story as it was. */
  readonly isQuiet: (kind: EffectKind, path: string) => boolean;
  /** Somebody mounts over our places. */
  readonly strangers?: boolean;
  /** Who has something of a place; undefined: nobody ever has, and asking takes no time. */
  readonly holdersAt?: ((path: AbsolutePath) => readonly PlaceHolder[]) | undefined;
  /** The root is bound onto itself: the table has a second line for everything. */
  readonly doubledRoot?: boolean;
}

const SLOW_MS_MAX = 60_000;
const TWO_STEP_ANSWER = 0.2;
const HUNG_LOOK_MS = 1_000;
const DEVICE_USERS_MAX = 32;
/** A portal that is silent is given up by then. */
const SILENT_MS_MAX = 90_000;
const PLACE_HOLDERS_MAX = 8;

/** An effect under way: what it does at once, and what it does when the process is killed in the middle. */
interface Pending {
  readonly land: () => void;
  readonly landHalf: (() => void) | undefined;
}

interface Act<T> {
  readonly kind: EffectKind;
  readonly what: string;
  /** What it is about, where `what` says more. */
  readonly path?: string;
  readonly apply: () => Result<T>;
  /** The part of a compound effect that a kill can leave behind. */
  readonly applyHalf?: () => void;
  readonly readOnly?: boolean;
  /** What is mounted at the path is not asked. */
  readonly passesBy?: boolean;
  /** Ends it where it hangs. */
  readonly signal?: AbortSignal;
}

/** As in linux-host.ts: when a call that hangs is killed. */
const DEADLINE_MS = 30_000;
const PROBE_DEADLINE_MS = 10_000;

export class SimHost implements Host {
  readonly bootId: string;
  readonly #bootedMs: number;
  readonly #parts: SimHostParts;
  readonly #pending = new Set<Pending>();
  #callsUnderWay = 0;
  /** What was looked at and done, and is not known to the agent yet (seed 411040534). */
  #answersUnderWay = 0;
  readonly work = new OpenWork(() => this.#parts.time.nowMs());
  #alive = true;
  /** The walk is the product's own, over parts of ours. */
  readonly ownershipParts: OwnershipParts = {
    clock: this,
    ageMs: 0,
    change: (part, company) => this.#changeOwnershipPart(part, company),
  };

  readonly #ownership = createOwnership(this.ownershipParts);

  /** So is the way in which one that may hang is asked. */
  readonly #question = createFileSystemQuestion({
    clock: this,
    ask: (path, onBegin) => {
      onBegin();
      return this.#probe(path);
    },
    mountIdOf: async (path) => this.#mountIdAt(path),
    deadlineMs: 2 * PROBE_DEADLINE_MS,
    turnMs: 2 * PROBE_DEADLINE_MS,
  });

  constructor(parts: SimHostParts) {
    this.#parts = parts;
    this.bootId = parts.kernel.bootId;
    this.#bootedMs = parts.kernel.bootedMs;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Effects begun and not answered, and calls that have not come to their drivers yet. */
  get pendingCount(): number {
    return this.#pending.size + this.#callsUnderWay + this.#answersUnderWay;
  }

  /** The process is gone; what was under way ends by the seed. */
  kill(): void {
    if (!this.#alive) return;
    this.#alive = false;
    const { random } = this.#parts;
    for (const pending of random.shuffled([...this.#pending])) {
      const fate = random.next();
      if (fate < 0.4) pending.land();
      else if (fate < 0.6) pending.landHalf?.();
    }
    this.#pending.clear();
  }

  nowMs(): number {
    return this.#parts.time.nowMs() - this.#bootedMs;
  }

  wallMs(): number {
    return this.#parts.kernel.wallMs();
  }

  timer(delayMs: number, fire: () => void): Cancel {
    return this.#parts.time.after(Math.ceil(delayMs), () => {
      if (this.#alive) fire();
    });
  }

  random(): number {
    return this.#parts.random.next();
  }

  inspect(path: AbsolutePath): Promise<Result<PathFacts>> {
    const apply = () => answered(this.#parts.kernel.inspect(path), path);
    return this.#act({ kind: 'inspect', what: path, readOnly: true, apply });
  }

  inspectWay(path: AbsolutePath): Promise<Result<readonly PathFacts[]>> {
    const apply = (): Result<readonly PathFacts[]> => {
      const way: PathFacts[] = [];
      for (const one of wayTo(path)) {
        const facts = answered(this.#parts.kernel.inspect(one), one);
        if (!facts.ok) return facts;
        way.push(facts.value);
        if (facts.value.kind === 'absent') break;
      }
      return ok(way);
    };
    return this.#act({ kind: 'inspect', what: path, readOnly: true, apply });
  }

  makeDirectory(path: AbsolutePath, mode: number): Promise<Result<void>> {
    const { kernel } = this.#parts;
    const apply = (): Result<void> => {
      const denied = this.#makeParents(path) ?? this.#makeOne(path, mode);
      return finished(denied ?? (this.#isMountRoot(path) ? undefined : kernel.changeMode(path, mode)), path);
    };
    return this.#act({
      kind: 'makeDirectory',
      what: path,
      apply,
      applyHalf: () => void this.#makeParents(path),
    });
  }

  removeEmptyDirectory(path: AbsolutePath): Promise<Result<void>> {
    const apply = () => finished(unlessAbsent(this.#parts.kernel.removeDirectory(path)), path);
    return this.#act({ kind: 'removeEmptyDirectory', what: path, passesBy: true, apply });
  }

  removeTree(path: AbsolutePath): Promise<Result<void>> {
    const half = () => void removeBelow(this.#parts.kernel, path, 1 + this.#parts.random.below(4));
    const apply = () =>
      finished(unlessAbsent(removeBelow(this.#parts.kernel, path, Number.MAX_SAFE_INTEGER)), path);
    return this.#act({ kind: 'removeTree', what: path, apply, applyHalf: half });
  }

  listDirectory(path: AbsolutePath, entriesMax: number): Promise<Result<readonly string[]>> {
    const apply = (): Result<readonly string[]> => {
      const directory = this.#directory(path);
      if (typeof directory === 'string') return fail(failureOf(directory, path));
      this.#parts.onListing(path);
      return directory.entries.size > entriesMax ? tooLarge(path) : ok([...directory.entries.keys()]);
    };
    return this.#act({ kind: 'listDirectory', what: path, readOnly: true, apply });
  }

  identifyDirectory(path: AbsolutePath): Promise<Result<DirectoryIdentity>> {
    const apply = (): Result<DirectoryIdentity> => {
      const identity = this.#identityOf(path);
      return typeof identity === 'string' ? fail(failureOf(identity, path)) : ok(identity);
    };
    return this.#act({ kind: 'identifyDirectory', what: path, readOnly: true, apply });
  }

  readDirectoryFiles(path: AbsolutePath, reading: DirectoryReading): Promise<Result<readonly FileEntry[]>> {
    const { entriesMax, fileBytesMax, identity, known } = reading;
    const apply = (): Result<readonly FileEntry[]> => {
      const directory = this.#directory(path);
      if (typeof directory === 'string') return fail(failureOf(directory, path));
      if (identity !== undefined && !isDeepStrictEqual(this.#identityOf(path), identity))
        return fail({ code: 'directory-replaced', message: path, effect: 'none' });
      if (directory.entries.size > entriesMax) return tooLarge(path);
      this.#parts.onListing(path);
      return ok(
        withinRoom(
          [...directory.entries].map(([name, inode]) => {
            const facts = factsOf(inode);
            if (inode.kind !== 'file') return { name, facts, content: undefined, stamp: undefined };
            const stamp = stampOf(inode);
            if (known?.get(name) === stamp) return { name, facts, content: undefined, stamp };
            const content = contentOf(inode, `${path}/${name}`, fileBytesMax);
            return { name, facts, content, stamp: content.ok ? stamp : undefined };
          }),
          reading,
        ),
      );
    };
    return this.#act({ kind: 'readDirectoryFiles', what: path, readOnly: true, apply });
  }

  readFile(path: AbsolutePath, bytesMax: number): Promise<Result<Uint8Array>> {
    const apply = (): Result<Uint8Array> => {
      const at = this.#parts.kernel.walk(path);
      return typeof at === 'string' ? fail(failureOf(at, path)) : contentOf(at.inode, path, bytesMax);
    };
    return this.#act({ kind: 'readFile', what: path, readOnly: true, apply });
  }

  writeFile(path: AbsolutePath, content: Uint8Array, options: WriteOptions): Promise<Result<void>> {
    const { kernel, onWrite } = this.#parts;
    const isExclusive = options.exclusive === true;
    const begun = isExclusive ? path : temporaryFor(path);
    const applyHalf = () => {
      if (!isExclusive) kernel.removeFile(begun);
      // One that is there stays as it is.
      kernel.makeFile(begun, content.subarray(0, this.#parts.random.below(content.length + 1)), options.mode);
    };
    const apply = (): Result<void> => {
      onWrite(path, content);
      const facts = kernel.inspect(path);
      if (typeof facts === 'string') return fail(failureOf(facts, path));
      if (facts.kind === 'directory' || (isExclusive && facts.kind !== 'absent')) {
        return fail(failureOf('EEXIST', path));
      }
      if (!isExclusive) kernel.removeFile(begun);
      const made = kernel.makeFile(begun, Uint8Array.from(content), options.mode);
      if (made !== undefined) return fail(failureOf(made, path));
      const renamed = isExclusive ? undefined : kernel.rename(begun, path);
      if (options.durable) kernel.synchronise(parentOf(path));
      return finished(renamed, path);
    };
    return this.#act({ kind: 'writeFile', what: path, apply, applyHalf });
  }

  overwriteFile(
    path: AbsolutePath,
    offsetBytes: number,
    content: Uint8Array,
    within?: number,
  ): Promise<Result<void>> {
    const { kernel, onWrite } = this.#parts;
    const writeOver = (bytes: Uint8Array): Result<void> => {
      if (within !== undefined && kernel.mountRound(path).id !== within)
        return fail({ code: 'mount-foreign', message: path, effect: 'none' });
      onWrite(path, content);
      const written = kernel.writeOver(path, offsetBytes, bytes);
      if (written === false) return tooLarge(path);
      return finished(written === true ? undefined : written, path);
    };
    const apply = (): Result<void> => {
      const written = writeOver(content);
      kernel.synchronise(parentOf(path));
      return written;
    };
    const applyHalf = () => void writeOver(content.subarray(0, this.#parts.random.below(content.length + 1)));
    return this.#act({ kind: 'overwriteFile', what: path, apply, applyHalf });
  }

  synchronise(path: AbsolutePath): Promise<Result<void>> {
    const apply = (): Result<void> => {
      const at = this.#parts.kernel.walk(path);
      if (typeof at === 'string') return fail(failureOf(at, path));
      if (at.inode.kind === 'symlink') return fail(failureOf('ELOOP', path));
      if (at.inode.kind !== 'file' && at.inode.kind !== 'directory') return fail(failureOf('EINVAL', path));
      this.#parts.kernel.synchronise(path);
      return ok(undefined);
    };
    return this.#act({ kind: 'synchronise', what: path, readOnly: true, apply });
  }

  removeFile(path: AbsolutePath): Promise<Result<void>> {
    const apply = () => finished(unlessAbsent(this.#parts.kernel.removeFile(path)), path);
    return this.#act({ kind: 'removeFile', what: path, apply });
  }

  rename(from: AbsolutePath, to: AbsolutePath): Promise<Result<void>> {
    const apply = () => finished(this.#parts.kernel.rename(from, to), to);
    return this.#act({ kind: 'rename', what: `${from} ${to}`, path: to, apply });
  }

  makeLink(path: AbsolutePath, text: string): Promise<Result<void>> {
    const apply = () => finished(this.#parts.kernel.makeLink(path, text), path);
    return this.#act({ kind: 'makeLink', what: `${path} -> ${text}`, path, apply });
  }

  readLink(path: AbsolutePath): Promise<Result<string>> {
    const apply = (): Result<string> => {
      const at = this.#parts.kernel.walk(path);
      if (typeof at === 'string') return fail(failureOf(at, path));
      return at.inode.kind === 'symlink' ? ok(at.inode.linkText) : fail(failureOf('EINVAL', path));
    };
    return this.#act({ kind: 'readLink', what: path, readOnly: true, apply });
  }

  readMountTable(about: AbsolutePath): Promise<Result<MountTable>> {
    const apply = () => {
      const entries = this.#parts.kernel.entries(this.#parts.doubledRoot);
      return ok(createMountTable(aboutPath(entries, about)));
    };
    return this.#act({ kind: 'readMountTable', what: '', readOnly: true, apply });
  }

  mountIdOf(path: AbsolutePath): Promise<Result<number | undefined>> {
    const apply = () => this.#mountIdAt(path);
    return this.#act({ kind: 'lookUpMount', what: path, readOnly: true, passesBy: true, apply });
  }

  #mountIdAt(path: AbsolutePath): Result<number | undefined> {
    const seen = answered(this.#parts.kernel.lookUpMount(path), path);
    return seen.ok ? ok(seen.value.mounted ? seen.value.mountId : undefined) : seen;
  }

  /** A draw of chance only where a stranger may lie there, so that other seeds keep their stories. */
  mountPlaceOf(path: AbsolutePath): Promise<Result<MountPlace>> {
    const apply = (): Result<MountPlace> => {
      const seen = answered(this.#parts.kernel.lookUpMount(path), path);
      if (!seen.ok) return seen;
      const mountId = seen.value.mounted ? seen.value.mountId : undefined;
      return ok({ mountId, within: this.#parts.kernel.mountRound(path).id });
    };
    if (!this.#parts.strangers) return Promise.resolve(apply());
    return this.#act({ kind: 'lookUpMount', what: path, readOnly: true, passesBy: true, apply });
  }

  lookUpMount(path: AbsolutePath): Promise<Result<MountLookup>> {
    const apply = () => answered(this.#parts.kernel.lookUpMount(path), path);
    return this.#act({ kind: 'lookUpMount', what: path, readOnly: true, apply });
  }

  /** Step by step, so that each of them may fail, be late and be the last. */
  perform<Args extends TransitionArgs, T>(transition: Transition<Args, T>, args: Args): Promise<Result<T>> {
    return performStepwise(this, transition, args);
  }

  probeFileSystem(path: AbsolutePath): Promise<Result<FileSystemProbe>> {
    return this.#parts.kernel.fileSystemsHang ? this.#question(path) : this.#probe(path);
  }

  #probe(path: AbsolutePath): Promise<Result<FileSystemProbe>> {
    const { kernel } = this.#parts;
    const apply = () => answered(kernel.probe(path), path);
    // Where nothing dies the stories are what they were before anybody looked.
    if (!kernel.fileSystemsDie && !kernel.fileSystemsHang) return Promise.resolve(apply());
    return this.#act({ kind: 'probeFileSystem', what: path, readOnly: true, apply });
  }

  measureUsage(request: UsageRequest): Promise<Result<Usage>> {
    const { kernel } = this.#parts;
    const apply = () => usageOf(kernel, request);
    // Where nobody fills anything the stories are what they were before it was counted.
    if (!kernel.directoriesFill) return Promise.resolve(apply());
    return this.#act({ kind: 'measureUsage', what: request.path, readOnly: true, apply });
  }

  mount(request: MountRequest): Promise<Result<void>> {
    const { kernel } = this.#parts;
    const { fsType, source, target, options } = request;
    const apply = (): Result<void> => {
      const unreachable =
        this.#unreachable(target) ?? (fsType === 'bind' ? this.#unreachable(source) : undefined);
      if (unreachable !== undefined) return fail(failureOf(unreachable, target));
      const denied =
        fsType === 'bind'
          ? kernel.bind(source as AbsolutePath, target, options)
          : isFileSystemType(fsType)
            ? kernel.localDisks.mount(source, target, options)
            : fsType === 'nfs'
              ? kernel.nfs.mount(source, target, options)
              : kernel.mountTmpfs(source, target, options, fsType);
      return denied === undefined ? ok(undefined) : fail({ ...refusalOf('mount', target), message: denied });
    };
    return this.#act({
      kind: 'mount',
      what: `${fsType} ${source} ${target} ${options.join()}`,
      path: target,
      passesBy: true,
      apply,
    });
  }

  readDeviceContent(device: AbsolutePath): Promise<Result<DeviceContent>> {
    const apply = () => this.#parts.kernel.localDisks.read(device);
    return this.#act({ kind: 'deviceOf', what: device, readOnly: true, apply });
  }

  proveBlank(device: AbsolutePath): Promise<Result<void>> {
    const apply = () => this.#parts.kernel.localDisks.proveBlank(device);
    return this.#act({ kind: 'deviceOf', what: device, readOnly: true, apply });
  }

  makeFileSystem(device: AbsolutePath, type: FileSystemType): Promise<Result<void>> {
    const { localDisks } = this.#parts.kernel;
    return this.#act({
      kind: 'mount',
      what: `${device} mkfs.${type}`,
      path: device,
      apply: () => localDisks.make(device, type),
      applyHalf: () => void localDisks.make(device, type, true),
    });
  }

  checkFileSystem(device: AbsolutePath): Promise<Result<void>> {
    return this.#act({ kind: 'mount', what: `${device} fsck`, path: device, apply: () => ok(undefined) });
  }

  growFileSystem({ device, mountPoint }: GrowingFileSystem): Promise<Result<void>> {
    const path = mountPoint ?? device;
    return this.#act({ kind: 'mount', what: `${path} grow`, path, apply: () => ok(undefined) });
  }

  readIscsiSessions(): Promise<Result<readonly IscsiSession[]>> {
    const apply = () => ok(this.#parts.kernel.targets.read());
    return this.#act({ kind: 'readIscsi', what: 'sessions', readOnly: true, apply });
  }

  async logInToIscsi(login: IscsiLogin): Promise<Result<'made' | 'found'>> {
    const { kernel, time, random } = this.#parts;
    const what = `login ${login.portal} ${login.iqn}`;
    const answer = await this.#act({ kind: 'iscsi', what, apply: () => kernel.targets.logIn(login) });
    if (answer.ok || answer.failure.code !== 'target-unreachable') return answer;
    return new Promise((resolve) => {
      time.after(random.between(1_000, SILENT_MS_MAX), () => {
        if (this.#alive) resolve(answer);
      });
    });
  }

  scanIscsi({ number }: IscsiSession): Promise<Result<void>> {
    const { targets } = this.#parts.kernel;
    return this.#act({ kind: 'iscsi', what: `scan ${number}`, apply: () => ok(targets.scan(number)) });
  }

  logOutOfIscsi(way: IscsiWay): Promise<Result<void>> {
    const { targets } = this.#parts.kernel;
    return this.#act({
      kind: 'iscsi',
      what: `logout ${way.portal} ${way.iqn}`,
      apply: () => ok(targets.logOut(way)),
    });
  }

  removeMultipath(map: AbsolutePath): Promise<Result<void>> {
    return this.#act({ kind: 'iscsi', what: `flush ${map}`, apply: () => ok(undefined) });
  }

  bindPart(request: PartBind): Promise<Result<BoundPart>> {
    const { target, root, part } = request;
    return this.#act({
      kind: 'mount',
      what: `part ${part} of ${root} ${target}`,
      path: root,
      apply: () => bindPart(this.#parts.kernel, request),
      applyHalf: () => void preparePart(this.#parts.kernel, request),
    });
  }

  unmount(target: AbsolutePath): Promise<Result<void>> {
    const apply = (): Result<void> => {
      const unreachable = this.#unreachable(target);
      if (unreachable !== undefined) return fail(failureOf(unreachable, target));
      const denied = this.#parts.kernel.unmount(target);
      return denied === undefined
        ? ok(undefined)
        : fail({ ...refusalOf('unmount', target), message: denied });
    };
    return this.#act({ kind: 'unmount', what: target, passesBy: true, apply });
  }

  findHolders(target: AbsolutePath): Promise<Result<readonly string[]>> {
    const apply = (): Result<readonly string[]> => {
      const top = this.#parts.kernel.mountsAt(target).at(-1);
      return ok(top?.held === true ? ['pid 4242 (tail)'] : []);
    };
    return this.#act({ kind: 'findHolders', what: target, readOnly: true, passesBy: true, apply });
  }

  findPlaceHolders(places: readonly AbsolutePath[]): Promise<Result<PlaceHolders>> {
    const { holdersAt } = this.#parts;
    if (holdersAt === undefined) return Promise.resolve(ok(places.map(() => [])));
    const apply = () => ok(places.map((path) => mostTelling(holdersAt(path))));
    return this.#act({
      kind: 'findPlaceHolders',
      what: `${places.length} places`,
      readOnly: true,
      passesBy: true,
      apply,
    });
  }

  deviceOf(path: AbsolutePath): Promise<Result<DeviceNumber | undefined>> {
    const apply = (): Result<DeviceNumber | undefined> => {
      const device = this.#parts.kernel.deviceOf(path);
      return isErrno(device) ? fail(failureOf(device, path)) : ok(device);
    };
    return this.#act({ kind: 'deviceOf', what: path, readOnly: true, apply });
  }

  identifyDisk(path: AbsolutePath): Promise<Result<Disk | undefined>> {
    const { kernel } = this.#parts;
    const apply = (): Result<Disk | undefined> => {
      const device = kernel.deviceOf(path);
      if (isErrno(device)) return fail(failureOf(device, path));
      this.#parts.onIdentify(path);
      return ok(device === undefined ? undefined : kernel.devices.diskOf(device));
    };
    return this.#act({ kind: 'deviceOf', what: path, readOnly: true, apply });
  }

  holdDevice(path: AbsolutePath): Promise<Result<void>> {
    const apply = (): Result<void> => {
      const denied = this.#parts.kernel.holdDevice(path);
      const isNoDevice = denied === 'ENOTBLK' || denied === 'ENOENT';
      return finished(isNoDevice ? 'EINVAL' : denied, path);
    };
    return this.#act({ kind: 'holdDevice', what: path, apply });
  }

  releaseDevice(path: AbsolutePath): Promise<Result<void>> {
    const apply = (): Result<void> => {
      this.#parts.kernel.devices.release(path);
      return ok(undefined);
    };
    return this.#act({ kind: 'releaseDevice', what: path, apply });
  }

  heldPaths(within: AbsolutePath): Promise<Result<readonly AbsolutePath[]>> {
    const apply = () => ok(this.#parts.kernel.devices.heldPaths(within));
    return this.#act({ kind: 'deviceOf', what: `holds ${within}`, path: within, readOnly: true, apply });
  }

  findDeviceUsers(device: DeviceNumber): Promise<Result<readonly string[]>> {
    const apply = () => ok(this.#parts.kernel.usersOf(device).slice(0, DEVICE_USERS_MAX));
    return this.#act({ kind: 'findDeviceUsers', what: device, readOnly: true, apply });
  }

  changeOwnership(request: OwnershipRequest): Promise<Result<OwnershipReport>> {
    return this.#ownership(request);
  }

  /** A part of a walk is an effect: it takes its time, others come between, and the process may die in any of them. */
  #changeOwnershipPart(
    part: OwnershipPart,
    { onSign, signal }: Parameters<OwnershipParts['change']>[1],
  ): Promise<Result<OwnershipPartReport>> {
    const { kernel, random } = this.#parts;
    const { path, names, scope, gid } = part;
    const isLost = (): boolean => {
      const top = kernel.walk(path);
      return part.mountId !== undefined && typeof top !== 'string' && top.mount.id !== part.mountId;
    };
    const half = () => void (isLost() || changeOwnershipPart(kernel, part, 1 + random.below(4)));
    const apply = (): Result<OwnershipPartReport> => {
      if (signal.aborted) {
        half();
        return fail({ code: 'no-longer-wanted', message: path, effect: 'unknown' });
      }
      if (isLost()) return fail({ code: 'mount-lost', message: path, effect: 'none' });
      const report = changeOwnershipPart(kernel, part, Number.MAX_SAFE_INTEGER);
      if (typeof report === 'string') return fail(failureOf(report, path));
      onSign(report.seen);
      return ok(report);
    };
    const where = [path, ...names.map((name) => Buffer.from(name).toString())].join('/');
    return this.#act({
      kind: 'changeOwnership',
      what: `${scope} of ${where} to ${gid}`,
      path,
      apply,
      applyHalf: half,
      signal,
    });
  }

  call<Request, Reply>(call: RemoteCall<Request, Reply>): Promise<RemoteReply<Reply>> {
    const { neighbours, boundary, time, trace, weather, random } = this.#parts;
    return new Promise((resolve) => {
      const what = `${call.method.path.slice(call.method.path.lastIndexOf('/') + 1)} ${call.socket.path}`;
      trace.add(`> call ${what}`);
      if (!this.#alive || boundary('call', 'before')) return;
      let open = true;
      const answered = this.work.beginCall(call as RemoteCall<unknown, unknown>);
      const settle = (reply: RemoteReply<Reply>): boolean => {
        if (!open || !this.#alive) return false;
        open = false;
        answered(reply.kind === 'ok');
        cancelDeadline();
        trace.add(`= call ${what}: ${reply.kind === 'broken' ? reply.because : reply.kind}`);
        if (boundary('call', 'after')) return false;
        resolve(reply);
        return true;
      };
      const cancelDeadline = time.after(call.deadlineMs, () => {
        settle({ kind: 'broken', because: 'deadline', message: 'deadline passed' });
      });
      const faults = weather().effects.get('call');
      const lost = random.chance(faults?.doubtful ?? 0);
      const broken = (message: string): void =>
        void settle({ kind: 'broken', because: 'unreachable', message });
      this.#callsUnderWay += 1;
      time.after(random.between(0, weather().latencyMsMax), () => {
        this.#callsUnderWay -= 1;
        if (random.chance(faults?.refused ?? 0)) return broken('connection refused');
        neighbours.serve(
          call,
          () => open && this.#alive,
          (reply) => {
            if (!lost) return settle(reply);
            broken('connection reset');
            return false;
          },
        );
      });
    });
  }

  watch(directory: AbsolutePath, hint: () => void): Cancel {
    const { kernel, time, weather, random } = this.#parts;
    return kernel.watch(directory, () => {
      const { hintLost, hintDoubled, latencyMsMax } = weather();
      if (random.chance(hintLost)) return;
      for (let times = random.chance(hintDoubled) ? 2 : 1; times > 0; times -= 1) {
        time.after(random.between(0, latencyMsMax), () => {
          if (this.#alive) hint();
        });
      }
    });
  }

  notify(state: string): Promise<Result<void>> {
    return this.#act({
      kind: 'notify',
      what: state.split('\n')[0] ?? '',
      readOnly: true,
      apply: () => ok(undefined),
    });
  }

  #act<T>(act: Act<T>): Promise<Result<T>> {
    const { boundary, time, trace, random, weather, isQuiet } = this.#parts;
    if (this.#alive && isQuiet(act.kind, act.path ?? act.what)) return Promise.resolve(act.apply());
    return new Promise((resolve) => {
      if (!this.#alive) return;
      trace.add(`> ${act.kind} ${act.what}`);
      this.#parts.onEffect(act.kind, act.path ?? act.what);
      if (boundary(act.kind, 'before')) return;
      const faults = faultsOf(weather(), act.kind);
      const land = (): Result<T> => this.#land(act, faults);
      const pending: Pending = {
        land: () => {
          if (this.#hungBefore(act) === undefined) land();
        },
        landHalf: act.applyHalf,
      };
      this.#pending.add(pending);
      const answered = this.work.beginEffect({ kind: act.kind, path: act.path ?? act.what });
      const settle = (result: Result<T>): void => {
        this.#pending.delete(pending);
        answered();
        if (!this.#alive) return;
        if (!result.ok) this.#parts.onFailed(act.kind, act.path ?? act.what, result.failure.code);
        resolve(result);
      };
      const arrive = (): void => {
        if (!this.#alive) return;
        if (hangs && faultsOf(weather(), act.kind) !== undefined) {
          time.after(HUNG_LOOK_MS, arrive);
          return;
        }
        const hung = this.#hungBefore(act);
        if (hung !== undefined) return hang(hung);
        this.#pending.delete(pending);
        const result = land();
        trace.add(`= ${act.kind} ${act.what}: ${result.ok ? 'ok' : result.failure.code}`);
        if (boundary(act.kind, 'after') || !this.#alive) return;
        if (!random.chance(TWO_STEP_ANSWER)) return settle(result);
        this.#answersUnderWay += 1;
        time.after(random.between(0, weather().latencyMsMax), () => {
          this.#answersUnderWay -= 1;
          settle(result);
        });
      };
      const hang = (fileSystem: FileSystem): void => {
        const done = this.work.beginHang({
          kind: act.kind,
          path: act.path ?? act.what,
          fileSystem,
          sinceMs: begunMs,
        });
        this.#whileHung(act, fileSystem, begunMs, (killed) => {
          done();
          if (killed === undefined) return arrive();
          trace.add(`= ${act.kind} ${act.what}: killed while it hangs`);
          settle(fail(killed));
        });
      };
      const begunMs = time.nowMs();
      const hangs = random.chance(faults?.hung ?? 0);
      const slow = random.chance(faults?.slow ?? 0);
      const { latencyMsMax, walkMsMax = 0 } = weather();
      const usualMsMax = act.kind === 'changeOwnership' ? Math.max(latencyMsMax, walkMsMax) : latencyMsMax;
      time.after(slow ? random.between(1_000, SLOW_MS_MAX) : random.between(0, usualMsMax), arrive);
    });
  }

  /** The file system that the effect waits for. */
  #hungBefore({ kind, path, what, passesBy }: Act<unknown>): FileSystem | undefined {
    const { kernel } = this.#parts;
    const about = path ?? what;
    if (!kernel.fileSystemsHang || !about.startsWith('/')) return undefined;
    if (kind === 'rename' || kind === 'makeLink') return kernel.hungOnWay(parentOf(about as AbsolutePath));
    return kernel.hungOnWay((passesBy === true ? parentOf(about as AbsolutePath) : about) as AbsolutePath);
  }

  /** Looks now and then whether it still hangs, and whether the process that asks is killed. */
  #whileHung(
    act: Act<unknown>,
    fileSystem: FileSystem,
    begunMs: number,
    onEnd: (killed: Failure | undefined) => void,
  ): void {
    const { time } = this.#parts;
    time.after(HUNG_LOOK_MS, () => {
      if (!this.#alive) return;
      if (fileSystem.hang === undefined) return onEnd(undefined);
      const isOverdue = time.nowMs() - begunMs >= deadlineOf(act.kind);
      const isKilled = fileSystem.hang.killable && (isOverdue || act.signal?.aborted === true);
      if (!isKilled) return this.#whileHung(act, fileSystem, begunMs, onEnd);
      const code = isOverdue ? 'deadline-passed' : 'no-longer-wanted';
      onEnd({ code, message: act.what, effect: act.readOnly === true ? 'none' : 'unknown' });
    });
  }

  #land<T>(act: Act<T>, faults: EffectFaults | undefined): Result<T> {
    const { random } = this.#parts;
    const refused = random.chance(faults?.refused ?? 0);
    // What a full disk refuses is what takes room on it.
    if (refused && !takesNoRoom(act.kind, this.#parts.weather())) return fail(refusalOf(act.kind, act.what));
    if (!random.chance(faults?.doubtful ?? 0)) return act.apply();
    const fate = random.next();
    if (act.readOnly === true) return fail(refusalOf(act.kind, act.what));
    if (fate < 0.5) act.apply();
    else if (fate < 0.75) act.applyHalf?.();
    return fail(doubtAbout(act.what, random));
  }

  /** The walk to a path comes before any tool is run. */
  #unreachable(path: string): Errno | undefined {
    const at = this.#parts.kernel.walk(path as AbsolutePath);
    if (typeof at === 'string') return at;
    return at.inode.kind === 'symlink' ? 'ELOOP' : undefined;
  }

  #makeParents(path: AbsolutePath): Errno | undefined {
    const parent = parentOf(path);
    const facts = this.#parts.kernel.inspect(parent);
    if (typeof facts === 'string') return facts;
    if (facts.kind === 'directory') return undefined;
    if (facts.kind !== 'absent') return facts.kind === 'symlink' ? 'ELOOP' : 'ENOTDIR';
    return this.#makeParents(parent) ?? this.#makeOne(parent, 0o750);
  }

  #makeOne(path: AbsolutePath, mode: number): Errno | undefined {
    const made = this.#parts.kernel.makeDirectory(path, mode);
    if (made !== 'EEXIST') return made;
    const facts = this.#parts.kernel.inspect(path);
    if (typeof facts === 'string' || facts.kind === 'directory')
      return typeof facts === 'string' ? facts : undefined;
    return facts.kind === 'symlink' ? 'ELOOP' : 'ENOTDIR';
  }

  #isMountRoot(path: AbsolutePath): boolean {
    const [place, above] = [path, parentOf(path)].map((one) => this.#parts.kernel.walk(one));
    return typeof place === 'object' && typeof above === 'object' && place.mount !== above.mount;
  }

  /** The disk of the simulated machine keeps times of birth, memory does not; no number is ever given twice. */
  #identityOf(path: AbsolutePath): DirectoryIdentity | Errno {
    const at = this.#parts.kernel.walk(path);
    if (typeof at === 'string') return at;
    const { mount, inode } = at;
    if (inode.kind !== 'directory') return inode.kind === 'symlink' ? 'ELOOP' : 'ENOTDIR';
    const { device, type } = mount.fileSystem;
    const bornNs = type === 'ext4' ? `1${inode.number}` : undefined;
    return { mountId: mount.id, device, inode: String(inode.number), bornNs };
  }

  #directory(path: AbsolutePath): Inode | Errno {
    const at = this.#parts.kernel.walk(path);
    if (typeof at === 'string') return at;
    if (at.inode.kind === 'symlink') return 'ELOOP';
    return at.inode.kind === 'directory' ? at.inode : 'ENOTDIR';
  }
}

function deadlineOf(kind: EffectKind): number {
  return kind === 'probeFileSystem' ? PROBE_DEADLINE_MS : DEADLINE_MS;
}

const WRITES_IN_PLACE: ReadonlySet<EffectKind> = new Set(['overwriteFile', 'synchronise']);

/** The disk of a file that is written over is the one that files are written on. */
function faultsOf({ effects }: Weather, kind: EffectKind): EffectFaults | undefined {
  return effects.get(kind) ?? (WRITES_IN_PLACE.has(kind) ? effects.get('writeFile') : undefined);
}

/** Refused as other writes are, it would be because the disk is full. */
function takesNoRoom(kind: EffectKind, { effects }: Weather): boolean {
  return WRITES_IN_PLACE.has(kind) && !effects.has(kind);
}

function answered<T extends object>(outcome: T | Errno, what: string): Result<T> {
  return typeof outcome === 'string' ? fail(failureOf(outcome, what)) : ok(outcome);
}

/** A device number begins with a digit, an errno does not. */
function isErrno(outcome: DeviceNumber | Errno | undefined): outcome is Errno {
  return outcome !== undefined && /^E/.test(outcome);
}

function finished(denied: Errno | undefined, what: string): Result<void> {
  return denied === undefined ? ok(undefined) : fail(failureOf(denied, what));
}

function unlessAbsent(errno: Errno | undefined): Errno | undefined {
  return errno === 'ENOENT' ? undefined : errno;
}

function contentOf(inode: Inode, path: string, bytesMax: number): Result<Uint8Array> {
  if (inode.kind !== 'file') return fail(failureOf(inode.kind === 'symlink' ? 'ELOOP' : 'EISDIR', path));
  if ((inode.mode & 0o400) === 0) return fail({ code: 'input-output', message: path, effect: 'none' });
  return inode.content.length > bytesMax ? tooLarge(path) : ok(inode.content);
}

function mostTelling(holders: readonly PlaceHolder[]): readonly PlaceHolder[] {
  const isCopy = ({ how }: PlaceHolder): boolean => how === 'copy';
  const others = holders.filter((one) => !isCopy(one));
  return [...others, ...holders.filter(isCopy)].slice(0, PLACE_HOLDERS_MAX);
}

const contents = new WeakMap<Uint8Array, number>();
let contentsSeen = 0;

/** The stamp is that of the bytes as such: a write puts others in their place, and a power cut the old ones. */
function stampOf({ number, mode, content }: Inode): ContentStamp {
  if (!contents.has(content)) {
    contentsSeen += 1;
    contents.set(content, contentsSeen);
  }
  return `${number} ${mode} ${contents.get(content)}` as ContentStamp;
}

function tooLarge(path: string): { readonly ok: false; readonly failure: Failure } {
  return fail({ code: 'too-large', message: path, effect: 'none' });
}

/** Where a replacement is written before its rename. */
function temporaryFor(path: AbsolutePath): AbsolutePath {
  const cut = path.lastIndexOf('/');
  return below(parentOf(path), `.${path.slice(cut + 1)}.tmp`);
}
