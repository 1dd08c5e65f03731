/**
 * What must be true after every event, by the names of docs/INVARIANTS.md. Which invariant is judged where, and
 * which do not apply to this version, is listed in test/sim/README.md.
 */
import type { AgentView } from '../../agent/node/agent-view.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import { CSI_PLUGIN, type CsiVolumeSpec, type PublicationKey, type VolumeId } from '../../plugins/volume.ts';
import type { ActualPublication, ActualState, ActualVolume } from '../../reconciler/model/actual-state.ts';
import type { DesiredState, DesiredVolume } from '../../reconciler/model/desired-state.ts';
import type { Obstacle } from '../../reconciler/model/obstacle.ts';
import type { Operation } from '../../reconciler/model/operation.ts';
import { desiredQuarantine } from '../../reconciler/run/quarantine-control.ts';
import type { Backing } from './backing.ts';
import { changeOfBelief } from './belief-watch.ts';
import { isWanted } from './desired-within.ts';
import type { Simulation } from './simulate.ts';
import type { Plan } from './swarm.ts';
import { usersOf } from './quarantine-watch.ts';
import { checkLayers } from './layers.ts';
import { checkReasons } from './reasons.ts';
import { HOST_DATA, ROOT } from './sim-paths.ts';
import { csiOf } from './pod-volume.ts';
import { checkBindsGone, isStaleBind, volumeOfBind } from './subpaths.ts';
import { CANARY } from './trace.ts';
import type { EffectKind } from './weather.ts';

/** What one listing of the manifests could tell: pods that are wanted, or of which nothing is known. */
export interface Listing {
  readonly atMs: number;
  readonly kept: ReadonlySet<string>;
  /** Those that it shows, wanted or not: in a copy of the manifests that is out of date, or as over in a cluster. */
  readonly shown?: ReadonlySet<string>;
}

/** An operation may have begun this long before its effect, on the word of an older listing. */
const DECIDED_MS_MAX = 200_000;
const STUCK_MS = 30_000;

const CHANGING: ReadonlySet<EffectKind> = new Set([
  'makeDirectory',
  'removeEmptyDirectory',
  'removeTree',
  'writeFile',
  'overwriteFile',
  'removeFile',
  'rename',
  'makeLink',
  'mount',
  'unmount',
  'holdDevice',
  'releaseDevice',
  'changeOwnership',
]);

/** The atomic writer removes old generations below it. */
const VOLUME_ROOT = /\/pods\/[^/]+\/volumes\/[^/]+\/[^/]+$/;

/** An emptyDir whose removal begins: from then on nobody can say that its content is whole. */
const REMOVAL = /^(.*\/pods\/[^/]+)\/plugins\/(kubernetes\.io~empty-dir\/[^/]+)\/ready \S+\/removing$/;

/** Before an effect of the agent: may it do this at all? `what` begins with the path. */
export function checkEffect(sim: Simulation, kind: EffectKind, path: string): void {
  if (!CHANGING.has(kind)) return;
  if (kind === 'changeOwnership') checkWalk(sim, path);
  if (kind === 'holdDevice') sim.tally.holds += 1;
  const inside =
    path.startsWith(`${ROOT}/`) ||
    ((kind === 'makeDirectory' || kind === 'mount') && path.startsWith(`${HOST_DATA}/`));
  // An mkfs writes to a disk.
  const isDisk = kind === 'mount' && sim.kernel.targets.isNode(path);
  if (!inside && !isDisk) sim.violate('outside', `${kind} of ${path}, which is not ours`);
  const [, pod, emptyDir] = (kind === 'rename' ? REMOVAL.exec(path) : null) ?? [];
  if (pod !== undefined && isThere(sim, `${pod}/plugins/${emptyDir}/ready`))
    checkTeardown(sim, `removal of ${pod}/volumes/${emptyDir}`, `${pod}/volumes/${emptyDir}`);
  const isVolume = kind === 'unmount' || (kind === 'removeTree' && VOLUME_ROOT.test(path));
  if (!isVolume || isStaleBind(sim, path)) return;
  // A bind of a part may go when its volume may.
  const volume = volumeOfBind(sim, path);
  if (volume === undefined) checkTeardown(sim, `${kind} ${path}`, path);
  else judgeTeardown(sim, `${kind} ${path}`, volume.path, volume.handle);
}

