/** Why is it not there? One sentence per obstacle: what it waits for, since when, who blocks, when it goes on. Pure. */
import { spanText } from './duration.ts';
import { nearest } from './nearest.ts';
import { printable } from './printable.ts';
import type { PodStatus, PodVolumeStatus, Reason, StatusDocument, VolumeStatus } from './status-document.ts';

export interface ExplainedObstacle {
  /** namespace/name; null when it is about the volume as a whole. */
  readonly pod: string | null;
  readonly volume: string;
  readonly sentence: string;
  readonly reason: Reason;
}

export interface ExplanationDocument {
  readonly apiVersion: 'mooring/v1';
  readonly kind: 'Explanation';
  readonly subject: { readonly kind: 'pod' | 'volume'; readonly name: string; readonly id: string };
  /** The whole matter in one sentence. */
  readonly summary: string;
  readonly obstacles: readonly ExplainedObstacle[];
  /** What else helps to understand: one sentence each. */
  readonly notes: readonly string[];
}

export type Explanation =
  | { readonly kind: 'found'; readonly document: ExplanationDocument }
  | { readonly kind: 'unknown'; readonly message: string }
  | { readonly kind: 'ambiguous'; readonly message: string; readonly candidates: readonly string[] };

type Match =
  | { readonly kind: 'pod'; readonly pod: PodStatus }
  | { readonly kind: 'volume'; readonly volume: VolumeStatus };

const CANDIDATES_MAX = 10;
const SUBJECT_BYTES_MAX = 128;

/**
 * Explains a pod (`name`, `namespace/name` or uid) or a volume (PersistentVolume name, the pod's volume name, volume
 * handle or volume id), each also as `pod:…` or `volume:…`.
 */
export function explain(subject: string, status: StatusDocument): Explanation {
  const matches = matchesOf(subject, status);
  const [match] = matches;
  if (match === undefined) return unknown(subject, status);
  if (matches.length > 1) {
    const candidates = matches.map(unmistakable);
    const some = candidates.slice(0, CANDIDATES_MAX).join(', ');
    const more = candidates.length > CANDIDATES_MAX ? ` and ${candidates.length - CANDIDATES_MAX} more` : '';
    const message = `"${printable(subject, SUBJECT_BYTES_MAX)}" can mean ${some}${more}; say which`;
    return { kind: 'ambiguous', message, candidates };
  }
  const document = match.kind === 'pod' ? explainPod(match.pod, status) : explainVolume(match.volume, status);
  return { kind: 'found', document };
}

function matchesOf(subject: string, status: StatusDocument): readonly Match[] {
  const prefix = /^(pod|volume):/.exec(subject)?.[1];
  const name = prefix === undefined ? subject : subject.slice(prefix.length + 1);
  const pods = prefix === 'volume' ? [] : status.pods.filter((pod) => podNames(pod).includes(name));
  const volumes =
    prefix === 'pod' ? [] : status.volumes.filter((volume) => volumeNames(volume).includes(name));
  return [
    ...pods.map((pod) => ({ kind: 'pod' as const, pod })),
    ...volumes.map((volume) => ({ kind: 'volume' as const, volume })),
  ];
}

function podNames(pod: PodStatus): readonly string[] {
  return [pod.name, fullName(pod), pod.uid];
}

function volumeNames({ id, name }: VolumeStatus): readonly string[] {
  const handle = id.indexOf('^');
  return handle < 0 ? [id, name] : [id, name, id.slice(handle + 1)];
}

function fullName({ namespace, name }: PodStatus): string {
  return `${namespace}/${name}`;
}

function unmistakable(match: Match): string {
  if (match.kind === 'volume') return `volume:${match.volume.id}`;
  return `pod:${match.pod.uid} (${fullName(match.pod)})`;
}

function unknown(subject: string, status: StatusDocument): Explanation {
  const name = printable(subject, SUBJECT_BYTES_MAX);
  const message = `no pod and no volume is called "${name}". ${adviceFor(subject, status)}`;
  return { kind: 'unknown', message };
}

function adviceFor(subject: string, status: StatusDocument): string {
  const rejected = status.sources.rejected.find((one) => isAbout(one.subject, subject));
  if (rejected !== undefined) {
    const field = rejected.field === null ? '' : `${rejected.field}: `;
    return `${rejected.subject ?? 'One'} in ${rejected.origin} was rejected: ${field}${rejected.message}.`;
  }
  const names = [...status.pods.flatMap(podNames), ...status.volumes.flatMap(volumeNames)];
  if (names.length === 0) return 'The agent knows no pods and no volumes.';
  const guess = nearest(subject, names);
  return guess === undefined ? '"mooring status" lists all there are.' : `Did you mean "${guess}"?`;
}

/** `Pod default/web` is about `web` and `default/web`. */
function isAbout(rejected: string | null, subject: string): boolean {
  const name = rejected?.split(' ').at(-1);
  return name !== undefined && (name === subject || name.endsWith(`/${subject}`));
}

