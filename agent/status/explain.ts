/** Why is it not there? One sentence per obstacle: what it waits for, since when, who blocks, when it goes on. Pure. */
import {
  changedSentence,
  expansionSentence,
  forceClause,
  healthSentence,
  lateEffectSentence,
  quarantineSentence,
  questionSentence,
  reasonSentence,
  replacedSentence,
  unreadyClause,
  vanishedSentence,
  massRemovalSentence,
} from './sentence.ts';
import type { DetachClockStatus, PodStatus, PodVolumeStatus, StatusDocument } from './status-document.ts';
import { FORCE_AFTER_MS } from '../source/cluster-report.ts';
import type { Reason, VolumeStatus } from './volume-status.ts';
import { findSubject, fullName, type Missed } from './subject.ts';

export interface ExplainedObstacle {
  /** namespace/name; null when it is about the volume as a whole. */
  readonly pod: string | null;
  readonly volume: string;
  readonly sentence: string;
  readonly reason: Reason;
}

/** Something that stands beside the ladder: mounted or not, somebody should know of it. */
export interface ExplainedCondition {
  readonly kind: 'quarantine' | 'expansion' | 'health' | 'question' | 'changed' | 'late-effect';
  readonly volume: string;
  readonly sentence: string;
}

export interface ExplanationDocument {
  readonly apiVersion: 'mooring/v1';
  readonly kind: 'Explanation';
  readonly subject: { readonly kind: 'pod' | 'volume'; readonly name: string; readonly id: string };
  /** The whole matter in one sentence. */
  readonly summary: string;
  readonly obstacles: readonly ExplainedObstacle[];
  readonly conditions: readonly ExplainedCondition[];
  /** What else helps to understand: one sentence each. */
  readonly notes: readonly string[];
}

export type Explanation = { readonly kind: 'found'; readonly document: ExplanationDocument } | Missed;

const PODS_TOLD_MAX = 3;

/** Explains a pod or a volume, called as `findSubject` knows it. */
export function explain(subject: string, status: StatusDocument): Explanation {
  const found = findSubject(subject, status);
  if (found.kind !== 'found') return found;
  const document =
    found.subject.kind === 'pod'
      ? explainPod(found.subject.pod, status)
      : explainVolume(found.subject.volume, status);
  return { kind: 'found', document };
}

function explainPod(pod: PodStatus, status: StatusDocument): ExplanationDocument {
  const obstacles = pod.volumes.flatMap((volume) => {
    const { reason } = volume;
    if (reason === null) return [];
    const sentence = `volume ${volume.name}: ${reasonSentence(reason, volume.driver)}`;
    return [{ pod: fullName(pod), volume: volume.id ?? volume.name, sentence, reason }];
  });
  const ids = new Set(pod.volumes.map(({ id }) => id));
  const conditions = status.volumes
    .filter(({ id }) => ids.has(id))
    .flatMap((volume) => conditionsOf(volume, `volume ${volume.name}: `));
  return {
    apiVersion: 'mooring/v1',
    kind: 'Explanation',
    subject: { kind: 'pod', name: fullName(pod), id: pod.uid },
    summary: podSummary(pod, obstacles.length + conditions.filter(isInTheWay).length),
    obstacles,
    conditions,
    notes: [
      ...notesOf(pod.volumes, [pod], status),
      ...othersOf(pod, status),
      ...status.volumes.filter(({ id }) => ids.has(id)).flatMap((volume) => detachNotes(volume, status)),
    ],
  };
}

function podSummary(pod: PodStatus, obstacles: number): string {
  const name = `pod ${fullName(pod)}`;
  const wanted = pod.volumes.filter((volume) => volume.wanted);
  const there = wanted.filter(({ state }) => state === 'mounted').length;
  if (!pod.wanted) {
    return `${name} is no longer wanted; ${counted(pod.volumes.length, 'volume')} of it still to be taken down`;
  }
  if (pod.volumes.length === 0) return `nothing is in the way: ${name} uses no volume`;
  const share = `${there} of ${counted(wanted.length, 'volume')} mounted`;
  if (obstacles > 0) return `${name}: ${share}`;
  return pod.ready
    ? `nothing is in the way: ${name} has all of its ${counted(wanted.length, 'volume')} mounted`
    : `nothing is in the way: ${name} is being set up, ${share}`;
}