/** what a driver with VOLUME_MOUNT_GROUP was told, nobody does once more; nor is a read-only volume walked. */
function checkWalk(sim: Simulation, path: string): void {
  sim.tally.walks += 1;
  for (const pod of sim.world.pods.values()) {
    for (const volume of pod.volumes) {
      const csi = csiOf(pod, volume);
      if (csi === undefined || sim.world.targetOf(pod, volume) !== path) continue;
      const isTheirs = sim.world.storage.driverOf(csi.driver)?.nature.mountGroup === true;
      if (isTheirs || csi.readOnly || csi.block)
        sim.violate(
          'A-022',
          `${path} is walked, which is ${isTheirs ? "its driver's to do" : 'nothing to walk'}`,
        );
    }
  }
}

/**
 * INV-15, INV-16, INV-3: nothing is taken down before every source is listed, nor of a pod that is wanted or unknown;
 * but what is in quarantine is, wanted or not (B-3), what is left of an inline volume that its driver has ended, and
 * what was set up otherwise than it is wanted and no pod was told of.
 */
export function checkTeardown(sim: Simulation, what: string, path: string, handle?: string): void {
  checkBindsGone(sim, what, path);
  judgeTeardown(sim, what, path, handle);
}

function judgeTeardown(sim: Simulation, what: string, path: string, handle?: string): void {
  const life = sim.life;
  if (life === undefined || isInQuarantine(sim, path, handle)) return;
  const [holder] = sim.world.runtimes.holdersAt(path as AbsolutePath);
  if (holder !== undefined)
    sim.violate('held', `${what}, and pid ${holder.pid} has it still (${holder.how})`);
  if (!life.listings.some(() => true)) sim.violate('INV-15', `${what} before the manifests were listed`);
  if (handle !== undefined && sim.world.oracle.hasEnded(handle, path)) return;
  if (sim.world.deaths.isDead(handle)) return;
  const uid = (POD_PATH.exec(path) ?? DEVICE_PATH.exec(path))?.[1];
  if (uid === undefined) return;
  sim.absences.checkTeardown(what, uid, path);
  // Never there for the pod, it may go to be set up as it is wished by now, or because its device cannot be held.
  const isOurBind = POD_PATH.exec(path) === null && what.startsWith('unmount');
  if (isOurBind && sim.world.told.isNew(path as AbsolutePath)) return;
  if (!sim.world.told.has(path) && (isOurBind || sim.world.storage.isChanged() || isRenewing(sim, uid)))
    return;
  const isNotHad = !sim.world.told.has(path) || !isThere(sim, linkOf(sim, path));
  if (isNotHad && isRecycled(sim, path)) return;
  // The removal was judged when it began, maybe in another life; whoever wants it by now wants a new one.
  const mark = `${path.replace('/volumes/', '/plugins/')}/removing`;
  if (what.startsWith('removeTree') && isThere(sim, mark)) return;
  const nowMs = sim.time.nowMs();
  const recent = life.listings.filter(({ atMs }, index) => {
    const replacedAtMs = life.listings[index + 1]?.atMs ?? nowMs;
    return replacedAtMs >= nowMs - DECIDED_MS_MAX || atMs >= nowMs - DECIDED_MS_MAX;
  });
  if (recent.length > 0 && recent.every(({ kept }) => kept.has(uid))) {
    sim.violate('INV-3', `${what}, though every listing said that the pod is wanted or unknown`);
  }
}

function isThere(sim: Simulation, path: string): boolean {
  return typeof sim.kernel.walk(path as AbsolutePath) !== 'string';
}

/** An operation takes down what the pod was not told of, by the wish of the agent: a CSIDriver object may come late. */
function isRenewing(sim: Simulation, uid: string): boolean {
  const reconciler = sim.earlyView()?.reconciler;
  return (reconciler?.running() ?? []).some(({ operation }) => {
    if (!('publication' in operation) || !operation.publication.startsWith(`${uid}/`)) return false;
    const wanted = reconciler?.desired().volumes.get(operation.volume);
    const known = reconciler?.actual().get(operation.volume);
    return wanted !== undefined && sim.world.told.isRenewal(operation, known, wanted);
  });
}

