/** A volume as the status has it. Pure. */
import {
  accessModesOf,
  driverOf,
  isDevice,
  isInline,
  nameOf,
  stagingPathOf,
} from '../../plugins/kinds/volume-questions.ts';
import { pluginOf, type VolumeSpec } from '../../plugins/volume.ts';
import type { VolumeReading } from '../node/statistics-collector.ts';
import { changedFields, standingSpec } from './status-changed.ts';
import {
  expansionOf,
  healthOfVolume,
  isStranger,
  lateEffectsOf,
  podName,
  quarantineOf,
  standingQuarantine,
  statisticsOf,
} from './status-condition.ts';
import type { VolumePair } from './status-places.ts';
import type { DocumentParts } from './status-reason.ts';
import { rungsOf } from './status-state.ts';
import { isOverdueAsTold, stepStatus } from './status-step.ts';
import { pastFailure, shown, shownOrNull, shownVolumeId } from './status-text.ts';
import type { QuestionStatus, VolumeStatus } from './volume-status.ts';

export function volumeStatus(volume: VolumePair, { facts, layout, reasons }: DocumentParts): VolumeStatus {
  const { spec, wanted, actual } = volume;
  const { nowMs } = facts;
  const { when } = reasons;
  const there = standingSpec(volume);
  const ofVolume = reasons.obstaclesOf(spec.id);
  const published = [...(actual?.publications.values() ?? [])];
  const reading = facts.statistics.of(spec.id);
  const stagingPath = actual?.needs.stage === true ? stagingPathOf(there, layout) : undefined;
  return {
    id: shownVolumeId(spec.id),
    plugin: pluginOf(spec.id),
    driver: driverOf(spec) ?? null,
    name: shown(nameOf(spec)),
    wanted: wanted !== undefined,
    stranger: isStranger(volume),
    mode: isDevice(there) ? 'Block' : 'Filesystem',
    lifecycle: lifecycleOf(spec),
    accessModes: accessModesOf(there),
    rungs: rungsOf(volume),
    stagingPath: stagingPath ?? null,
    wantedBy: [...(wanted?.publications.values() ?? [])].map(({ spec: { pod } }) => podName(pod)).sort(),
    publishedTo: published.map(({ spec: { pod } }) => podName(pod)).sort(),
    running: reasons.runningOf(spec.id).map((one) => ({
      operation: one.operation.kind,
      phase: one.phase,
      since: when(one.sinceMs),
      progress: shownOrNull(one.progress),
      step: stepStatus(one.step, isOverdueAsTold(one.operation, ofVolume), nowMs, when),
    })),
    changed: changedFields(volume),
    size: { wanted: wanted?.size?.bytes ?? null, current: actual?.sizeBytes ?? null },
    expansion: expansionOf(volume, ofVolume),
    lateEffects: lateEffectsOf(volume, when),
    quarantine: quarantineOf(volume, standingQuarantine(volume, facts.desired)),
    statistics: statisticsOf(reading, nowMs),
    question: questionOf(reading, nowMs, when),
    health: healthOfVolume(actual?.sickness, reading?.statistics?.health),
    reason: reasons.reasonOfVolume(spec.id),
  };
}

/** Null: no driver has it, and a lifecycle is what drivers are told. */
function lifecycleOf(spec: VolumeSpec): VolumeStatus['lifecycle'] {
  if (driverOf(spec) === undefined) return null;
  return isInline(spec) ? 'Ephemeral' : 'Persistent';
}

/** What its driver owes of the questions about it. `when`: a time of the host's clock as the document writes it. */
function questionOf(
  reading: VolumeReading | undefined,
  nowMs: number,
  when: (monotonicMs: number) => string,
): QuestionStatus | null {
  if (reading === undefined) return null;
  const { unansweredSinceMs: sinceMs, nextAskMs, failure } = reading;
  if (sinceMs === undefined && failure === undefined) return null;
  return {
    unansweredSince: sinceMs === undefined ? null : when(sinceMs),
    unansweredForMs: sinceMs === undefined ? null : Math.max(0, Math.round(nowMs - sinceMs)),
    nextAskInMs: nextAskMs === undefined ? null : Math.max(0, Math.round(nextAskMs - nowMs)),
    failure: pastFailure(failure),
  };
}
