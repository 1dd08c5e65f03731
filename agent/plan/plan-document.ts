/** What `mooring plan -o json` prints (docs/API.md): what an agent that starts now would do to what is there. Pure. */
import type { Failure } from '../../mount/failure.ts';
import { driverOf } from '../../plugins/kinds/volume-questions.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { VolumePlan } from '../../reconciler/model/plan.ts';
import type { StandingWord } from '../resolve/standing-word.ts';
import type { StatusDocument } from '../status/status-document.ts';
import type { StatusFacts } from '../status/status-facts.ts';
import { sourcesOf } from '../status/status-sources.ts';
import { volumesOf, type VolumePair } from '../status/status-places.ts';
import { shown, shownOrNull, shownVolumeId } from '../status/status-text.ts';
import { type PlannedAction, plannedPlaces, plannedStage, type Wait } from './planned-action.ts';

export interface PlanReason {
  readonly code: string | null;
  readonly message: string;
  readonly blocker: string | null;
}

export interface PlannedPlace {
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** A source has the pod, and its containers may run. False: nothing but the disk tells of it. */
  readonly listed: boolean;
  /** Its directory in the pod: the PersistentVolume, or what the pod calls it. */
  readonly name: string;
  readonly action: PlannedAction;
  readonly reason: PlanReason | null;
}

export interface PlannedVolume {
  readonly id: string;
  readonly kind: string;
  readonly driver: string | null;
  /** What becomes of the mount that its places are made from; null: there is none. */
  readonly stage: PlannedAction | null;
  /** Why the stage is left alone; why nothing of the volume is set up. */
  readonly reason: PlanReason | null;
  /** Why the cluster does not explain that it is here, where something of it stands; null: it does, or need not. */
  readonly unexplained: string | null;
  readonly places: readonly PlannedPlace[];
}

export interface PlanDocument {
  readonly apiVersion: 'mooring/v1';
  readonly kind: 'Plan';
  readonly node: string;
  readonly root: string;
  /** All sources were listed and the disk was read. False: there may be more, and nothing would be taken down yet. */
  readonly whole: boolean;
  /** Why an agent would not start; null: it would. */
  readonly refusal: {
    readonly code: string;
    readonly message: string;
    readonly blocker: string | null;
  } | null;
  /** Places that would be taken down from pods that a source has. */
  readonly disturbed: number;
  /** All that are wanted or known, by their ids. */
  readonly volumes: readonly PlannedVolume[];
  /** Volumes of pods that cannot be told yet: what stands of those pods is left alone. */
  readonly unresolved: readonly {
    readonly pod: PlannedPlace['pod'];
    readonly name: string;
    readonly reason: PlanReason;
  }[];
  readonly sources: StatusDocument['sources'];
}

export interface PlanFacts {
  readonly facts: StatusFacts;
  readonly root: string;
  readonly whole: boolean;
  readonly refusal: Failure | undefined;
  readonly planOf: (volume: VolumeId) => VolumePlan;
  readonly wordOf: (volume: VolumeId) => StandingWord | undefined;
}

/** A failure, or an obstacle. */
interface Told {
  readonly code: string | undefined;
  readonly message: string;
  readonly blocker?: string | undefined;
}

export function planDocument(parts: PlanFacts): PlanDocument {
  const { facts, root, whole, refusal } = parts;
  const listed = new Set(facts.pods.map(({ uid }) => uid));
  const volumes = withLast(volumesOf(facts).map((pair) => volumeOf(pair, listed, parts)));
  const places = volumes.flatMap((volume) => volume.places);
  const { code, message = '', blocker } = refusal ?? {};
  return {
    apiVersion: 'mooring/v1',
    kind: 'Plan',
    node: facts.nodeName,
    root,
    whole,
    refusal: code === undefined ? null : { code, message: shown(message), blocker: shownOrNull(blocker) },
    disturbed: places.filter((place) => place.listed && place.action === 'take-down').length,
    volumes,
    unresolved: facts.desired.unresolved.map(({ pod, volumeName, failure }) => {
      const { namespace, name, uid } = pod;
      return { pod: { namespace, name, uid }, name: volumeName, reason: reasonOf(failure) };
    }),
    sources: sourcesOf(facts, (monotonicMs) =>
      new Date(facts.wallMs - (facts.nowMs - monotonicMs)).toISOString(),
    ),
  };
}

/** Data that is deleted last of its pod goes, too, when all else of the pod goes. */
function withLast(volumes: readonly PlannedVolume[]): readonly PlannedVolume[] {
  const isLast = ({ reason }: PlannedPlace): boolean => reason?.code === 'removed-last';
  const goes = new Set<string>();
  const stays = new Set<string>();
  for (const place of volumes.flatMap(({ places }) => places)) {
    const { uid } = place.pod;
    if (place.action === 'take-down') goes.add(`${uid}/${place.name}`);
    else if (!isLast(place)) stays.add(uid);
  }
  const goesAtLast = (place: PlannedPlace): boolean =>
    isLast(place) && !stays.has(place.pod.uid) && goes.has(`${place.pod.uid}/${place.reason?.blocker}`);
  return volumes.map((volume) => ({
    ...volume,
    places: volume.places.map((place) => (goesAtLast(place) ? { ...place, action: 'take-down' } : place)),
  }));
}

function volumeOf(
  pair: VolumePair,
  listed: ReadonlySet<string>,
  { facts, planOf, wordOf }: PlanFacts,
): PlannedVolume {
  const { spec } = pair;
  const plan = planOf(spec.id);
  // What the planner leaves to others to say is said by the obstacle of the same place.
  const told = ({ publication, failure }: Wait): PlanReason | null => {
    if (failure !== undefined) return reasonOf(failure);
    const one = facts.obstacles.find((obstacle) => {
      return obstacle.volume === spec.id && obstacle.publication === publication;
    });
    return one === undefined ? null : reasonOf(one);
  };
  const stage = plannedStage(pair, plan);
  return {
    id: shownVolumeId(spec.id),
    kind: spec.kind,
    driver: driverOf(spec) ?? null,
    stage: stage?.action ?? null,
    reason: stage?.wait === undefined ? null : told(stage.wait),
    unexplained: unexplained(wordOf(spec.id)),
    places: plannedPlaces(pair, plan).map(({ place, action, wait }) => {
      const { namespace, name, uid } = place.pod;
      return {
        pod: { namespace, name, uid },
        listed: listed.has(uid),
        name: place.specName,
        action,
        reason: wait === undefined ? null : told(wait),
      };
    }),
  };
}

function unexplained(word: StandingWord | undefined): string | null {
  return word?.word === undefined ? null : shown(word.word.blocked.message);
}

function reasonOf({ code, message, blocker }: Told): PlanReason {
  return {
    code: code ?? null,
    message: shown(message),
    blocker: shownOrNull(blocker),
  };
}