/** A device that is just being published goes back when its number may be another disk's by now (k/k#34437). */
function isRecycled(sim: Simulation, path: string): boolean {
  if (!DEVICE_PATH.test(path)) return false;
  const running = sim.earlyView()?.reconciler.running() ?? [];
  return running.some(
    ({ operation }) => operation.kind === 'publish' && isPathOf(operation.publication, path),
  );
}

/** What leads the pod to the device that its driver publishes there, or that is bound there. */
function linkOf({ world }: Simulation, path: string): string {
  const [, name, uid] = /\/([^/]+)\/(?:dev\/)?([^/]+)$/.exec(path) ?? [];
  return `${world.layout.pods}/${uid}/volumeDevices/kubernetes.io~csi/${name}`;
}

function isPathOf(publication: PublicationKey, path: string): boolean {
  const names = path.split('/');
  return publication.split('/').every((name) => names.includes(name));
}

const POD_PATH = /\/pods\/([^/]+)\//;
const DEVICE_PATH = /\/volumeDevices\/(?:publish\/[^/]+|[^/]+\/dev)\/([^/]+)$/;

/** The teardown that does something at a path of a pod now. */
function teardownAt({ reconciler }: AgentView, path: string): Running[number] | undefined {
  return reconciler.running().find(({ operation, phase }) => {
    if (operation.kind !== 'unpublish' || phase !== 'running') return false;
    return isPathOf(operation.publication, path);
  });
}

function isInQuarantine(sim: Simulation, path: string, handle: string | undefined): boolean {
  const view = sim.earlyView();
  if (view === undefined) return false;
  const began = teardownAt(view, path);
  const torn = began && view.reconciler.actual().get(began.operation.volume)?.spec;
  const ending = handle ?? (torn?.kind === 'csi' ? torn.volumeHandle : undefined);
  if (ending !== undefined && sim.life?.unanswered.has(ending) === true) return true;
  const beganMs = began?.begunMs === undefined ? sim.time.nowMs() : sim.kernel.bootedMs + began.begunMs;
  if (sim.world.quarantine.hasJustEnded(beganMs)) return true;
  const { outOfService, volumes, lostAttachments } = view.reconciler.desired();
  const isAt = (spec: CsiVolumeSpec, places: ActualVolume['publications'] | DesiredVolume['publications']) =>
    [...places.values()].some((one) => sim.world.layout.mountPoint(spec, one.spec) === path);
  for (const { spec, quarantine, publications } of view.reconciler.actual().values()) {
    const isLost = lostAttachments.has(spec.id);
    if (spec.kind !== 'csi' || (quarantine === undefined && !outOfService && !isLost)) continue;
    // What nobody explains, where it is wanted, comes down with it.
    const wanted = volumes.get(spec.id)?.publications ?? new Map();
    if (handle === spec.volumeHandle || isAt(spec, publications) || isAt(spec, wanted)) return true;
  }
  return (
    outOfService &&
    [...volumes.values()].some((one) => one.spec.kind === 'csi' && isAt(one.spec, one.publications))
  );
}

type Running = ReturnType<AgentView['reconciler']['running']>;

export function checkStep(sim: Simulation): void {
  sim.world.quarantine.look();
  const early = sim.earlyView();
  const running = early?.reconciler.running() ?? [];
  const belief = early === undefined ? undefined : changeOfBelief(early.reconciler);
  if (early !== undefined) {
    if (belief?.isSame !== true) sim.world.told.look(early.reconciler.actual(), running);
    // From the first one on: of what began long ago the wish may be another by now.
    checkBeginnings(sim, early, running, belief?.before);
    sim.desiredWithin.endEvent();
  }
  const view = sim.life?.started === true ? early : undefined;
  sim.world.attachmentWatch.look(view, sim.time.nowMs());
  if (view === undefined) return;
  sim.world.deaths.look(view);
  if (sim.life !== undefined) sim.world.hung.look(view, sim.life.host.work);
  if (sim.life !== undefined && sim.plan.nfs.share > 0)
    sim.kernel.nfs.judge(sim.life.host.work, (invariant, text) => sim.violate(invariant, text));
  checkVolumes(sim, view, running, belief?.isSame === true);
  checkOperations(sim, running);
  if (sim.life?.stopping === false) checkTold(sim, view);
  checkLayers(sim);
}

/** After how many changes of the machine the volumes of an agent were judged last; negative: belief did not count. */
const judgedOn = new WeakMap<AgentView['reconciler'], number>();

