/**
 * What must be true after every event, by the names of reliability.md §3. Which invariant is judged where, and
 * which do not apply to this version, is listed in README.md beside this file.
 */
import type { AgentView } from '../../agent/agent.ts';
import type { ActualPublication, ActualVolume } from '../../reconciler/actual-state.ts';
import type { Simulation } from './simulate.ts';
import { HOST_DATA, ROOT } from './sim-world.ts';
import { CANARY } from './trace.ts';
import type { EffectKind } from './weather.ts';

/** What one listing of the manifests could tell: pods that are wanted, or of which nothing is known. */
export interface Listing {
  readonly atMs: number;
  readonly kept: ReadonlySet<string>;
}

/** An operation may have begun this long before its effect, on the word of an older listing. */
const DECIDED_MS_MAX = 200_000;
const STUCK_MS = 30_000;

const CHANGING: ReadonlySet<EffectKind> = new Set([
  'makeDirectory',
  'removeEmptyDirectory',
  'removeTree',
  'writeFile',
  'removeFile',
  'rename',
  'makeLink',
  'mount',
  'unmount',
]);

/** The atomic writer removes old generations below it. */
const VOLUME_ROOT = /\/pods\/[^/]+\/volumes\/[^/]+\/[^/]+$/;

/** Before an effect of the agent: may it do this at all? `what` begins with the path. */
export function checkEffect(sim: Simulation, kind: EffectKind, path: string): void {
  if (!CHANGING.has(kind)) return;
  const inside =
    path.startsWith(`${ROOT}/`) || (kind === 'makeDirectory' && path.startsWith(`${HOST_DATA}/`));
  if (!inside) sim.violate('outside', `${kind} of ${path}, which is not ours`);
  const isVolume = kind === 'unmount' || (kind === 'removeTree' && VOLUME_ROOT.test(path));
  if (isVolume) checkTeardown(sim, `${kind} ${path}`, path);
}

/** INV-15 and INV-3: nothing is taken down before every source is listed, nor of a pod that is wanted or unknown. */
export function checkTeardown(sim: Simulation, what: string, path: string): void {
  const life = sim.life;
  if (life === undefined) return;
  if (!life.listings.some(() => true)) sim.violate('INV-15', `${what} before the manifests were listed`);
  const uid = /\/pods\/([^/]+)\//.exec(path)?.[1];
  if (uid === undefined) return;
  const nowMs = sim.time.nowMs();
  const recent = life.listings.filter(({ atMs }, index) => {
    const replacedAtMs = life.listings[index + 1]?.atMs ?? nowMs;
    return replacedAtMs >= nowMs - DECIDED_MS_MAX || atMs >= nowMs - DECIDED_MS_MAX;
  });
  if (recent.length > 0 && recent.every(({ kept }) => kept.has(uid))) {
    sim.violate('INV-3', `${what}, though every listing said that the pod is wanted or unknown`);
  }
}

export function checkStep(sim: Simulation): void {
  const view = sim.view();
  if (view === undefined) return;
  const actual = view.reconciler.actual();
  for (const volume of actual.values()) {
    checkBelief(sim, volume);
  }
  checkOperations(sim, view);
  checkBeginnings(sim, view);
  if (sim.life?.stopping === false) checkObstacles(sim, view);
  checkLayers(sim);
}

/** INV-11, INV-13: who is believed present is mounted, once, as what was noted. */
function checkBelief(sim: Simulation, volume: ActualVolume): void {
  if (sim.world.mountsTaken || sim.plan.drivers.some(({ locks }) => !locks)) return;
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
  const target = sim.world.layout.target(spec, place);
  const top = sim.kernel.mountsAt(target).at(-1);
  if (top === undefined)
    return sim.violate('INV-11', `${place.key} is believed present, but nothing is mounted`);
  if (top.id !== mount.mountId || top.fileSystem.device !== mount.device) {
    sim.violate('INV-11', `${place.key} is believed mount ${mount.mountId}, but ${target} is ${top.id}`);
  }
  if (spec.kind !== 'csi') return;
  const backing = sim.world.drivers.find(({ name }) => name === spec.driver)?.backing(spec.volumeHandle);
  if (top.fileSystem !== backing?.fileSystem) sim.violate('INV-11', `${place.key} shows another volume`);
}