function explainVolume(volume: VolumeStatus, status: StatusDocument): ExplanationDocument {
  const places = placesOf(volume.id, status);
  const obstacles = obstaclesOf(volume, places);
  return {
    apiVersion: 'mooring/v1',
    kind: 'Explanation',
    subject: { kind: 'volume', name: volume.name, id: volume.id },
    summary: volumeSummary(
      volume,
      places.map(({ place }) => place),
      obstacles.length,
    ),
    obstacles,
    conditions: conditionsOf(volume, ''),
    notes: [
      ...notesOf(
        places.map(({ place }) => place),
        places.map(({ pod }) => pod),
        status,
      ),
      ...detachNotes(volume, status),
    ],
  };
}

/** A volume as one pod has or wants it. */
export interface ExplainedPlace {
  readonly pod: PodStatus;
  readonly place: PodVolumeStatus;
}

/** Its own first, then those of the pods; `places` are all of the volume. */
export function obstaclesOf(
  volume: VolumeStatus,
  places: readonly ExplainedPlace[],
): readonly ExplainedObstacle[] {
  const { id, driver, reason: own } = volume;
  const ofVolume =
    own === null ? [] : [{ pod: null, volume: id, sentence: reasonSentence(own, driver), reason: own }];
  const ofPods = places.flatMap(({ pod, place: { reason } }) => {
    // The obstacle of the volume as a whole is the obstacle of each pod too; it is told once.
    if (reason === null || sameReason(reason, own)) return [];
    const sentence = `pod ${fullName(pod)}: ${reasonSentence(reason, driver)}`;
    return [{ pod: fullName(pod), volume: id, sentence, reason }];
  });
  return [...ofVolume, ...ofPods];
}

function isInTheWay({ kind }: ExplainedCondition): boolean {
  return kind === 'quarantine';
}

function volumeSummary(volume: VolumeStatus, places: readonly PodVolumeStatus[], obstacles: number): string {
  if (volume.quarantine !== null) {
    const { length } = volume.publishedTo;
    const still = length === 0 ? '' : `, and still published to ${counted(length, 'pod')}`;
    return `volume ${volume.name}: it is in quarantine${still}`;
  }
  const wanted = places.filter((place) => place.wanted);
  const there = wanted.filter(({ state }) => state === 'mounted').length;
  const isDown = volume.publishedTo.length === 0 && ![volume.rungs.staged, volume.rungs.attached].some(isUp);
  if (!volume.wanted && isDown && volume.lateEffects.length > 0)
    return `volume ${volume.name}: it is down, and watched for what may still come`;
  const state = volume.wanted
    ? `it is mounted for ${there} of ${counted(wanted.length, 'pod')}`
    : `${volume.stranger ? 'it was found on disk, no pod wants it,' : 'no pod wants it any more'} ` +
      `and it is ${volume.reason?.kind === 'gate-closed' ? 'kept as it is' : 'being taken down'}`;
  return `${obstacles === 0 ? 'nothing is in the way of ' : ''}volume ${volume.name}: ${state}`;
}

function isUp(rung: VolumeStatus['rungs']['staged']): boolean {
  return rung === 'present' || rung === 'unsure';
}

function placesOf(id: string, status: StatusDocument): readonly ExplainedPlace[] {
  return status.pods.flatMap((pod) => {
    return pod.volumes.filter((place) => place.id === id).map((place) => ({ pod, place }));
  });
}

function sameReason(a: Reason, b: Reason | null): boolean {
  return (
    b !== null && a.kind === b.kind && a.code === b.code && a.operation === b.operation && a.since === b.since
  );
}

/** What of a volume is to be told whether it is mounted or not; `prefix` begins each sentence. */
function conditionsOf(volume: VolumeStatus, prefix: string): readonly ExplainedCondition[] {
  const told = (kind: ExplainedCondition['kind'], sentence: string): ExplainedCondition => {
    return { kind, volume: volume.id, sentence: prefix + sentence };
  };
  const quarantine = quarantineSentence(volume);
  const expansion = expansionSentence(volume);
  const changed = changedSentence(volume);
  const question = questionSentence(volume);
  return [
    ...(quarantine === undefined ? [] : [told('quarantine', quarantine)]),
    ...(volume.health ?? []).map((one) => told('health', healthSentence(one, volume.driver))),
    ...volume.lateEffects.map((one) => told('late-effect', lateEffectSentence(one))),
    ...(question === undefined ? [] : [told('question', question)]),
    ...(expansion === undefined ? [] : [told('expansion', expansion)]),
    ...(changed === undefined ? [] : [told('changed', changed)]),
  ];
}