function checkVolumes(sim: Simulation, view: AgentView, running: Running, isSameBelief: boolean): void {
  const { mayStack, allLock } = driversOf(sim.plan);
  const beliefCounts = !sim.world.trouble.mountsTaken && allLock;
  const changes = sim.kernel.mountChanges + sim.kernel.devices.changes;
  const machine = beliefCounts ? changes : -1 - changes;
  if (isSameBelief && judgedOn.get(view.reconciler) === machine) return;
  judgedOn.set(view.reconciler, machine);
  for (const volume of view.reconciler.actual().values()) {
    if (sim.kernel.strangers.size > 0) checkStrangers(sim, volume);
    // Published again, a driver may mount once more, and a device that has gone is replaced (seed 192109633); what was
    // done is learnt when the operation ends.
    const isBusy =
      (mayStack || hasLostDevice(sim, volume)) &&
      running.some(({ operation }) => operation.volume === volume.spec.id);
    if (beliefCounts && !isBusy) checkBelief(sim, volume);
    if (isBusy) judgedOn.delete(view.reconciler);
    if (volume.quarantine !== undefined) checkClean(sim, volume);
  }
}

/** A pod was told of a disk that is none of the machine's any more. */
function hasLostDevice({ kernel }: Simulation, { publications }: ActualVolume): boolean {
  return [...publications.values()].some(
    ({ mount }) => mount?.blockDevice !== undefined && !kernel.devices.has(mount.blockDevice),
  );
}

interface DriversInWhole {
  readonly mayStack: boolean;
  readonly allLock: boolean;
}

const ofPlan = new WeakMap<Plan, DriversInWhole>();

/** Asked after every event; a plan never changes. */
function driversOf(plan: Plan): DriversInWhole {
  const known = ofPlan.get(plan);
  if (known !== undefined) return known;
  const { drivers } = plan;
  const mayStack = drivers.some(({ fates }) => (fates.stack ?? 0) > 0);
  const found = { mayStack, allLock: drivers.every(({ locks }) => locks) };
  ofPlan.set(plan, found);
  return found;
}

const compared = new WeakMap<ActualVolume, number>();

/** MT-15: what somebody else mounted is never taken for the volume. */
function checkStrangers(sim: Simulation, volume: ActualVolume): void {
  // Belief is replaced, never changed, and so are mounts.
  if (compared.get(volume) === sim.kernel.mountChanges) return;
  compared.set(volume, sim.kernel.mountChanges);
  const { spec, stagedMount, publications } = volume;
  const { layout } = sim.world;
  const noted = [...publications.values()].map((one) => {
    return { mount: one.mount, path: layout.mountPoint(spec, one.spec) };
  });
  if (spec.kind === 'csi') noted.push({ mount: stagedMount, path: layout.stagingPath(spec) });
  for (const stranger of sim.kernel.strangers) {
    const isTaken = noted.some(({ mount, path }) => {
      const isIt = mount?.mountId === stranger.id && mount.device === stranger.fileSystem.device;
      return isIt && path === stranger.target;
    });
    if (isTaken) sim.violate('foreign', `${stranger.source} at ${stranger.target} is taken for ${spec.id}`);
  }
}

const believed = new WeakMap<ActualVolume, number>();

/** INV-11, INV-13, INV-33: who is believed present is mounted, once, as what was noted. */
function checkBelief(sim: Simulation, volume: ActualVolume): void {
  // Belief is replaced, never changed; what it is about changes with mounts and devices.
  const state = sim.kernel.mountChanges + sim.kernel.devices.changes;
  if (believed.get(volume) === state) return;
  believed.set(volume, state);
  for (const publication of volume.publications.values()) {
    if (publication.presence.kind === 'present') checkPresent(sim, volume, publication);
  }
}

function checkPresent(
  sim: Simulation,
  { spec }: ActualVolume,
  { mount, spec: place }: ActualPublication,
): void {
  if (mount === undefined) return;
  const target = sim.world.layout.mountPoint(spec, place);
  const top = sim.kernel.mountsAt(target).at(-1);
  if (top === undefined)
    return sim.violate('INV-11', `${place.key} is believed present, but nothing is mounted`);
  if (top.id !== mount.mountId || top.fileSystem.device !== mount.device) {
    sim.violate('INV-11', `${place.key} is believed mount ${mount.mountId}, but ${target} is ${top.id}`);
  }
  if (spec.kind !== 'csi') return;
  const backing = sim.world.storage.backingOf({ driver: spec.driver, handle: spec.volumeHandle });
  if (spec.mode === 'Block')
    return checkDevice(sim, place.key, sim.world.layout.target(spec, place), backing);
  if (top.fileSystem === backing?.fileSystem) return;
  if (!sim.world.oracle.mayHaveEnded(spec.volumeHandle, target))
    sim.violate('INV-11', `${place.key} shows another volume`);
}