/** INV-6 inside the agent: never two operations of which one is about the whole volume, or both about one place. */
function checkOperations(sim: Simulation, view: AgentView): void {
  const running = view.reconciler.running();
  if (running.length < 2) return;
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
function checkBeginnings(sim: Simulation, view: AgentView): void {
  for (const entry of view.reconciler.running()) {
    if (entry.phase !== 'running' || begun.has(entry)) continue;
    begun.add(entry);
    const { operation } = entry;
    const wanted = view.reconciler.desired().volumes.get(operation.volume);
    const unwanted =
      'publication' in operation ? !wanted?.publications.has(operation.publication) : wanted === undefined;
    if (isTeardown(operation.kind) && !unwanted)
      sim.violate('INV-3', `${operation.kind} begins of what is wanted: ${operation.volume}`);
    if (!isTeardown(operation.kind) && unwanted)
      sim.violate('decide-late', `${operation.kind} begins of what nobody wants: ${operation.volume}`);
  }
}

function isTeardown(kind: string): boolean {
  return kind === 'unpublish' || kind === 'unstage' || kind === 'detach';
}

const lastObstacleLook = new WeakMap<Simulation, number>();

/** INV-34 and INV-10 of decision 10: what is stuck for long has exactly one reason; once a virtual second is enough. */
function checkObstacles(sim: Simulation, view: AgentView): void {
  const nowMs = sim.time.nowMs();
  if (nowMs - (lastObstacleLook.get(sim) ?? 0) < 1_000) return;
  lastObstacleLook.set(sim, nowMs);
  const obstacles = view.reconciler.obstacles();
  const keys = new Map<string, number>();
  for (const { volume, publication } of obstacles) {
    const key = `${volume} ${publication ?? ''}`;
    keys.set(key, (keys.get(key) ?? 0) + 1);
  }
  for (const [key, count] of keys) if (count > 1) sim.violate('INV-34', `${count} obstacles for ${key}`);
  const text = JSON.stringify([obstacles, view.wish.rejected, view.reconciler.desired().unresolved]);
  if (text.includes(CANARY)) sim.violate('INV-25', 'a secret in the obstacles');
  if (nowMs - view.startedMs < STUCK_MS) return;
  for (const volume of view.reconciler.desired().volumes.values()) {
    for (const [key] of volume.publications) {
      const known = view.reconciler.actual().get(volume.spec.id)?.publications.get(key);
      if (known?.presence.kind === 'present') continue;
      if (keys.has(`${volume.spec.id} ${key}`) || keys.has(`${volume.spec.id} `)) continue;
      sim.violate('INV-34', `${key} is wanted and not there, and nothing says why`);
    }
  }
}

const lastMountChanges = new WeakMap<Simulation, number>();

/** INV-12: nothing of ours is ever mounted twice on one target; drivers that stack are beyond us. */
function checkLayers(sim: Simulation): void {
  if (lastMountChanges.get(sim) === sim.kernel.mountChanges) return;
  lastMountChanges.set(sim, sim.kernel.mountChanges);
  const driversStack = sim.plan.drivers.some(({ fates, locks }) => (fates.stack ?? 0) > 0 || !locks);
  const seen = new Set<string>();
  for (const { target, fileSystem } of sim.kernel.mounts()) {
    if (seen.has(target) && (fileSystem.type === 'tmpfs' || !driversStack)) {
      sim.violate('INV-12', `${target} is mounted twice`);
    }
    seen.add(target);
  }
}
