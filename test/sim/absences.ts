/** Lets the manifests of a seed be gone for a while, and says what the agent must not take for a wish meanwhile. */
import type { AgentView } from '../../agent/node/agent-view.ts';
import { type PodUid, publicationKey, type PublicationKey } from '../../plugins/volume.ts';
import { podsOf } from '../../reconciler/model/actual-state.ts';
import type { Operation } from '../../reconciler/model/operation.ts';
import { type KnownDirectory, parseKnownDirectory } from '../../agent/source/manifests/known-directory.ts';
import { ABSENCES, LASTS_MS_MAX } from './absence.ts';
import type { Random } from './random.ts';
import { MANIFESTS } from './sim-paths.ts';
import type { Simulation } from './simulate.ts';
import { isComeLate } from './told-places.ts';

/** Longer than the agent needs to look again. */
const LOOK_MS = 20_000;

export class Absences {
  readonly #sim: Simulation;
  readonly #random: Random;
  #isOn = false;
  /** As the note was when it was last seen. */
  #noted: KnownDirectory | undefined;
  /** The inode of what was taken for the directory of before a start of the machine. */
  #alike: string | undefined;
  #held: ReadonlySet<PodUid> = new Set();
  /** For each place, all places that the agent knew when it last began to go. */
  readonly #beside = new Map<PublicationKey, ReadonlySet<PublicationKey>>();

  constructor(sim: Simulation, random: Random) {
    this.#sim = sim;
    this.#random = random;
  }

