/**
 * File systems that die under volumes that are staged or published, from a stream of chance of its own: shut down,
 * read-only by an error, or left by their daemon. What is mounted anew is alive again.
 */
import type { DeathCause } from '../../mount/failure.ts';
import type { PublicationKey, VolumeId, VolumeSpec } from '../../plugins/volume.ts';
import type { ActualPublication, ActualVolume } from '../../reconciler/model/actual-state.ts';
import type { Operation } from '../../reconciler/model/operation.ts';
import type { AgentView } from '../../agent/node/agent-view.ts';
import type { Backing } from './backing.ts';
import type { FileSystem } from './file-tree.ts';
import type { PodsThatRan } from './pods-that-ran.ts';
import type { Random } from './random.ts';
import type { Mount, SimKernel } from './sim-kernel.ts';
import type { SimStorage } from './sim-storage.ts';
import type { Plan } from './swarm.ts';
import type { Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface DeathParts {
  readonly random: Random;
  readonly kernel: SimKernel;
  readonly storage: Pick<SimStorage, 'backings' | 'backingOf'>;
  readonly ran: PodsThatRan;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly violate: (invariant: string, text: string) => void;
  /** Mean time between two deaths; 0: nothing dies. */
  readonly everyMs: number;
  readonly stormy: () => boolean;
}

/** A driver is called so long, at most, after the look at what it publishes from. */
const FRESH_MS = 1_000;
const DEATHS_SHARE = 0.15;
/** So long after the death what was decided about it may still be done. */
const DECIDED_MS_MAX = 200_000;

/** In some seeds. */
export function withDeaths(plan: Plan, random: Random): Plan {
  return random.chance(DEATHS_SHARE) ? { ...plan, deathEveryMs: random.pick([3_000, 15_000, 60_000]) } : plan;
}

const CAUSES: readonly DeathCause[] = ['input-output', 'emergency-read-only', 'read-only', 'daemon-gone'];
/** What a mount shows that was just made. Read-only it may have been made: without a stage nobody knew it before. */
const PLAIN_CAUSES: readonly DeathCause[] = ['input-output', 'emergency-read-only', 'daemon-gone'];

interface Death {
  /** Its driver may have forgotten the volume, and it is mounted still (seed 19200 of a cluster). */
  readonly fileSystem: FileSystem;
  /** When the agent may have found it last. */
  foundMs: number;
}

interface Had {
  readonly place: ActualPublication;
  readonly mount: Mount | undefined;
}

export class FileSystemDeaths {
  readonly #parts: DeathParts;
  /** When the driver was called for each publish that is under way, and who was ready after the event before. */
  readonly #called = new Map<string, number>();
  #ready: ReadonlySet<string> = new Set();
  /** What each place that was ready showed then, until it is believed absent. */
  #had: ReadonlyMap<string, Had> = new Map();
  #reconciler: AgentView['reconciler'] | undefined;
  /** By volume handle: the last one. */
  readonly #deaths = new Map<string, Death>();

  constructor(parts: DeathParts) {
    this.#parts = parts;
    parts.kernel.fileSystemsDie = parts.everyMs > 0;
    if (parts.everyMs > 0) this.#schedule();
  }

  #schedule(): void {
    const { random, time, everyMs, stormy } = this.#parts;
    time.after(Math.ceil(-Math.log(1 - random.next()) * everyMs), () => {
      if (!stormy()) return;
      this.#kill();
      this.#schedule();
    });
  }

  #kill(): void {
    const { random, kernel, storage, trace, time } = this.#parts;
    const alive = storage
      .backings()
      .filter(({ block, fileSystem }) => !block && fileSystem.mounts > 0 && fileSystem.death === undefined);
    if (alive.length === 0) return;
    const { handle, fileSystem } = random.pick(alive);
    const isStaged = kernel.mounts().some((one) => {
      return one.fileSystem === fileSystem && one.target.endsWith('/globalmount');
    });
    const cause = random.pick(isStaged ? CAUSES : PLAIN_CAUSES);
    fileSystem.death = { cause, sinceMs: time.nowMs() };
    this.#deaths.set(handle, { fileSystem, foundMs: time.nowMs() });
    trace.add(`the file system of ${handle} dies: ${cause}`);
  }

  /**
   * DR-11: no pod becomes ready from what was dead before its driver was called, but one that was told of that very
   * mount before, and keeps it. After every event of an agent.
   */
  look({ reconciler }: AgentView): void {
    const { everyMs, kernel } = this.#parts;
    if (everyMs === 0) return;
    for (const one of this.#parts.ran.look(reconciler))
      this.#parts.violate('DR-11', `${one}, which was seen to be dead before`);
    if (this.#reconciler !== reconciler) {
      // What a new agent finds present was told by the one before.
      this.#reconciler = reconciler;
      this.#called.clear();
      this.#ready = readyIn(reconciler);
      this.#noteHad(reconciler);
      return;
    }
    const ready = readyIn(reconciler);
    for (const name of ready) {
      const calledMs = this.#called.get(name);
      const isAsBefore = this.#ready.has(name) || this.#hasStill(name);
      const death = calledMs === undefined || isAsBefore ? undefined : this.#deathOf(name);
      if (death !== undefined && calledMs !== undefined && death.sinceMs + FRESH_MS < calledMs)
        this.#parts.violate('DR-11', `${name} is ready, and its file system is dead: ${death.cause}`);
    }
    this.#ready = ready;
    this.#noteHad(reconciler);
    const running = new Set<string>();
    for (const { operation, phase, step } of reconciler.running()) {
      if (operation.kind !== 'publish' || phase !== 'running') continue;
      const name = nameOf(operation.volume, operation.publication);
      running.add(name);
      if (step.kind === 'called') this.#called.set(name, kernel.bootedMs + step.sinceMs);
    }
    for (const name of this.#called.keys()) if (!running.has(name)) this.#called.delete(name);
  }

  #noteHad(reconciler: AgentView['reconciler']): void {
    const had = new Map<string, Had>();
    for (const [id, { spec, sickness, publications }] of reconciler.actual()) {
      const handle = sickness === undefined ? undefined : handleOf(spec);
      // As long as the agent knows of a death it may act on it.
      const death = this.isDead(handle) ? this.#deaths.get(handle ?? '') : undefined;
      if (death !== undefined) death.foundMs = this.#parts.time.nowMs();
      for (const [key, place] of publications) {
        const name = nameOf(id, key);
        const known = this.#had.get(name);
        const isNew = place.presence.kind === 'present' && known?.place !== place;
        const now = isNew ? { place, mount: this.#mountOf(place) } : known;
        if (now !== undefined) had.set(name, now);
      }
    }
    this.#had = had;
  }

  #mountOf({ mount, spec }: ActualPublication): Mount | undefined {
    // Its number may be another place's by now (seed 411015031).
    const isIt = ({ id, target }: Mount): boolean =>
      id === mount?.mountId && target.includes(`/${spec.pod.uid}/`);
    return this.#parts.kernel.mounts().find(isIt);
  }

  /** One sees the same mount, not another one that was given its number, or its file system once more over it. */
  #hasStill(name: string): boolean {
    const [mount, ...over] = this.#stackFrom(name);
    return mount !== undefined && over.every(({ fileSystem }) => fileSystem === mount.fileSystem);
  }

  #isSeen(name: string): boolean {
    return this.#stackFrom(name).length === 1;
  }

  /** The mount that it had, lowest, and what lies over it there; empty when it is gone. */
  #stackFrom(name: string): readonly Mount[] {
    const mount = this.#had.get(name)?.mount;
    if (mount === undefined) return [];
    const stack = this.#parts.kernel.mountsAt(mount.target);
    return stack.includes(mount) ? stack.slice(stack.indexOf(mount)) : [];
  }

  /** What was dead a while ago may be taken down though it is wanted: pods that had it are not asked of here. */
  isDead(handle: string | undefined): boolean {
    const death = this.#deaths.get(handle ?? '');
    if (death === undefined) return false;
    const nowMs = this.#parts.time.nowMs();
    // The agent may find it so late after the death, and the last unmount heals it (seed 349588735).
    if (death.fileSystem.death !== undefined) death.foundMs = nowMs;
    return nowMs - death.foundMs <= DECIDED_MS_MAX;
  }

  /**
   * May it begin though its volume is wanted? What pods were told of stays with them, believed or in doubt, while the
   * mount that the agent knew is there still. A pod that never had all that it is to have was never started.
   */
  mayGo(operation: Operation, known: ActualVolume | undefined, before: ActualVolume | undefined): boolean {
    if (known === undefined || !this.isDead(handleOf(known.spec))) return false;
    if (!('publication' in operation)) return true;
    const { publication } = operation;
    const place = before?.publications.get(publication);
    if (place === undefined || !this.#parts.ran.has(place.spec.pod.uid)) return true;
    // In doubt, with nothing noted of it: it was found on disk, and nobody knows what it was.
    if (place.presence.kind !== 'present')
      return place.mount === undefined || !this.#isSeen(nameOf(operation.volume, publication));
    const { fileSystem } = this.#backingOf(known.spec) ?? {};
    // One that was made in its place may have been given its number (seed 680266618).
    const had = this.#had.get(nameOf(operation.volume, publication));
    const isIt = (mount: Mount): boolean =>
      mount.id === place.mount?.mountId &&
      mount.fileSystem === fileSystem &&
      (had === undefined || had.mount === mount) &&
      !mount.target.endsWith('/globalmount');
    return place.mount !== undefined && !this.#parts.kernel.mounts().some(isIt);
  }

  #deathOf(name: string): FileSystem['death'] {
    const [id, key] = name.split(' ');
    const volume = this.#reconciler?.actual().get(id as VolumeId);
    const death = volume && this.#backingOf(volume.spec)?.fileSystem.death;
    if (volume === undefined || death === undefined || PLAIN_CAUSES.includes(death.cause)) return death;
    // A stage that nobody can see is judged by nobody, and who reads only can read it (seed 1102660248).
    const isForReading = volume.publications.get(key as PublicationKey)?.spec.readOnly === true;
    if (isForReading && !this.#isStageSeen(volume)) return undefined;
    // Read-only it may have been made, as far as its mount tells: nobody staged it, because a new version of its driver
    // stages nothing, or so it was at the first look: it died before, or somebody has an old mount of it still.
    const { needs, stagedMount } = volume;
    const wasWritable = needs.stage && stagedMount !== undefined && stagedMount.readOnly !== true;
    return wasWritable ? death : undefined;
  }

  /** Somebody may have mounted over it, or over a directory above it (seed 743563485). */
  #isStageSeen({ staged, stagedMount }: ActualVolume): boolean {
    const { kernel } = this.#parts;
    const mount = kernel.mounts().find(({ id }) => id === stagedMount?.mountId);
    const shown = mount && kernel.lookUpMount(mount.target);
    const isShown = typeof shown === 'object' && shown.mounted && shown.mountId === mount?.id;
    return staged.kind === 'present' && isShown;
  }

  #backingOf(spec: VolumeSpec): Backing | undefined {
    if (spec.kind !== 'csi') return undefined;
    return this.#parts.storage.backingOf({ driver: spec.driver, handle: spec.volumeHandle });
  }
}

function handleOf(spec: VolumeSpec): string | undefined {
  return spec.kind === 'csi' ? spec.volumeHandle : undefined;
}

function nameOf(volume: VolumeId, publication: PublicationKey): string {
  return `${volume} ${publication}`;
}

function readyIn(reconciler: AgentView['reconciler']): ReadonlySet<string> {
  const ready = new Set<string>();
  for (const [id, { publications }] of reconciler.actual())
    for (const [key, { presence }] of publications)
      if (presence.kind === 'present') ready.add(nameOf(id, key));
  return ready;
}
