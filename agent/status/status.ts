/** What the agent knows as one document: the base of `mooring status`, `explain` and the API. Pure; without secrets. */
import { controllerCapabilityNames, nodeCapabilityNames } from '../../plugins/csi/driver/capability-name.ts';
import type { Failure } from '../../mount/failure.ts';
import type { DriverInstance, RefusedDriver } from '../../plugins/csi/driver/driver.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import { RECONSTRUCTED, pluginOf, type VolumeId, type VolumeSpec } from '../../plugins/volume.ts';
import type { Presence } from '../../reconciler/model/actual-state.ts';
import type { UnresolvedVolume } from '../../reconciler/model/desired-state.ts';
import type { VolumeInFlight } from '../../reconciler/run/volume-operation.ts';
import type { Obstacle } from '../../reconciler/model/obstacle.ts';
import { publicationOf } from '../../reconciler/model/operation.ts';
import { printable } from '../../mount/text/printable.ts';
import {
  expansionOf,
  healthOf,
  healthOfVolume,
  isStranger,
  lateEffectsOf,
  podName,
  quarantineOf,
  standingQuarantine,
  statisticsOf,
} from './status-condition.ts';
import type { DriverStatus, PodStatus, PodVolumeStatus, StatusDocument } from './status-document.ts';
import type { PastFailure, Reason, RungState, StepStatus, VolumeStatus } from './volume-status.ts';
import type { StatusFacts } from './status-facts.ts';
import { type PodPlace, type PodPlaces, podsOf, volumesOf, type VolumePair } from './status-places.ts';
import { questionOf } from './status-question.ts';
import { changedFields, standingPlace, standingSpec } from './status-changed.ts';
import { sourcesOf } from './status-sources.ts';
import { isOverdueAsTold, stepStatus } from './status-step.ts';
import { stateOf } from './status-state.ts';
import { summaryOf } from './status-summary.ts';
import { BUILD } from '../config/version.ts';

const MESSAGE_BYTES_MAX = 1_024;
/** Never cut: a handle has at most 2 KiB, and each byte of it may become an escape. */
const ID_BYTES_MAX = 16_384;

/** A volume id as the document has it: volumes are named by it, so two of them are never shown alike. */
export function shownVolumeId(id: VolumeId): string {
  return printable(id, ID_BYTES_MAX);
}

/** The document of one moment. `revision` names the state it shows (see docs/API.md). */
export function statusOf(view: StatusFacts, layout: Layout, revision: string): StatusDocument {
  const build = createBuilder(view, layout);
  const pairs = volumesOf(view);
  const pods = podsOf(view, pairs).map((pod) => build.pod(pod));
  const volumes = pairs.map((pair) => build.volume(pair));
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
    strangers: volumes.filter(({ stranger }) => stranger).map(({ id }) => id),
    drivers: [
      ...view.drivers.map((driver) => build.driver(driver)),
      ...view.refusedDrivers.map(refusedDriver),
    ],
    sources: sourcesOf(view, build.when),
    unreadableRecords: view.unreadableRecords.map(({ file, failure }) => ({
      file: shown(file),
      code: failure.code,
      message: shown(failure.message),
    })),
  };
}

interface Builder {
  pod(pod: PodPlaces): PodStatus;
  volume(volume: VolumePair): VolumeStatus;
  driver(driver: DriverInstance): DriverStatus;
  when(monotonicMs: number): string;
}