  begin(): void {
    const { everyMs } = this.#sim.plan.absence;
    if (everyMs === 0) return;
    const waitMs = Math.ceil(-Math.log(1 - this.#random.next()) * everyMs);
    this.#sim.time.after(waitMs, () => {
      if (!this.#sim.stormy) return this.#watchOver();
      if (!this.#isOn) this.#happen();
      this.begin();
    });
  }

  #happen(): void {
    const { world, time, plan } = this.#sim;
    const kind = this.#random.pick(ABSENCES);
    if (this.#random.chance(plan.absence.whileDown)) this.#sim.killAgent('killed before its manifests go');
    this.#isOn = true;
    const lastsMs = this.#random.between(1_000, LASTS_MS_MAX);
    if (kind === 'covered' || kind === 'replaced') world.loseDirectory(kind);
    const lost = kind === 'covered' || kind === 'replaced' ? [] : world.loseManifests(kind);
    time.after(lastsMs, () => {
      this.#isOn = false;
      if (!this.#sim.stormy) return;
      world.returnManifests(lost);
      const isAccepted = kind === 'replaced' && this.#random.chance(plan.absence.accepted);
      if (isAccepted) world.fillNewDirectory();
      else world.returnDirectory();
      this.#watchOver();
    });
  }

  /** An operator looks now and then, and says of the user's own directory that it is the right one. */
  #watchOver(): void {
    this.#sim.time.after(LOOK_MS, () => {
      if (this.#isOn && this.#sim.stormy) return;
      const manifests = this.#sim.view()?.manifests;
      const replaced = manifests?.replaced();
      if (replaced !== undefined && this.#sim.world.directoryState === 'own') {
        this.#sim.trace.add(`operator: accepts the directory ${replaced.sight}`);
        this.#sim.tally.accepted += 1;
        void manifests?.accept(replaced.sight);
      }
      this.#watchOver();
    });
  }

  /**
   * AP-12: a directory that an earlier note does not know is not read while anything stands, noted or hidden.
   * Answers whether what covers the user's directory cannot be told from what the note is of: a file system in memory
   * in the same place, and the machine was started since (seed 588180907). Then it says what is wanted.
   */
  noteListing(): boolean {
    const { kernel, world } = this.#sim;
    const before = this.#noted;
    const note = kernel.walk(world.layout.source);
    if (typeof note !== 'string' && !kernel.isUnderStranger(world.layout.source))
      this.#noted = parseKnownDirectory(Buffer.from(note.inode.content).toString()) ?? this.#noted;
    if (world.directoryState === 'own' || this.#noted === undefined) return false;
    const listed = kernel.walk(MANIFESTS);
    const isNoted = typeof listed !== 'string' && `${listed.inode.number}` === this.#noted.inode;
    const stands = this.#sim.earlyView()?.reconciler.actual().size ?? 0;
    if (!isNoted && stands > 0)
      this.#sim.violate('AP-12', `another directory was read, and ${stands} volumes stand`);
    const isMemoryAgain = before?.fsType === 'tmpfs' && before.bootId !== this.#noted.bootId;
    if (isMemoryAgain && isNoted && world.directoryState === 'covered') this.#alike = this.#noted.inode;
    return isNoted && this.#alike === this.#noted.inode;
  }

  /**
   * RS-02, AP-12: what vanished while nobody looked is kept for its time, for whoever of the wanted it may have been.
   * One whose name another pod has by now is surely gone.
   */
  checkTeardown(what: string, uid: string, path: string): void {
    if (what.includes('/kubernetes.io~empty-dir/')) this.#checkLast(what, uid);
    const { life, plan, time, world } = this.#sim;
    const [first] = life?.listings ?? [];
    if (first === undefined || plan.absence.holdMs === 0 || world.isSucceeded(uid)) return;
    if (this.#isShown(uid) || life?.listings.some(({ kept }) => kept.has(uid)) === true) return;
    // Whoever is held by then: the place had gone already, and no pod was told of it since.
    if (world.told.isGivenBack(path)) return;
    const sinceMs = time.nowMs() - first.atMs;
    if (sinceMs < plan.absence.holdMs)
      this.#sim.violate('RS-02', `${what} ${sinceMs} ms after the start, and its manifest went before it`);
  }

  /** RS-02: who is kept because his manifest vanished is kept while something that may want him cannot be read. */
  noteDesired(view: AgentView | undefined): void {
    const before = this.#held;
    this.#held = new Set(view?.manifests.held().keys());
    const desired = view?.reconciler.desired();
    const [origin] = desired?.unknownOrigins ?? [];
    if (view === undefined || desired === undefined || origin === undefined) return;
    const wanted = new Set([...desired.volumes.values()].flatMap(podsOf));
    for (const uid of new Set([...view.reconciler.actual().values()].flatMap(podsOf))) {
      const isLetGo = before.has(uid) && !this.#held.has(uid) && !wanted.has(uid) && !this.#isShown(uid);
      if (isLetGo && !desired.frozenPods.has(uid) && !this.#sim.world.isSucceeded(uid))
        this.#sim.violate('RS-02', `${uid} is kept no longer, and ${origin} cannot be read`);
    }
  }

  /** As what it is, over or not: what else of its source cannot be read says nothing of it. */
  #isShown(uid: string): boolean {
    return this.#sim.life?.listings.some(({ shown }) => shown?.has(uid)) === true;
  }

  /** A new process keeps whom it finds. */
  beginLife(): void {
    this.#held = new Set();
  }

  /** What else of a pod was there, or wanted, when its emptyDir began to go: what came later cannot hold that back. */
  noteBegin(operation: Operation, { reconciler }: AgentView): void {
    if (operation.kind !== 'unpublish') return;
    const places = [...reconciler.actual().values()].flatMap((one) => [...one.publications.values()]);
    // What had gone before and came late is given back, maybe since the same event.
    const there = places.filter((place) => !isComeLate(place));
    this.#beside.set(operation.publication, new Set(there.map(({ spec }) => spec.key)));
  }

  /** What is gone for good goes last, and not while it is unknown what is wanted, as far as the agent knows. */
  #checkLast(what: string, uid: string): void {
    const reconciler = this.#sim.earlyView()?.reconciler;
    if (reconciler === undefined) return;
    const { volumes } = reconciler.desired();
    const all = [...reconciler.actual().values()];
    const emptyDirs = all.filter((one) => one.spec.kind === 'empty-dir');
    const others = new Set(
      [...emptyDirs, ...volumes.values()].flatMap((one) => [...one.publications.keys()]),
    );
    for (const { spec, publications } of all) {
      if (spec.kind === 'empty-dir') continue;
      // It waits itself for the emptyDir that it may be of, or is kept for what is wanted there.
      if (spec.kind === 'orphan' && [...publications.keys()].some((key) => others.has(key))) continue;
      const isLeft = [...publications].some(([key, place]) => {
        const isNew = this.#besideAt(what, uid)?.has(key) === false;
        return !isNew && place.spec.pod.uid === uid && volumes.get(spec.id)?.publications.has(key) !== true;
      });
      if (isLeft) this.#sim.violate('AP-12', `${what}, and ${spec.id} of the pod is still there`);
    }
  }

  #besideAt(what: string, uid: string): ReadonlySet<PublicationKey> | undefined {
    const specName = /\/kubernetes\.io~empty-dir\/([^/]+)$/.exec(what)?.[1];
    return specName === undefined ? undefined : this.#beside.get(publicationKey(uid as PodUid, specName));
  }
}
