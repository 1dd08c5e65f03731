/** What the agent knows as one document: the base of `mooring status`, `explain` and the API. Pure; without secrets. */
import type { Failure } from '../mount/failure.ts';
import type { DriverInstance, RefusedDriver } from '../plugins/csi/driver.ts';
import type { Layout } from '../plugins/layout.ts';
import {
  type PodReference,
  type PodUid,
  type PublicationSpec,
  SPEC_PLUGIN,
  type VolumeId,
  type VolumeSpec,
} from '../plugins/volume.ts';
import type { ActualPublication, ActualVolume, Presence } from '../reconciler/actual-state.ts';
import type { DesiredPublication, DesiredVolume } from '../reconciler/desired-state.ts';
import type { Obstacle } from '../reconciler/obstacle.ts';
import { printable } from './printable.ts';
import type {
  DriverStatus,
  PodStatus,
  PodVolumeStatus,
  Reason,
  RungState,
  StatusDocument,
  VolumeState,
  VolumeStatus,
} from './status-document.ts';
import type { StatusFacts } from './status-facts.ts';
import { BUILD } from './version.ts';

const MESSAGE_BYTES_MAX = 1_024;

/** The document of one moment. `revision` names the state it shows (see docs/API.md). */
export function statusOf(view: StatusFacts, layout: Layout, revision: string): StatusDocument {
  const build = createBuilder(view, layout);
  const pods = podsOf(view).map((pod) => build.pod(pod));
  const volumes = volumesOf(view).map((pair) => build.volume(pair));
  const rejected = view.rejected.map(({ origin, subject, field, message }) => ({
    origin: shown(origin),
    subject: shownOrNull(subject),
    field: shownOrNull(field),
    message: shown(message),
  }));
  return {
    apiVersion: 'mooring/v1',
    kind: 'Status',
    revision,
    agent: {
      node: view.nodeName,
      ...BUILD,
      root: layout.root,
      startedAt: build.when(view.startedMs),
      now: new Date(view.wallMs).toISOString(),
      uptimeMs: Math.round(view.nowMs - view.startedMs),
      complete: view.desired.complete,
    },
    summary: summaryOf(view, pods, volumes),
    pods,
    volumes,
    drivers: [
      ...view.drivers.map((driver) => build.driver(driver)),
      ...view.refusedDrivers.map(refusedDriver),
    ],
    sources: { rejected, unknown: [...view.desired.unknownOrigins].map(shown).sort() },
    unreadableRecords: view.unreadableRecords.map(({ file, failure }) => ({
      file: shown(file),
      code: failure.code,
      message: shown(failure.message),
    })),
  };
}

interface VolumePair {
  readonly spec: VolumeSpec;
  readonly wanted: DesiredVolume | undefined;
  readonly actual: ActualVolume | undefined;
}

interface PodPlace {
  readonly volume: VolumePair;
  readonly spec: PublicationSpec;
  readonly wanted: DesiredPublication | undefined;
  readonly actual: ActualPublication | undefined;
}

interface PodPlaces {
  readonly reference: PodReference;
  readonly places: PodPlace[];
  readonly unresolved: { readonly volumeName: string; readonly failure: Failure }[];
}

function volumesOf(view: StatusFacts): readonly VolumePair[] {
  const ids = new Set([...view.desired.volumes.keys(), ...view.actual.keys()]);
  return [...ids].sort().flatMap((id) => {
    const wanted = view.desired.volumes.get(id);
    const actual = view.actual.get(id);
    const spec = wanted?.spec ?? actual?.spec;
    return spec === undefined ? [] : [{ spec, wanted, actual }];
  });
}

/** Every pod that wants a volume or still has one, by namespace and name. */
function podsOf(view: StatusFacts): readonly PodPlaces[] {
  const pods = new Map<PodUid, PodPlaces>();
  const podOf = (reference: PodReference): PodPlaces => {
    const known = pods.get(reference.uid) ?? { reference, places: [], unresolved: [] };
    pods.set(reference.uid, known);
    return known;
  };
  for (const reference of view.pods) podOf(reference);
  for (const volume of volumesOf(view)) {
    const wanted = volume.wanted?.publications;
    const actual = volume.actual?.publications;
    for (const key of new Set([...(wanted?.keys() ?? []), ...(actual?.keys() ?? [])])) {
      const spec = wanted?.get(key)?.spec ?? actual?.get(key)?.spec;
      if (spec === undefined) continue;
      podOf(spec.pod).places.push({ volume, spec, wanted: wanted?.get(key), actual: actual?.get(key) });
    }
  }
  for (const { pod, volumeName, failure } of view.desired.unresolved) {
    podOf(pod).unresolved.push({ volumeName, failure });
  }
  const name = ({ reference }: PodPlaces): string =>
    `${reference.namespace}/${reference.name}/${reference.uid}`;
  return [...pods.values()].sort((a, b) => (name(a) < name(b) ? -1 : 1));
}

