/**
 * The node in numbers, in the text format of Prometheus (version 0.0.4). Pure: every number is read from the state when
 * it is asked for, so there is nothing to register, to count or to reset, and no package is needed for it.
 */
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import { driverOf, handleOf, nameOf } from '../../plugins/kinds/volume-questions.ts';
import type { PublicationKey, VolumeSpec } from '../../plugins/volume.ts';
import type { ActualVolume } from '../../reconciler/model/actual-state.ts';
import type { VolumeInFlight } from '../../reconciler/run/volume-operation.ts';
import { countOverdue } from '../status/status-step.ts';
import { sickHealth } from '../status/status-condition.ts';
import { count, type Family, family, type Labels, say, textOf } from '../timing/family.ts';
import { kubeletFamilies } from './kubelet-families.ts';
import type { MetricsFacts } from './metrics-facts.ts';

/** The whole page. Every family is there, with or without series. */
export function formatMetrics(facts: MetricsFacts): string {
  return [
    ...volumeFamilies(facts),
    ...healthFamilies(facts),
    ...podVolumeFamilies(facts),
    ...kubeletFamilies(facts),
    ...agentFamilies(facts),
  ]
    .map(textOf)
    .join('')
    .concat(facts.operationTimes);
}

function agentFamilies(facts: MetricsFacts): readonly Family[] {
  const obstacles = family(
    'mooring_obstacles',
    'Waits of volumes and of their places in pods, by kind and code.',
  );
  for (const { kind, code } of facts.obstacles) count(obstacles, { kind, code: code ?? '' });
  // The reconciler does not know them; to people they are blocked like the rest (`status.ts`).
  for (const { failure } of facts.desired.unresolved)
    count(obstacles, { kind: 'blocked', code: failure.code });
  const inPhase = (phase: VolumeInFlight['phase']): number =>
    facts.running.filter((one) => one.phase === phase).length;
  const running = family('mooring_operations_running', 'Operations under way.');
  say(running, inPhase('running'));
  const queued = family(
    'mooring_operations_queued',
    'Operations that wait for a place in the lane of their driver.',
  );
  say(queued, inPhase('queued'));
  const overdue = family(
    'mooring_operations_overdue',
    'Operations whose step takes longer than twice its deadline.',
  );
  say(overdue, countOverdue(facts.obstacles));
  const passes = family('mooring_passes_total', 'Planning passes since the start.', 'counter');
  say(passes, facts.passes);
  const complete = family('mooring_wish_complete', '1 when every source of the wish has been listed.');
  say(complete, facts.desired.complete ? 1 : 0);
  const start = family('process_start_time_seconds', 'When the agent started, in seconds since the epoch.');
  say(start, facts.startedWallMs / 1_000);
  const unready = family(
    'mooring_detach_clock_seconds',
    'For how long the Node of this machine has not been Ready. No series while it is.',
  );
  if (facts.notReadyForMs !== undefined) say(unready, facts.notReadyForMs / 1_000);
  return [obstacles, running, queued, overdue, passes, complete, start, unready];
}

function volumeFamilies({ desired, actual, drivers }: MetricsFacts): readonly Family[] {
  const volumes = family(
    'mooring_volumes',
    'Volumes that are wanted or here, by driver or kind and by state.',
  );
  const quarantined = family('mooring_quarantined_volumes', 'Volumes in quarantine.');
  const registered = family(
    'mooring_driver_registered',
    '1: the driver is registered. 0: a volume needs it.',
  );
  for (const driver of drivers) say(registered, 1, { driver });
  let quarantines = 0;
  for (const id of new Set([...desired.volumes.keys(), ...actual.keys()])) {
    const wanted = desired.volumes.get(id);
    const here = actual.get(id);
    const spec = wanted?.spec ?? here?.spec;
    if (spec === undefined) continue;
    count(volumes, { driver: ownerOf(spec), state: stateOf(wanted?.publications, here) });
    if (here?.quarantine !== undefined) quarantines += 1;
    const driver = driverOf(spec);
    if (driver !== undefined) say(registered, 0, { driver });
  }
  say(quarantined, quarantines);
  return [volumes, quarantined, registered];
}