function createBuilder(view: StatusFacts, layout: Layout): Builder {
  const obstacles = byVolume(view.obstacles, ({ volume }) => volume);
  const running = byVolume(view.running, ({ operation }) => operation.volume);
  const wantedPods = new Set(view.pods.map(({ uid }) => uid));
  const volumesOfDrivers = countDrivers(view);

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
      ...sinceAndFor(obstacle.sinceMs),
      nextRetryInMs: nextRetryMs === undefined ? null : Math.max(0, Math.round(nextRetryMs - view.nowMs)),
      attempts: obstacle.attempts,
      lastFailure: pastFailure(obstacle.lastFailure),
      progress: obstacle.kind === 'running' ? progressOf(obstacle) : null,
      step: stepOf(obstacle),
    };
  }

  function stepOf({ step, overdue }: Pick<Obstacle, 'step' | 'overdue'>): StepStatus | null {
    return step === undefined ? null : stepStatus(step, overdue, view.nowMs, when);
  }

  function sinceAndFor(sinceMs: number): Pick<Reason, 'since' | 'forMs'> {
    return { since: when(sinceMs), forMs: Math.max(0, Math.round(view.nowMs - sinceMs)) };
  }

  function progressOf({ volume, publication, operation: kind }: Obstacle): string | null {
    const same = running.get(volume)?.find(({ operation }) => {
      return operation.kind === kind && publicationOf(operation) === publication;
    });
    return shownOrNull(same?.progress);
  }

  /** What stands in the way of one place: its own obstacle first, then that of the volume as a whole. */
  function obstacleOf({ volume, spec }: PodPlace): Obstacle | undefined {
    const ofVolume = obstacles.get(volume.spec.id) ?? [];
    return (
      mostTelling(ofVolume.filter(({ publication }) => publication === spec.key)) ??
      mostTelling(ofVolume.filter(({ publication }) => publication === undefined))
    );
  }

  function standing(volume: VolumePair): ReturnType<typeof standingQuarantine> {
    return standingQuarantine(volume, view.desired);
  }

  function place(one: PodPlace): PodVolumeStatus {
    const { volume, spec, wanted, actual } = one;
    const published = rung(actual?.presence);
    const obstacle = obstacleOf(one);
    const isQuarantined = quarantineOf(volume, standing(volume)) !== null;
    const state = stateOf({ wanted: wanted !== undefined, published, isQuarantined, obstacle });
    return {
      name: spec.specName,
      id: shownVolumeId(volume.spec.id),
      plugin: pluginOf(volume.spec.id),
      driver: driverOf(volume.spec),
      wanted: wanted !== undefined,
      state,
      rungs: { ...rungsOf(volume), published },
      readOnly: standingPlace(one).readOnly,
      path: shown(layout.target(actual === undefined ? volume.spec : standingSpec(volume), spec)),
      supplementalGid: supplementalGid(volume.spec),
      origin: spec.origin === RECONSTRUCTED ? null : shown(spec.origin),
      reason: state === 'mounted' && obstacle?.publication === undefined ? null : reasonOf(obstacle),
    };
  }

  /** A volume of the wish for which there is no VolumeSpec: nothing but its name and the reason is known. */
  function unresolvedPlace(one: UnresolvedVolume): PodVolumeStatus {
    const { volumeName, failure } = one;
    return {
      ...NOTHING_RESOLVED,
      name: shown(volumeName),
      reason: {
        kind: 'blocked',
        code: failure.code,
        operation: null,
        message: shown(failure.message),
        blocker: shownOrNull(failure.blocker),
        ...sinceAndFor(view.unresolvedSinceMs(one)),
        nextRetryInMs: null,
        attempts: 0,
        lastFailure: null,
        progress: null,
        step: null,
      },
    };
  }

  function supplementalGid(spec: VolumeSpec): number | null {
    if (spec.kind !== 'csi' || spec.lifecycle === 'Ephemeral') return null;
    return view.persistentVolumes.get(spec.specName)?.supplementalGid ?? null;
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
      const there = standingSpec(volume);
      const ofVolume = obstacles.get(spec.id) ?? [];
      const own = ofVolume.filter(({ publication }) => publication === undefined);
      const published = [...(actual?.publications.values() ?? [])];
      const reading = view.statistics.of(spec.id);
      return {
        id: shownVolumeId(spec.id),
        plugin: pluginOf(spec.id),
        driver: driverOf(spec),
        name: nameOf(volume),
        wanted: wanted !== undefined,
        stranger: isStranger(volume),
        mode: modeOf(there),
        lifecycle: spec.kind === 'csi' ? spec.lifecycle : null,
        accessModes: there.kind === 'csi' ? there.accessModes : [],
        rungs: rungsOf(volume),
        stagingPath: there.kind === 'csi' && actual?.needs.stage === true ? layout.stagingPath(there) : null,
        wantedBy: [...(wanted?.publications.values() ?? [])].map(({ spec: { pod } }) => podName(pod)).sort(),
        publishedTo: published.map(({ spec: { pod } }) => podName(pod)).sort(),
        running: (running.get(spec.id) ?? []).map((one) => ({
          operation: one.operation.kind,
          phase: one.phase,
          since: when(one.sinceMs),
          progress: shownOrNull(one.progress),
          step: stepStatus(one.step, isOverdueAsTold(one.operation, ofVolume), view.nowMs, when),
        })),
        changed: changedFields(volume),
        size: { wanted: wanted?.size?.bytes ?? null, current: actual?.sizeBytes ?? null },
        expansion: expansionOf(volume, ofVolume),
        lateEffects: lateEffectsOf(volume),
        quarantine: quarantineOf(volume, standing(volume)),
        statistics: statisticsOf(reading, view.nowMs),
        question: questionOf(reading, view.nowMs, when, pastFailure),
        health: healthOfVolume(actual?.sickness, reading?.statistics?.health),
        reason: reasonOf(mostTelling(own)),
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
        capabilities: {
          node: nodeCapabilityNames(driver.nodeCapabilities),
          controller:
            driver.controllerCapabilities === undefined
              ? null
              : controllerCapabilityNames(driver.controllerCapabilities),
        },
        volumesMax: driver.volumesMax === 0 ? null : driver.volumesMax,
        volumes: volumesOfDrivers.get(driver.name) ?? 0,
        unanswered: view.statistics.owedBy(driver.name),
        health: healthOf(view.statistics.ofStorage(driver.name)),
        reason: null,
        code: null,
      };
    },
  };
}