/** The chain behind the obstacle: what refused drivers and unreadable sources have to do with it. */
function notesOf(
  places: readonly PodVolumeStatus[],
  pods: readonly PodStatus[],
  status: StatusDocument,
): readonly string[] {
  const waited = new Set(
    places.filter(({ reason }) => reason?.kind === 'waiting-driver').map(({ driver }) => driver),
  );
  const refused = status.drivers.filter(({ state, name }) => {
    return state === 'refused' && waited.size > 0 && (name === null || waited.has(name));
  });
  const { vanishing, vanished, replaced } = status.sources;
  const isVanishing = vanishing !== null && pods.some(({ uid }) => vanishing.pods.includes(uid));
  const isVanished = vanished !== null && pods.some(({ uid }) => vanished.pods.includes(uid));
  const origins = new Set(places.map(({ origin }) => origin));
  return [
    ...places.flatMap(({ name, image }) => {
      return image === null ? [] : [`volume ${name}: what starts the containers mounts the image ${image}`];
    }),
    ...refused.map(({ name, socket, reason }) => {
      return `driver ${name ?? '(no name)'} at ${socket} was refused: ${reason ?? 'no reason given'}`;
    }),
    ...(isVanishing ? [massRemovalSentence(vanishing, status.pods.length)] : []),
    ...(isVanished ? [vanishedSentence(vanished, status.sources.unknown)] : []),
    ...(replaced === null ? [] : [replacedSentence(replaced)]),
    ...status.sources.unknown.filter((one) => origins.has(one)).map((one) => `${one} cannot be read now`),
  ];
}

/** What has to happen before the cluster takes by force what is attached to a node that is not Ready. */
function detachNotes({ id, name, rungs }: VolumeStatus, status: StatusDocument): readonly string[] {
  const clock = status.sources.cluster?.detachClock ?? null;
  if (clock === null || !isUp(rungs.attached)) return [];
  const pods = placesOf(id, status).map(({ pod }) => pod);
  const told = new Map(clock.pods.map((one) => [one.uid, one]));
  const holding = pods.flatMap((pod) => {
    const demand = told.get(pod.uid);
    return demand === undefined || demand.state === 'ended'
      ? []
      : [`pod ${fullName(pod)} (${demandText(demand)})`];
  });
  const begin = `${unreadyClause(clock)}: volume ${name} is`;
  if (holding.length > 0) {
    const more = holding.length > PODS_TOLD_MAX ? ` and ${holding.length - PODS_TOLD_MAX} more` : '';
    const whose = `${holding.slice(0, PODS_TOLD_MAX).join(', ')}${more} ${holding.length === 1 ? 'is' : 'are'}`;
    return [`${begin} detached by force ${forceClause(clock)} after ${whose} gone from the cluster`];
  }
  const ended = pods.flatMap(({ uid }) => told.get(uid)?.endedSince ?? []).sort();
  const last = ended.at(-1);
  if (clock.outOfService || last === undefined)
    return [`${begin} detached by force ${clock.outOfService ? 'now' : 'at any moment'}, as no pod has it`];
  const due = new Date(Date.parse(last) + FORCE_AFTER_MS).toISOString();
  return [`${begin} detached by force from ${due} on, as no pod has had it since ${last}`];
}

function demandText({ state, markedFrom }: DetachClockStatus['pods'][number]): string {
  if (state === 'staying')
    return 'it tolerates what the node is tainted with, and is not marked for deletion';
  if (state === 'leaving') return 'it is marked for deletion';
  return `to be marked for deletion ${markedFrom === null ? 'when the node is tainted' : `from ${markedFrom} on`}`;
}

/** Who else is at work on the same volumes, when this pod waits for its turn. */
function othersOf(pod: PodStatus, status: StatusDocument): readonly string[] {
  const waiting = new Set(
    pod.volumes.filter(({ reason }) => reason?.kind === 'waiting-turn').map(({ id }) => id),
  );
  return status.volumes
    .filter(({ id }) => waiting.has(id))
    .flatMap(({ name, running }) => {
      return running
        .filter(({ phase, step }) => phase === 'running' && step.kind !== 'queued')
        .map(({ operation, since }) => {
          return `${operation} of volume ${name} has been running since ${since}`;
        });
    });
}

/** `1 volume`, `3 volumes`. */
function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
