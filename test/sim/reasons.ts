/**
 * Every reason is judged by what is really going on (issue 7, 13): the step that is told of a running operation by the
 * effects and calls of the agent that are open at this moment, every other wait by the state that it speaks of.
 */
import type { AgentView } from '../../agent/node/agent-view.ts';
import type { CsiVolumeSpec, PublicationSpec, VolumeId, VolumeSpec } from '../../plugins/volume.ts';
import type { ActualVolume } from '../../reconciler/model/actual-state.ts';
import type { Obstacle } from '../../reconciler/model/obstacle.ts';
import { isBeside, type Operation, publicationOf } from '../../reconciler/model/operation.ts';
import { placeBeside } from '../../reconciler/model/tombstone.ts';
import type { OpenCall, OpenEffect } from './open-work.ts';
import type { Simulation } from './simulate.ts';

/** A try is begun in the turn that its time has come; timers are rounded up. */
const LATE_MS_MAX = 5;

const RPCS_OF: Readonly<Record<string, readonly string[] | undefined>> = {
  attach: ['ControllerPublishVolume'],
  detach: ['ControllerUnpublishVolume'],
  stage: ['NodeStageVolume'],
  unstage: ['NodeUnstageVolume'],
  // What was published of a disk that another one took the number of is given back.
  publish: ['NodePublishVolume', 'NodeUnpublishVolume'],
  unpublish: ['NodeUnpublishVolume'],
  expand: ['NodeExpandVolume'],
};

/** `obstacles`: those of this moment. */
export function checkReasons(sim: Simulation, view: AgentView, obstacles: readonly Obstacle[]): void {
  const running = view.reconciler.running();
  for (const obstacle of obstacles) {
    const begun = running.find(
      (one) =>
        one.phase === 'running' &&
        one.operation.volume === obstacle.volume &&
        one.operation.kind === obstacle.operation &&
        publicationOf(one.operation) === obstacle.publication,
    );
    const untrue =
      begun === undefined
        ? untrueWait(sim, view, obstacle)
        : untrueStep(sim, view, obstacle, subjectOf(view, begun.operation));
    if (untrue !== undefined)
      sim.violate('reason', `of ${obstacle.volume} is told "${obstacle.message}", but ${untrue}`);
  }
}

/** What is wrong with what is told of an operation that has begun; undefined: it is so. */
function untrueStep(
  sim: Simulation,
  view: AgentView,
  obstacle: Obstacle,
  { spec, place, places }: Subject,
): string | undefined {
  const work = sim.life?.host.work;
  if (spec?.kind !== 'csi' || work === undefined || obstacle.operation === 'clean') return undefined;
  const isOfCluster = obstacle.operation === 'attach' || obstacle.operation === 'detach';
  // The cluster attaches: what is waited for then is an answer of its API server.
  if (isOfCluster && sim.cluster !== undefined) return undefined;
  const rpcs = RPCS_OF[obstacle.operation ?? ''] ?? [];
  const calls = work.calls().filter((one) => one.volumeId === spec.volumeHandle);
  const own = calls.find((one) => rpcs.includes(one.method) && isAt(sim, spec, place, one));
  const told = obstacle.step;
  if (own !== undefined && (told?.kind !== 'called' || told.rpc !== own.method))
    return `${own.method} is not answered yet`;
  const effects = work.effects().filter((one) => isAbout(sim, spec, places, one));
  switch (told?.kind) {
    case 'called':
      return own === undefined ? `no ${told.rpc} of it is open` : undefined;
    case 'queued': {
      const [first] = calls;
      if (first === undefined) return effects.length > 0 ? undefined : 'nothing of the volume is under way';
      const isNamed = calls.some(({ method }) => told.behind.includes(method));
      return isNamed ? undefined : `it is ${first.method} that is open`;
    }
    default:
      return effects.length > 0 || isWalked(view, obstacle) ? undefined : 'nothing of it is under way';
  }
}

/** One that says that it waits for an ownership walk of its volume, which goes on at another of its places. */
function isWalked({ reconciler }: AgentView, { message, volume, publication }: Obstacle): boolean {
  if (!message.includes('waiting until the volume has been given to group')) return false;
  return reconciler.running().some(({ operation, phase }) => {
    const isOther = 'publication' in operation && operation.publication !== publication;
    return operation.volume === volume && phase === 'running' && isOther;
  });
}