/** A pod never has another volume's device, even when its own is gone for a while (k/k#34437). */
function checkDevice(sim: Simulation, key: string, link: AbsolutePath, backing: Backing | undefined): void {
  const shown = sim.world.backingShown(link);
  // A driver may be replacing its node, or have taken the disk away, at this moment.
  if (shown !== undefined && shown !== backing)
    sim.violate('INV-11', `${key} shows the device of ${shown.handle}`);
}

const verified = new WeakMap<Simulation, Set<string>>();

/** Said now, and not known from a record: what was its device may be another volume's by then. */
function isSaidNow(sim: Simulation, { spec, quarantine }: ActualVolume): boolean {
  const said = verified.get(sim) ?? new Set();
  verified.set(sim, said);
  const text = `${spec.id} ${JSON.stringify(quarantine)}`;
  if (said.has(text)) return false;
  said.add(text);
  return true;
}

/** B-4: what is said to be clean is used by nobody on this machine. What a driver does late nobody can know. */
function checkClean(sim: Simulation, volume: ActualVolume): void {
  const { spec, quarantine } = volume;
  if (spec.kind !== 'csi' || quarantine?.verified !== true || !isSaidNow(sim, volume)) return;
  sim.tally.verified += 1;
  const backing = sim.world.storage.backingOf({ driver: spec.driver, handle: spec.volumeHandle });
  if (backing === undefined || sim.plan.drivers.some(({ locks }) => !locks)) return;
  const [user] = usersOf(sim.kernel, backing, quarantine.devices);
  if (user !== undefined)
    sim.violate('B-4', `${spec.volumeHandle} is said to be clean, and there is ${user}`);
}

/** The executor lists anew what runs when that has changed. */
const judged = new WeakSet<Running>();

/** INV-6 inside the agent: never two operations of which one is about the whole volume, or both about one place. */
function checkOperations(sim: Simulation, running: Running): void {
  if (running.length < 2 || judged.has(running)) return;
  judged.add(running);
  const places = new Set<string>();
  const volumes = new Set<string>();
  for (const { operation } of running) {
    const place =
      'publication' in operation ? `${operation.volume} ${operation.publication}` : operation.volume;
    const clash =
      places.has(place) || places.has(operation.volume) || (place === operation.volume && volumes.has(place));
    if (clash) sim.violate('INV-6', `two operations of ${place} at once`);
    places.add(place);
    volumes.add(operation.volume);
  }
}

const begun = new WeakSet<object>();

/** INV-3 at the moment an operation begins, by the agent's own wish: decided late means decided now. */
function checkBeginnings(
  sim: Simulation,
  view: AgentView,
  running: Running,
  before: ActualState | undefined,
): void {
  const actual = view.reconciler.actual();
  for (const entry of running) {
    if (entry.phase !== 'running' || begun.has(entry)) continue;
    begun.add(entry);
    const { operation } = entry;
    sim.absences.noteBegin(operation, view);
    const wanted = view.reconciler.desired().volumes.get(operation.volume);
    const unwanted = !isWanted(view.reconciler.desired(), operation);
    // One that needs no call has begun, and its volume may be forgotten, within one event (seed 49711).
    const known = actual.get(operation.volume) ?? before?.get(operation.volume);
    const isQuarantined = known?.quarantine !== undefined || isStanding(view, operation.volume);
    const isNew =
      operation.kind === 'publish' &&
      before?.get(operation.volume)?.publications.has(operation.publication) !== true;
    if (isNew) sim.clusterWatch?.judgePublish(operation.volume, known?.publishContext);
    if (operation.kind === 'clean' && !isQuarantined)
      sim.violate('B-4', `${operation.volume} is searched for users, and it is not in quarantine`);
    if (operation.kind === 'clean') continue;
    const mayGo =
      isQuarantined ||
      hasEnded(sim, known, operation) ||
      sim.world.told.isGiveBack(operation, known) ||
      sim.world.deaths.mayGo(operation, known, before?.get(operation.volume)) ||
      (wanted !== undefined && sim.world.told.isRenewal(operation, known, wanted));
    if (isTeardown(operation.kind) && !unwanted && !mayGo && !sim.desiredWithin.unwanted(operation))
      sim.violate('INV-3', `${operation.kind} begins of what is wanted: ${operation.volume}`);
    const wasFree = (): boolean =>
      known?.quarantine?.reason !== 'operator' &&
      wasFreeWithin(sim, before?.get(operation.volume), operation);
    if (!isTeardown(operation.kind) && isQuarantined && !wasFree())
      sim.violate('B-3', `${operation.kind} begins of ${operation.volume}, which is in quarantine`);
    if (!isTeardown(operation.kind) && unwanted && !sim.desiredWithin.wanted(operation))
      sim.violate('decide-late', `${operation.kind} begins of what nobody wants: ${operation.volume}`);
  }
}