function explainPod(pod: PodStatus, status: StatusDocument): ExplanationDocument {
  const obstacles = pod.volumes.flatMap((volume) => {
    const { reason } = volume;
    if (reason === null) return [];
    const sentence = `volume ${volume.name}: ${sentenceOf(reason, volume.driver)}`;
    return [{ pod: fullName(pod), volume: volume.id ?? volume.name, sentence, reason }];
  });
  return {
    apiVersion: 'mooring/v1',
    kind: 'Explanation',
    subject: { kind: 'pod', name: fullName(pod), id: pod.uid },
    summary: podSummary(pod, obstacles.length),
    obstacles,
    notes: [...notesOf(pod.volumes, status), ...othersOf(pod, status)],
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
  const own =
    volume.reason === null
      ? []
      : [
          {
            pod: null,
            volume: volume.id,
            sentence: sentenceOf(volume.reason, volume.driver),
            reason: volume.reason,
          },
        ];
  const ofPods = places.flatMap(({ pod, place }) => {
    // The obstacle of the volume as a whole is the obstacle of each pod too; it is told once.
    if (place.reason === null || sameReason(place.reason, volume.reason)) return [];
    const sentence = `pod ${fullName(pod)}: ${sentenceOf(place.reason, volume.driver)}`;
    return [{ pod: fullName(pod), volume: volume.id, sentence, reason: place.reason }];
  });
  const obstacles = [...own, ...ofPods];
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
    notes: notesOf(
      places.map(({ place }) => place),
      status,
    ),
  };
}

function volumeSummary(volume: VolumeStatus, places: readonly PodVolumeStatus[], obstacles: number): string {
  const wanted = places.filter((place) => place.wanted);
  const there = wanted.filter(({ state }) => state === 'mounted').length;
  const state = volume.wanted
    ? `it is mounted for ${there} of ${counted(wanted.length, 'pod')}`
    : 'no pod wants it any more and it is being taken down';
  return `${obstacles === 0 ? 'nothing is in the way of ' : ''}volume ${volume.name}: ${state}`;
}

function placesOf(id: string, status: StatusDocument): readonly { pod: PodStatus; place: PodVolumeStatus }[] {
  return status.pods.flatMap((pod) => {
    return pod.volumes.filter((place) => place.id === id).map((place) => ({ pod, place }));
  });
}

function sameReason(a: Reason, b: Reason | null): boolean {
  return (
    b !== null && a.kind === b.kind && a.code === b.code && a.operation === b.operation && a.since === b.since
  );
}

/** `stage failed 3 times (driver-busy) since 41s: …; blocked by …; next try in 12s`. */
export function sentenceOf(reason: Reason, driver: string | null): string {
  const since = reason.forMs === null ? '' : ` for ${spanText(reason.forMs)}`;
  const named = reason.blocker === null || reason.blocker === '' || reason.message.includes(reason.blocker);
  const blocker = named ? '' : `, blocked by ${reason.blocker}`;
  const verb = reason.operation ?? 'the next step';
  switch (reason.kind) {
    case 'running':
      return `${verb} has been running${since}`;
    case 'waiting-retry': {
      const tries = reason.attempts === 1 ? 'once' : `${reason.attempts} times`;
      return `${verb} failed ${tries} (${reason.code})${since}: ${reason.message}${blocker}; ${nextTry(reason)}`;
    }
    case 'waiting-change':
      return (
        `${verb} failed (${reason.code})${since}: ${reason.message}${blocker}; ` +
        'it is not tried again before the wish or the driver changes'
      );
    case 'waiting-driver':
      return (
        `waits${since} for driver ${driver ?? reason.blocker ?? ''} to register on this node; ` +
        'it goes on by itself as soon as it does'
      );
    case 'waiting-turn':
      return `${verb} waits${since} for its turn: ${reason.message}${blocker}`;
    case 'blocked':
      return (
        `cannot be set up${since} (${reason.code}): ${reason.message}${blocker}; ` +
        'it goes on by itself when that is put right'
      );
    case 'gate-closed':
    case 'frozen':
      return `${verb} is held back${since}: ${reason.message}${blocker}`;
  }
}

function nextTry({ nextRetryInMs }: Reason): string {
  if (nextRetryInMs === null) return 'no next try is planned';
  return nextRetryInMs === 0 ? 'the next try is due now' : `next try in ${spanText(nextRetryInMs)}`;
}

/** The chain behind the obstacle: what refused drivers and unreadable sources have to do with it. */
function notesOf(places: readonly PodVolumeStatus[], status: StatusDocument): readonly string[] {
  const waited = new Set(
    places.filter(({ reason }) => reason?.kind === 'waiting-driver').map(({ driver }) => driver),
  );
  const refused = status.drivers.filter(({ state, name }) => {
    return state === 'refused' && waited.size > 0 && (name === null || waited.has(name));
  });
  const origins = new Set(places.map(({ origin }) => origin));
  return [
    ...refused.map(({ name, socket, reason }) => {
      return `driver ${name ?? '(no name)'} at ${socket} was refused: ${reason ?? 'no reason given'}`;
    }),
    ...status.sources.unknown.filter((one) => origins.has(one)).map((one) => `${one} cannot be read now`),
  ];
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
        .filter(({ phase }) => phase === 'running')
        .map(({ operation, since }) => {
          return `${operation} of volume ${name} has been running since ${since}`;
        });
    });
}

/** `1 volume`, `3 volumes`. */
function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