function ownerOf(spec: VolumeSpec): string {
  return driverOf(spec) ?? traitsOf(spec).plugin;
}

/** The volume as its driver knows it; undefined: it has none. */
function calledByDriver(spec: VolumeSpec): Labels | undefined {
  const driver = driverOf(spec);
  const volume = handleOf(spec);
  return driver === undefined || volume === undefined ? undefined : { driver, volume };
}

function stateOf(
  wanted: ReadonlyMap<PublicationKey, unknown> | undefined,
  here: ActualVolume | undefined,
): string {
  if (here?.quarantine !== undefined) return 'quarantined';
  if (wanted === undefined) return 'unmounting';
  const isThere = (key: PublicationKey): boolean => here?.publications.get(key)?.presence.kind === 'present';
  return [...wanted.keys()].every(isThere) ? 'mounted' : 'mounting';
}

function healthFamilies({ actual, drivers, statistics, nowMs }: MetricsFacts): readonly Family[] {
  const ofVolume = family(
    'mooring_volume_health',
    '1 for each thing that a driver, or the kernel (status dead, silent), says is wrong with a volume.',
  );
  for (const { spec, sickness } of actual.values()) {
    const named = calledByDriver(spec);
    if (named === undefined) continue;
    const said = statistics.of(spec.id)?.statistics?.health ?? [];
    for (const { status, reason } of sickness === undefined ? said : [sickHealth(sickness), ...said])
      say(ofVolume, 1, { ...named, status, reason });
  }
  const unanswered = family(
    'mooring_volume_unanswered_seconds',
    'For how long the driver has not answered how the volume is.',
  );
  for (const { spec } of actual.values()) {
    const named = calledByDriver(spec);
    const sinceMs = named === undefined ? undefined : statistics.of(spec.id)?.unansweredSinceMs;
    if (sinceMs !== undefined) say(unanswered, (nowMs - sinceMs) / 1_000, named);
  }
  const owed = family(
    'mooring_driver_unanswered',
    'Volumes, and storage, of which the driver owes an answer.',
  );
  for (const driver of drivers) say(owed, statistics.owedBy(driver), { driver });
  const ofStorage = family(
    'mooring_storage_health',
    '1 for each thing that is wrong with the storage of a driver.',
  );
  for (const driver of drivers) {
    for (const { status, reason } of statistics.ofStorage(driver) ?? [])
      say(ofStorage, 1, { driver, status, reason });
  }
  return [ofVolume, unanswered, owed, ofStorage];
}

/** Volumes that live and die with their pod, and have a limit: there is no claim to call them by. */
function podVolumeFamilies({ actual, statistics }: MetricsFacts): readonly Family[] {
  const used = family('mooring_pod_volume_used_bytes', 'Bytes that a volume of a pod with a limit takes.');
  const limit = family('mooring_pod_volume_limit_bytes', 'The limit of a volume of a pod in bytes.');
  const over = family(
    'mooring_pod_volume_over_limit',
    '1: a volume of a pod takes more than its limit. 0: not.',
  );
  for (const { spec, publications } of actual.values()) {
    const read = driverOf(spec) === undefined ? statistics.of(spec.id)?.statistics : undefined;
    const [place] = publications.values();
    if (read?.bytes === undefined || place === undefined) continue;
    const { pod } = place.spec;
    const labels = { namespace: pod.namespace, pod: pod.name, volume: nameOf(spec) };
    if (read.bytes.used !== undefined) say(used, read.bytes.used, labels);
    if (read.bytes.total !== undefined) say(limit, read.bytes.total, labels);
    say(over, (read.health ?? []).some(({ saidBy }) => saidBy === 'agent') ? 1 : 0, labels);
  }
  return [used, limit, over];
}