/** It was not in quarantine before this event, and a wish of the event asked for it (seed 237729091). */
function wasFreeWithin(
  { desiredWithin }: Simulation,
  before: ActualVolume | undefined,
  operation: Operation,
): boolean {
  const { volume } = operation;
  const isFree = (desired: DesiredState): boolean =>
    isWanted(desired, operation) &&
    !isBarred(desired, volume) &&
    desiredQuarantine(desired, volume, before) === undefined;
  return before?.quarantine === undefined && desiredWithin.some(isFree);
}

function hasEnded(sim: Simulation, known: ActualVolume | undefined, operation: Operation): boolean {
  if (known?.spec.kind !== 'csi' || operation.kind !== 'unpublish') return false;
  const place = known.publications.get(operation.publication)?.spec;
  if (place === undefined) return false;
  return sim.world.oracle.hasEnded(known.spec.volumeHandle, sim.world.layout.target(known.spec, place));
}

/** By the wish alone, before it was noted. */
function isStanding({ reconciler }: AgentView, volume: VolumeId): boolean {
  return isBarred(reconciler.desired(), volume);
}

function isBarred({ outOfService, lostAttachments }: DesiredState, volume: VolumeId): boolean {
  return volume.startsWith(CSI_PLUGIN) && (outOfService || lostAttachments.has(volume));
}

function isTeardown(kind: string): boolean {
  return kind === 'unpublish' || kind === 'unstage' || kind === 'detach';
}

const lastObstacleLook = new WeakMap<Simulation, number>();

/** What is told of what is not where it should be; once a virtual second is enough. */
function checkTold(sim: Simulation, view: AgentView): void {
  const nowMs = sim.time.nowMs();
  if (nowMs - (lastObstacleLook.get(sim) ?? 0) < 1_000) return;
  lastObstacleLook.set(sim, nowMs);
  const obstacles = view.reconciler.obstacles();
  checkObstacles(sim, view, obstacles, nowMs);
  checkReasons(sim, view, obstacles);
}

/** INV-34, D-10: what is stuck for long has exactly one reason. */
function checkObstacles(
  sim: Simulation,
  view: AgentView,
  obstacles: readonly Obstacle[],
  nowMs: number,
): void {
  const keys = new Map<string, number>();
  for (const { volume, publication } of obstacles) {
    const key = `${volume} ${publication ?? ''}`;
    keys.set(key, (keys.get(key) ?? 0) + 1);
  }
  for (const [key, count] of keys) if (count > 1) sim.violate('INV-34', `${count} obstacles for ${key}`);
  const text = JSON.stringify([
    obstacles,
    view.desiredObjects.rejected,
    view.reconciler.desired().unresolved,
  ]);
  if (text.includes(CANARY)) sim.violate('INV-25', 'a secret in the obstacles');
  if (nowMs - sim.kernel.bootedMs - view.startedMs < STUCK_MS) return;
  for (const volume of view.reconciler.desired().volumes.values()) {
    for (const [key] of volume.publications) {
      const known = view.reconciler.actual().get(volume.spec.id)?.publications.get(key);
      if (known?.presence.kind === 'present') continue;
      if (keys.has(`${volume.spec.id} ${key}`) || keys.has(`${volume.spec.id} `)) continue;
      sim.violate('INV-34', `${key} is wanted and not there, and nothing says why`);
    }
  }
}