interface Builder {
  pod(pod: PodPlaces): PodStatus;
  volume(volume: VolumePair): VolumeStatus;
  driver(driver: DriverInstance): DriverStatus;
  when(monotonicMs: number): string;
}

function createBuilder(view: StatusFacts, layout: Layout): Builder {
  const obstacles = byVolume(view.obstacles);
  const wantedPods = new Set(view.pods.map(({ uid }) => uid));

  function when(monotonicMs: number): string {
    return new Date(view.wallMs - (view.nowMs - monotonicMs)).toISOString();
  }

  function reasonOf(obstacle: Obstacle | undefined): Reason | null {
    if (obstacle === undefined) return null;
    const { nextRetryMs } = obstacle;
    return {
      kind: obstacle.kind,
      code: obstacle.code ?? obstacle.kind,
      operation: obstacle.operation ?? null,
      message: shown(obstacle.message),
      blocker: shownOrNull(obstacle.blocker),
      since: when(obstacle.sinceMs),
      forMs: Math.max(0, Math.round(view.nowMs - obstacle.sinceMs)),
      nextRetryInMs: nextRetryMs === undefined ? null : Math.max(0, Math.round(nextRetryMs - view.nowMs)),
      attempts: obstacle.attempts,
    };
  }

  /** What stands in the way of one place: its own obstacle first, then that of the volume as a whole. */
  function obstacleOf({ volume, spec }: PodPlace): Obstacle | undefined {
    const ofVolume = obstacles.get(volume.spec.id) ?? [];
    return (
      ofVolume.find(({ publication }) => publication === spec.key) ??
      ofVolume.find(({ publication }) => publication === undefined)
    );
  }

  function place(one: PodPlace): PodVolumeStatus {
    const { volume, spec, wanted, actual } = one;
    const published = rung(actual?.presence);
    const there = published === 'present';
    const obstacle = obstacleOf(one);
    const state = wanted === undefined ? descending(obstacle) : climbing(there, obstacle);
    const path = shown(layout.target(volume.spec, spec));
    return {
      name: spec.specName,
      id: shown(volume.spec.id),
      plugin: SPEC_PLUGIN[volume.spec.kind],
      driver: driverOf(volume.spec),
      wanted: wanted !== undefined,
      state,
      rungs: { ...rungsOf(volume), published },
      readOnly: spec.readOnly,
      path,
      origin: shown(spec.origin),
      reason: state === 'mounted' && obstacle?.publication === undefined ? null : reasonOf(obstacle),
    };
  }

  return {
    when,
    pod({ reference, places, unresolved }) {
      const volumes = [...places.map(place), ...unresolved.map(unresolvedPlace)];
      volumes.sort((a, b) => (a.name < b.name ? -1 : 1));
      const { namespace, name, uid } = reference;
      const wanted = wantedPods.has(uid) || volumes.some((volume) => volume.wanted);
      const ready = wanted && volumes.every((volume) => !volume.wanted || volume.state === 'mounted');
      return { namespace, name, uid, wanted, ready, volumes };
    },
    volume(volume) {
      const { spec, wanted, actual } = volume;
      const own = (obstacles.get(spec.id) ?? []).filter(({ publication }) => publication === undefined);
      const published = [...(actual?.publications.values() ?? [])];
      return {
        id: shown(spec.id),
        plugin: SPEC_PLUGIN[spec.kind],
        driver: driverOf(spec),
        name: nameOf(volume),
        wanted: wanted !== undefined,
        rungs: rungsOf(volume),
        stagingPath:
          spec.kind === 'csi' && actual?.needs.stage === true
            ? layout.stagingPath(spec.driver, spec.volumeHandle)
            : null,
        wantedBy: [...(wanted?.publications.values() ?? [])].map(({ spec: { pod } }) => podName(pod)).sort(),
        publishedTo: published.map(({ spec: { pod } }) => podName(pod)).sort(),
        running: view.running
          .filter(({ operation }) => operation.volume === spec.id)
          .map((one) => ({
            operation: one.operation.kind,
            phase: one.phase,
            since: when(one.sinceMs),
          })),
        reason: reasonOf(own[0]),
      };
    },
    driver(driver) {
      return {
        name: driver.name,
        state: 'registered',
        version: shown(driver.vendorVersion),
        nodeId: shown(driver.nodeId),
        socket: driver.endpoint.path,
        registeredAt: when(driver.registeredAtMs),
        volumesMax: driver.volumesMax === 0 ? null : driver.volumesMax,
        volumes: [...view.actual.values()].filter(({ spec }) => driverOf(spec) === driver.name).length,
        reason: null,
      };
    },
  };
}

