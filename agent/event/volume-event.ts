/** What stands in the way of volumes, said of the objects of a cluster by the kubelet's words for it. Pure. */
import type { FailureCode } from '../../mount/failure.ts';
import { problemText } from '../../mount/text/problem-text.ts';
import { isDevice, nameOf, persistentVolumeOf } from '../../plugins/kinds/volume-questions.ts';
import type { PodUid, PublicationSpec, VolumeSpec } from '../../plugins/volume.ts';
import { climbs } from '../../reconciler/model/operation.ts';
import type { ActualState } from '../../reconciler/model/actual-state.ts';
import type { Obstacle } from '../../reconciler/model/obstacle.ts';
import type { AgentView } from '../node/agent-view.ts';
import type { Rejection, WaitingPod } from '../source/objects-source.ts';
import { shown } from '../status/status-text.ts';

/** An object that events are about; of a PersistentVolume only the name is known. */
export interface EventSubject {
  readonly kind: 'Pod' | 'PersistentVolume';
  /** Empty for a PersistentVolume. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string | undefined;
}

/** The kubelet's words where it has one (Kubernetes: package kubelet/events), ours where it is silent. */
export type EventReason =
  | 'FailedMount'
  | 'FailedMapVolume'
  | 'VolumeResizeFailed'
  | 'FailedUnmount'
  | 'FailedUnmountDevice'
  | 'WaitingForAttachment'
  | 'VolumeQuarantined';

export interface VolumeEvent {
  readonly subject: EventSubject;
  readonly reason: EventReason;
  /** The failure's code, or the kind of the wait. */
  readonly code: string;
  /** It is this volume of the subject; empty: it is all of them. */
  readonly volume: string;
  /** Printable, and bounded as in the status. */
  readonly message: string;
  /** How long it has to stand before it is said. */
  readonly sayAfterMs: number;
}

/** What of a running agent is looked at. */
export interface EventView {
  readonly reconciler: Pick<AgentView['reconciler'], 'actual' | 'desired' | 'obstacles'>;
  readonly desiredObjects: {
    /** By uid, and only where each pod is from. */
    readonly pods: ReadonlyMap<PodUid, { readonly origin: string }>;
    readonly rejected: readonly Pick<Rejection, 'pod' | 'podVolumes' | 'field' | 'message'>[];
  };
}

/** A failure is said soon; what one try cures is not. */
const FAILED_AFTER_MS = 2_000;
/** Every wait of half a minute has been said. */
const WAITING_AFTER_MS = 15_000;

/** All that is to be said now. `origin`: of the pods of the cluster; others have no object to say it of. */
export function volumeEvents(view: EventView, origin: string): readonly VolumeEvent[] {
  const { reconciler, desiredObjects } = view;
  const isOfCluster = (pod: PodUid): boolean => desiredObjects.pods.get(pod)?.origin === origin;
  const unresolved = reconciler
    .desired()
    .unresolved.filter(({ pod }) => isOfCluster(pod.uid))
    .map(({ pod, volumeName, failure }): VolumeEvent => {
      const { code, message } = failure;
      const said = { code, volume: volumeName, message: sentence(volumeName, message) };
      return { ...said, subject: podSubject(pod), reason: 'FailedMount', sayAfterMs: FAILED_AFTER_MS };
    });
  const inTheWay = reconciler.obstacles().flatMap((obstacle) => eventsOf(obstacle, view, origin));
  const waiting = desiredObjects.rejected.filter(({ pod }) => pod !== undefined);
  const standing = waiting.length === 0 ? NOWHERE : standingByPod(reconciler.actual());
  const asWhole = waiting.filter((one) => !hasAll(one, standing)).flatMap(waitOf);
  return [...unresolved, ...inTheWay, ...asWhole];
}

const NOWHERE: ReadonlyMap<PodUid, number> = new Map();

function standingByPod(actual: ActualState): ReadonlyMap<PodUid, number> {
  const standing = new Map<PodUid, number>();
  for (const { publications } of actual.values()) {
    for (const { spec, presence } of publications.values()) {
      const { uid } = spec.pod;
      if (presence.kind === 'present') standing.set(uid, (standing.get(uid) ?? 0) + 1);
    }
  }
  return standing;
}

/** As after a restart, while the server has not told of all that a running pod leads to. */
function hasAll(
  { pod, podVolumes }: Pick<Rejection, 'pod' | 'podVolumes'>,
  standing: ReadonlyMap<PodUid, number>,
): boolean {
  return pod !== undefined && podVolumes !== undefined && (standing.get(pod.uid) ?? 0) >= podVolumes;
}

/** What a pod that is not shown yet does not have here waits. */
function waitOf(rejection: EventView['desiredObjects']['rejected'][number]): readonly VolumeEvent[] {
  const { pod } = rejection;
  if (pod === undefined) return [];
  const said = { code: 'not-taken', volume: '', message: shown(problemText(rejection)) };
  return [{ ...said, subject: podSubject(pod), reason: 'FailedMount', sayAfterMs: WAITING_AFTER_MS }];
}

/** What an obstacle is about, as long as it is one to be told. */
interface Trouble {
  readonly code: FailureCode | Obstacle['kind'];
  readonly message: string;
  readonly hasFailed: boolean;
}

function eventsOf(obstacle: Obstacle, view: EventView, origin: string): readonly VolumeEvent[] {
  const { reconciler } = view;
  const { volume, publication, operation } = obstacle;
  const desired = reconciler.desired().volumes.get(volume);
  const known = reconciler.actual().get(volume);
  const spec = known?.spec ?? desired?.spec;
  const trouble = troubleOf(obstacle);
  const reason = spec && reasonOf(obstacle, spec);
  if (spec === undefined || trouble === undefined || reason === undefined) return [];
  const isUp = operation !== undefined && climbs(operation);
  const places = isUp ? desired?.publications : known?.publications;
  const concerned = publication === undefined ? [...(places?.values() ?? [])] : [places?.get(publication)];
  const pods = concerned
    .filter((place) => place !== undefined)
    .filter((place) => isOfCluster(place.spec, view, origin))
    .map((place) => podSubject(place.spec.pod));
  const name = persistentVolumeOf(spec);
  const ofVolume: readonly EventSubject[] =
    name === undefined ? [] : [{ kind: 'PersistentVolume', namespace: '', name, uid: undefined }];
  const subjects = publication === undefined && !isUp ? ofVolume : pods;
  const said = { code: trouble.code, volume: nameOf(spec), message: sentence(nameOf(spec), trouble.message) };
  const sayAfterMs = isUp && trouble.hasFailed ? FAILED_AFTER_MS : WAITING_AFTER_MS;
  return subjects.map((subject) => ({ ...said, subject, reason, sayAfterMs }));
}

/** One that is tried again has the trouble of the try before, until it is done. */
function troubleOf({ kind, code, message, attempts, lastFailure, overdue }: Obstacle): Trouble | undefined {
  if (lastFailure !== undefined)
    return { code: lastFailure.code, message: lastFailure.message, hasFailed: true };
  // What goes last has no trouble of its own: whatever it waits for is told.
  if ((kind === 'running' && !overdue) || kind === 'waiting-turn' || code === 'removed-last')
    return undefined;
  return { code: code ?? kind, message, hasFailed: attempts > 0 || kind === 'blocked' };
}

function reasonOf({ kind, operation }: Obstacle, spec: VolumeSpec): EventReason | undefined {
  if (kind === 'quarantined') return 'VolumeQuarantined';
  switch (operation) {
    case 'attach':
      return 'WaitingForAttachment';
    case 'stage':
    case 'publish':
      return isDevice(spec) ? 'FailedMapVolume' : 'FailedMount';
    case 'expand':
      return 'VolumeResizeFailed';
    case 'unpublish':
      return 'FailedUnmount';
    case 'unstage':
      return 'FailedUnmountDevice';
    default:
      return undefined;
  }
}

function isOfCluster(
  { origin: from, pod }: PublicationSpec,
  { desiredObjects }: EventView,
  origin: string,
): boolean {
  return from === origin || desiredObjects.pods.get(pod.uid)?.origin === origin;
}

function podSubject({ namespace, name, uid }: WaitingPod): EventSubject {
  return { kind: 'Pod', namespace, name, uid };
}

function sentence(volume: string, message: string): string {
  return shown(`volume ${JSON.stringify(volume)}: ${message}`);
}
