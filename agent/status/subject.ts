/** What a person calls a pod or a volume, and which of them is meant. Pure. */
import { nearest } from '../../mount/text/nearest.ts';
import { printable } from '../../mount/text/printable.ts';
import { problemText } from '../../mount/text/problem-text.ts';
import type { PodStatus, StatusDocument } from './status-document.ts';
import type { VolumeStatus } from './volume-status.ts';

export type Subject =
  | { readonly kind: 'pod'; readonly pod: PodStatus }
  | { readonly kind: 'volume'; readonly volume: VolumeStatus };

export type Missed =
  | { readonly kind: 'unknown'; readonly message: string }
  | { readonly kind: 'ambiguous'; readonly message: string; readonly candidates: readonly string[] };

const CANDIDATES_MAX = 10;
const SOURCES_MAX = 3;
const SUBJECT_BYTES_MAX = 128;

/**
 * A pod (`name`, `namespace/name` or uid) or a volume (PersistentVolume name, the pod's volume name, volume handle or
 * volume id), each also as `pod:…` or `volume:…`.
 */
export function findSubject(
  text: string,
  status: StatusDocument,
): { readonly kind: 'found'; readonly subject: Subject } | Missed {
  const subjects: readonly Subject[] = [
    ...podsCalled(text, status).map((pod) => ({ kind: 'pod' as const, pod })),
    ...volumesCalled(text, status).map((volume) => ({ kind: 'volume' as const, volume })),
  ];
  const [subject] = subjects;
  if (subject === undefined) return unknown(text, 'no pod and no volume', status);
  return subjects.length > 1 ? ambiguous(text, subjects) : { kind: 'found', subject };
}

/** The volume of that name, as in `findSubject`; a pod is never meant. */
export function findVolume(
  text: string,
  status: StatusDocument,
): { readonly kind: 'found'; readonly volume: VolumeStatus } | Missed {
  const volumes = volumesCalled(text, status);
  const [volume] = volumes;
  if (volume === undefined) return unknown(text, 'no volume', status);
  if (volumes.length === 1) return { kind: 'found', volume };
  return ambiguous(
    text,
    volumes.map((one) => ({ kind: 'volume', volume: one })),
  );
}

type FoundPod = { readonly kind: 'found'; readonly pod: PodStatus } | Missed;

/** The pod of that name, as in `findSubject`; a volume is never meant. */
export function findPod(text: string, status: StatusDocument): FoundPod {
  return onePod(text, podsCalled(text, status), status);
}

/** The same, for what only a pod has that is wanted: not meant is one that another has succeeded under its name. */
export function findWantedPod(text: string, status: StatusDocument): FoundPod {
  const called = podsCalled(text, status);
  const taken = new Set(called.filter(({ wanted }) => wanted).map(fullName));
  const pods = called.filter((pod) => pod.wanted || !taken.has(fullName(pod)));
  return onePod(text, pods, status);
}

function podsCalled(text: string, status: StatusDocument): readonly PodStatus[] {
  const { prefix, name } = parse(text);
  return prefix === 'volume' ? [] : status.pods.filter((pod) => podNames(pod).includes(name));
}

function onePod(text: string, pods: readonly PodStatus[], status: StatusDocument): FoundPod {
  const [pod] = pods;
  if (pod === undefined) return unknown(text, 'no pod', status);
  if (pods.length === 1) return { kind: 'found', pod };
  return ambiguous(
    text,
    pods.map((one) => ({ kind: 'pod', pod: one })),
  );
}

/** `namespace/name`; of a pod found on disk its uid, for it has no name any more. */
export function fullName({ namespace, name, uid }: Pick<PodStatus, 'namespace' | 'name' | 'uid'>): string {
  return name === '' ? uid : `${namespace}/${name}`;
}

function parse(text: string): { readonly prefix: string | undefined; readonly name: string } {
  const prefix = /^(pod|volume):/.exec(text)?.[1];
  return { prefix, name: prefix === undefined ? text : text.slice(prefix.length + 1) };
}

function volumesCalled(text: string, status: StatusDocument): readonly VolumeStatus[] {
  const { prefix, name } = parse(text);
  return prefix === 'pod' ? [] : status.volumes.filter((volume) => volumeNames(volume).includes(name));
}

function podNames(pod: PodStatus): readonly string[] {
  return pod.name === '' ? [pod.uid] : [pod.name, fullName(pod), pod.uid];
}

function volumeNames({ id, name }: VolumeStatus): readonly string[] {
  const handle = id.indexOf('^');
  return handle < 0 ? [id, name] : [id, name, id.slice(handle + 1)];
}

function ambiguous(text: string, subjects: readonly Subject[]): Missed {
  const candidates = subjects.map(unmistakable);
  const some = candidates.slice(0, CANDIDATES_MAX).join(', ');
  const more = candidates.length > CANDIDATES_MAX ? ` and ${candidates.length - CANDIDATES_MAX} more` : '';
  const message = `"${printable(text, SUBJECT_BYTES_MAX)}" can mean ${some}${more}; say which`;
  return { kind: 'ambiguous', message, candidates };
}

function unmistakable(subject: Subject): string {
  if (subject.kind === 'volume') return `volume:${subject.volume.id}`;
  return `pod:${subject.pod.uid} (${fullName(subject.pod)})`;
}

type Sought = 'no pod and no volume' | 'no pod' | 'no volume';

function unknown(text: string, what: Sought, status: StatusDocument): Missed {
  const name = printable(text, SUBJECT_BYTES_MAX);
  const message = `${what} is called "${name}". ${adviceFor(text, what, status)}`;
  return { kind: 'unknown', message };
}

/** What a source says that was never read is in no status. */
function unreadClause({ sources }: StatusDocument): string {
  const { length } = sources.unknown;
  if (length === 0) return '';
  const more = length > SOURCES_MAX ? ` and ${length - SOURCES_MAX} more` : '';
  return `${sources.unknown.slice(0, SOURCES_MAX).join(', ')}${more} cannot be read now, and may tell of it. `;
}

function adviceFor(text: string, what: Sought, status: StatusDocument): string {
  const { name } = parse(text);
  const rejected = status.sources.rejected.find((one) => isAbout(one.subject, name));
  if (rejected !== undefined) {
    return `${rejected.subject ?? 'One'} in ${rejected.origin} was rejected: ${problemText(rejected)}.`;
  }
  return `${unreadClause(status)}${nearOf(name, what, status)}`;
}

function nearOf(name: string, what: Sought, status: StatusDocument): string {
  const pods = what === 'no volume' ? [] : status.pods.flatMap(podNames);
  const names = [...pods, ...(what === 'no pod' ? [] : status.volumes.flatMap(volumeNames))];
  if (names.length === 0) return `The agent knows ${KNOWN_NONE[what]}.`;
  const guess = nearest(name, names);
  return guess === undefined ? '"mooring status" lists all there are.' : `Did you mean "${guess}"?`;
}

const KNOWN_NONE: Readonly<Record<Sought, string>> = {
  'no pod and no volume': 'no pods and no volumes',
  'no pod': 'no pods',
  'no volume': 'no volumes',
};

/** `Pod default/web` is about `web` and `default/web`. */
function isAbout(rejected: string | null, name: string): boolean {
  const full = rejected?.split(' ').at(-1);
  return full !== undefined && (full === name || full.endsWith(`/${name}`));
}