function refusedDriver({ socket, name, reason }: RefusedDriver): DriverStatus {
  return {
    name: shownOrNull(name),
    state: 'refused',
    version: null,
    nodeId: null,
    socket,
    registeredAt: null,
    volumesMax: null,
    volumes: 0,
    reason: shown(reason),
  };
}

function byVolume(obstacles: readonly Obstacle[]): ReadonlyMap<VolumeId, readonly Obstacle[]> {
  const groups = new Map<VolumeId, Obstacle[]>();
  for (const obstacle of obstacles) {
    const group = groups.get(obstacle.volume);
    if (group === undefined) groups.set(obstacle.volume, [obstacle]);
    else group.push(obstacle);
  }
  return groups;
}

function climbing(there: boolean, obstacle: Obstacle | undefined): VolumeState {
  if (there) return 'mounted';
  switch (obstacle?.kind) {
    case 'blocked':
    case 'waiting-change':
      return 'blocked';
    case 'waiting-retry':
    case 'waiting-driver':
    case 'waiting-turn':
      return 'waiting';
    default:
      return 'mounting';
  }
}

function descending(obstacle: Obstacle | undefined): VolumeState {
  return obstacle?.kind === 'gate-closed' || obstacle?.kind === 'frozen' ? 'kept' : 'unmounting';
}

/** A volume of the wish for which there is no VolumeSpec: nothing but its name and the reason is known. */
function unresolvedPlace({ volumeName, failure }: { volumeName: string; failure: Failure }): PodVolumeStatus {
  return {
    name: shown(volumeName),
    id: null,
    plugin: null,
    driver: null,
    wanted: true,
    state: 'blocked',
    rungs: { attached: 'absent', staged: 'absent', published: 'absent' },
    readOnly: false,
    path: null,
    origin: null,
    reason: {
      kind: 'blocked',
      code: failure.code,
      operation: null,
      message: shown(failure.message),
      blocker: shownOrNull(failure.blocker),
      since: null,
      forMs: null,
      nextRetryInMs: null,
      attempts: 0,
    },
  };
}

function rung(presence: Presence | undefined): RungState {
  return presence?.kind ?? 'absent';
}

function rungsOf({ actual }: VolumePair): VolumeStatus['rungs'] {
  return {
    attached: actual?.needs.attach === false ? 'not-needed' : rung(actual?.attached),
    staged: actual?.needs.stage === false ? 'not-needed' : rung(actual?.staged),
  };
}

function driverOf(spec: VolumeSpec): string | null {
  return spec.kind === 'csi' ? spec.driver : null;
}

function nameOf({ spec }: VolumePair): string {
  if (spec.kind === 'csi') return spec.specName;
  return spec.kind === 'orphan' ? shown(spec.path) : spec.name;
}

function podName({ namespace, name }: PodReference): string {
  return `${namespace}/${name}`;
}

function summaryOf(
  view: StatusFacts,
  pods: readonly PodStatus[],
  volumes: readonly VolumeStatus[],
): StatusDocument['summary'] {
  const places = pods.flatMap((pod) => pod.volumes);
  const count = (state: VolumeState): number => places.filter((place) => place.state === state).length;
  return {
    pods: pods.length,
    podsWanted: pods.filter(({ wanted }) => wanted).length,
    podsReady: pods.filter(({ ready }) => ready).length,
    volumes: volumes.length,
    mounted: count('mounted'),
    mounting: count('mounting'),
    waiting: count('waiting'),
    blocked: count('blocked'),
    unmounting: count('unmounting'),
    kept: count('kept'),
    operationsRunning: view.running.filter(({ phase }) => phase === 'running').length,
    operationsQueued: view.running.filter(({ phase }) => phase === 'queued').length,
    driversRegistered: view.drivers.length,
    driversRefused: view.refusedDrivers.length,
    objectsRejected: view.rejected.length,
    sourcesUnknown: view.desired.unknownOrigins.size,
    unreadableRecords: view.unreadableRecords.length,
    abandonedCalls: view.abandonedCalls,
  };
}

function shownOrNull(text: string | undefined): string | null {
  return text === undefined ? null : shown(text);
}

function shown(text: string): string {
  return printable(text, MESSAGE_BYTES_MAX);
}