/** What is wrong with what is told of something that has not begun. */
function untrueWait(sim: Simulation, view: AgentView, obstacle: Obstacle): string | undefined {
  const { kind, volume, blocker } = obstacle;
  const { reconciler, drivers } = view;
  const spec = specOf(view, volume);
  const isRegistered = drivers.list().some(({ name }) => spec?.kind === 'csi' && name === spec.driver);
  switch (kind) {
    case 'waiting-driver':
      return isRegistered ? 'the driver is registered' : undefined;
    case 'running':
      return 'it has not begun';
    case 'waiting-turn': {
      const isFirst = reconciler
        .running()
        .some(
          ({ operation, lane }) =>
            lane === blocker || (operation.volume === volume && operation.kind === blocker),
        );
      return isFirst ? undefined : `no ${blocker} is under way`;
    }
    case 'waiting-retry': {
      const dueMs = obstacle.nextRetryMs;
      return dueMs !== undefined && sim.kernel.bootedMs + dueMs + LATE_MS_MAX < sim.time.nowMs()
        ? 'the next try is due'
        : undefined;
    }
    case 'quarantined': {
      const { outOfService } = reconciler.desired();
      const isIn = reconciler.actual().get(volume)?.quarantine !== undefined || outOfService;
      return isIn || reconciler.desired().lostAttachments.has(volume) || isReplaced(view, volume)
        ? undefined
        : 'it is not in quarantine';
    }
    case 'blocked':
      return obstacle.code === 'reference-missing' && isThere(view, obstacle) ? 'it is there' : undefined;
    default:
      return undefined;
  }
}

/** By the wish alone: attached anew since it was set up. */
function isReplaced(view: AgentView, volume: VolumeId): boolean {
  return view.reconciler.desired().attachmentUids.has(volume);
}

/** The secret that is said to be missing. */
function isThere({ desiredObjects }: AgentView, { message, blocker }: Obstacle): boolean {
  if (blocker === undefined || message !== `Secret ${blocker} does not exist`) return false;
  return desiredObjects.secrets.has(blocker);
}

function specOf({ reconciler }: AgentView, volume: VolumeId) {
  return reconciler.actual().get(volume)?.spec ?? reconciler.desired().volumes.get(volume)?.spec;
}

interface Subject {
  readonly spec: VolumeSpec | undefined;
  readonly place: PublicationSpec | undefined;
  /** Where its effects may be: a growth names no place, and looks at one of them. */
  readonly places: readonly PublicationSpec[];
}

/** What came late beside a volume is of the specification under which it was asked for. */
function subjectOf(view: AgentView, operation: Operation): Subject {
  const { reconciler } = view;
  const spec = specOf(view, operation.volume);
  const publication = publicationOf(operation);
  const known: ActualVolume | undefined = reconciler.actual().get(operation.volume);
  if (publication === undefined) {
    const all = operation.kind === 'expand' ? [...(known?.publications.values() ?? [])] : [];
    return { spec, place: undefined, places: all.map((one) => one.spec) };
  }
  const beside = isBeside(operation) && known !== undefined ? placeBeside(known, publication) : undefined;
  if (beside !== undefined)
    return { spec: beside.spec, place: beside.publication, places: [beside.publication] };
  const volume = known ?? reconciler.desired().volumes.get(operation.volume);
  const place = volume?.publications.get(publication)?.spec;
  return { spec, place, places: place === undefined ? [] : [place] };
}

function isAt(
  { world }: Simulation,
  spec: CsiVolumeSpec,
  place: PublicationSpec | undefined,
  { targetPath }: OpenCall,
): boolean {
  return (
    targetPath === undefined || (place !== undefined && world.layout.driverTarget(spec, place) === targetPath)
  );
}

/** Who holds a mount is only a reason: nothing waits for that. */
function isAbout(
  { world }: Simulation,
  spec: CsiVolumeSpec,
  places: readonly PublicationSpec[],
  { kind, path }: OpenEffect,
): boolean {
  if (kind === 'findHolders') return false;
  // One look is for all places that are to come down.
  if (kind === 'findPlaceHolders') return true;
  // On a doubt whose mount it is that one sees at a place.
  if (kind === 'readMountTable') return true;
  const { layout } = world;
  const roots: readonly string[] = [
    layout.records,
    layout.deviceDirectory(spec.driver, spec.volumeHandle),
    layout.blockDevices,
    '/sys/dev/block',
    ...places.map(({ pod }) => layout.podDirectory(pod.uid)),
  ];
  return roots.some((root) => path === root || path.startsWith(`${root}/`));
}