const NOTHING_RESOLVED = {
  id: null,
  plugin: null,
  driver: null,
  wanted: true,
  state: 'blocked',
  rungs: { attached: 'absent', staged: 'absent', published: 'absent' },
  readOnly: false,
  path: null,
  supplementalGid: null,
  origin: null,
} as const satisfies Partial<PodVolumeStatus>;

function refusedDriver({ socket, name, reason, code }: RefusedDriver): DriverStatus {
  return {
    name: shownOrNull(name),
    state: 'refused',
    version: null,
    nodeId: null,
    socket,
    registeredAt: null,
    capabilities: null,
    volumesMax: null,
    volumes: 0,
    unanswered: 0,
    health: null,
    reason: shown(reason),
    code: code ?? null,
  };
}

function byVolume<T extends Obstacle | VolumeInFlight>(
  all: readonly T[],
  volumeOf: (one: T) => VolumeId,
): ReadonlyMap<VolumeId, readonly T[]> {
  const groups = new Map<VolumeId, T[]>();
  for (const one of all) {
    const group = groups.get(volumeOf(one));
    if (group === undefined) groups.set(volumeOf(one), [one]);
    else group.push(one);
  }
  return groups;
}

/** That it is in quarantine is said beside; what delays the end of it is news. */
function mostTelling(obstacles: readonly Obstacle[]): Obstacle | undefined {
  return obstacles.find(({ kind }) => kind !== 'quarantined') ?? obstacles[0];
}

function countDrivers({ actual }: StatusFacts): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { spec } of actual.values()) {
    if (spec.kind === 'csi') counts.set(spec.driver, (counts.get(spec.driver) ?? 0) + 1);
  }
  return counts;
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

function modeOf(spec: VolumeSpec): VolumeStatus['mode'] {
  return spec.kind === 'csi' ? spec.mode : 'Filesystem';
}

function nameOf({ spec }: VolumePair): string {
  if (spec.kind === 'csi') return spec.specName === '' ? shown(spec.volumeHandle) : spec.specName;
  return spec.kind === 'orphan' ? shown(spec.path) : spec.name;
}

function pastFailure(failure: Failure | undefined): PastFailure | null {
  if (failure === undefined) return null;
  return { code: failure.code, message: shown(failure.message), blocker: shownOrNull(failure.blocker) };
}

function shownOrNull(text: string | undefined): string | null {
  return text === undefined ? null : shown(text);
}

function shown(text: string): string {
  return printable(text, MESSAGE_BYTES_MAX);
}
