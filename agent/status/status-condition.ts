/** What is said of a volume beside its ladder: size, expansion, quarantine, statistics, health. Pure. */
import type { HealthStatement, UsageNumbers } from '../../plugins/plugin.ts';
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import { driverOf, isOrphan } from '../../plugins/kinds/volume-questions.ts';
import { RECONSTRUCTED, isMoreThan, type PodReference } from '../../plugins/volume.ts';
import { isOnTheGround, type QuarantineReason, type Sickness } from '../../reconciler/model/actual-state.ts';
import type { DesiredState } from '../../reconciler/model/desired-state.ts';
import type { Obstacle } from '../../reconciler/model/obstacle.ts';
import { desiredQuarantine } from '../../reconciler/run/quarantine-control.ts';
import { printable } from '../../mount/text/printable.ts';
import type { VolumeReading } from '../node/statistics-collector.ts';
import type {
  ExpansionStatus,
  HealthStatus,
  LateEffectStatus,
  QuarantineStatus,
  StatisticsStatus,
  UsageStatus,
} from './volume-status.ts';
import type { VolumePair } from './status-places.ts';

const MESSAGE_BYTES_MAX = 1_024;
const NO_EXPANSION: ExpansionStatus = { state: 'none', message: null };

/** `ofVolume`: the obstacles of this volume. */
export function expansionOf({ wanted, actual }: VolumePair, ofVolume: readonly Obstacle[]): ExpansionStatus {
  const size = wanted?.size;
  if (size === undefined) return NO_EXPANSION;
  const current = actual?.sizeBytes ?? size.knownBytes;
  if (current === undefined || !isMoreThan(size.bytes, current)) {
    const { claimLarger } = size;
    return claimLarger === undefined ? NO_EXPANSION : { state: 'claim-larger', message: shown(claimLarger) };
  }
  const refused = actual?.refusedExpansion;
  if (refused?.because === 'in-use' || (refused !== undefined && refused.toBytes === size.bytes))
    return { state: refused.because, message: shown(refused.message) };
  if (size.held !== undefined) return { state: 'held', message: shown(size.held) };
  if (actual !== undefined && !isOnTheGround(actual) && !actual.needs.expand)
    return { state: 'none', message: 'the driver grows nothing on the node' };
  const obstacle = ofVolume.find(({ operation }) => operation === 'expand');
  if (obstacle?.kind === 'running') return { state: 'in-progress', message: null };
  return { state: 'pending', message: obstacle === undefined ? null : shown(obstacle.message) };
}

/** Why it must not be used here by the wish alone; only what a cluster can give to another node is meant. */
export function standingQuarantine(
  { spec, actual }: VolumePair,
  desired: DesiredState,
): QuarantineReason | undefined {
  return driverOf(spec) !== undefined ? desiredQuarantine(desired, spec.id, actual) : undefined;
}

export function quarantineOf(
  { actual }: VolumePair,
  standing: QuarantineReason | undefined,
): QuarantineStatus | null {
  const entered = actual?.quarantine;
  if (entered === undefined) {
    return standing === undefined ? null : { reason: standing, since: null, verified: false, standing: true };
  }
  const since = new Date(entered.sinceWallMs).toISOString();
  return { reason: entered.reason, since, verified: entered.verified, standing: standing !== undefined };
}

/** What may still come of calls that were given up. */
export function lateEffectsOf(
  { actual }: VolumePair,
  when: (monotonicMs: number) => string,
): readonly LateEffectStatus[] {
  const given = (actual?.tombstones ?? []).filter(({ untilMs }) => untilMs !== undefined);
  return given.map(({ operation, publication, untilMs }) => ({
    operation,
    pod: publication === undefined ? null : shown(podName(publication.pod)),
    until: untilMs === undefined ? null : when(untilMs),
  }));
}

/** A pod that was found on disk has only its uid. */
export function podName({ namespace, name, uid }: PodReference): string {
  return name === '' ? uid : `${namespace}/${name}`;
}

/** Null until a driver has said a number. `nowMs` and the reading are of one clock. */
export function statisticsOf(reading: VolumeReading | undefined, nowMs: number): StatisticsStatus | null {
  const { bytes, inodes } = reading?.statistics ?? {};
  if (reading?.atMs === undefined || (bytes === undefined && inodes === undefined)) return null;
  const ageMs = Math.max(0, Math.round(nowMs - reading.atMs));
  return { bytes: usageOf(bytes), inodes: usageOf(inodes), ageMs };
}

function usageOf(numbers: UsageNumbers | undefined): UsageStatus | null {
  if (numbers === undefined) return null;
  const { total = null, used = null, available = null } = numbers;
  return { total, used, available };
}

/** What the kernel says of its file system, before what the driver says of it. Null: nobody says anything. */
export function healthOfVolume(
  sickness: Sickness | undefined,
  said: readonly HealthStatement[] | undefined,
): readonly HealthStatus[] | null {
  const byDriver = healthOf(said);
  return sickness === undefined ? byDriver : [sickHealth(sickness), ...(byDriver ?? [])];
}

/** `dead` with its cause, or `silent`. */
export function sickHealth({ failure: { death, message } }: Sickness): HealthStatus {
  const status = death === undefined ? 'silent' : 'dead';
  return { saidBy: 'kernel', status, reason: death ?? '', message };
}

/** Null: the driver does not say. Empty: all is well. */
export function healthOf(said: readonly HealthStatement[] | undefined): readonly HealthStatus[] | null {
  if (said === undefined) return null;
  return said.map(({ saidBy, status, reason, message }) => ({
    ...(saidBy === undefined ? {} : { saidBy }),
    status: shown(status),
    reason: shown(reason),
    message: shown(message),
  }));
}

/** Found on disk, and nobody wants it: it is only there to be taken down. */
export function isStranger({ spec, wanted, actual }: VolumePair): boolean {
  if (wanted !== undefined || actual === undefined) return false;
  // A staging directory tells of the volume handle, but of no PersistentVolume.
  if (isOrphan(spec) || traitsOf(spec).isNameless?.(spec) === true) return true;
  const places = [...actual.publications.values()];
  return places.length > 0 && places.every(({ spec: { origin } }) => origin === RECONSTRUCTED);
}

function shown(text: string): string {
  return printable(text, MESSAGE_BYTES_MAX);
}
