/** One operation from what is believed before it to what it taught: recorded, performed, learnt and written down. */
import { assert } from '../mount/failure.ts';
import { NO_SECRETS } from '../plugins/plugin.ts';
import type { CallReport } from '../plugins/step.ts';
import type { VolumeId } from '../plugins/volume.ts';
import { type ActualVolume, isForgettable, isToldOnce, type VolumeOutcome } from './model/actual-state.ts';
import { attachmentUidNow } from './model/attachment-identity.ts';
import type { Belief } from './model/belief.ts';
import type { DesiredState } from './model/desired-state.ts';
import { climbs, type Operation, publicationOf } from './model/operation.ts';
import { noteSickness } from './model/sickness.ts';
import { withOpenCall } from './model/tombstone.ts';
import type { Policy, ReconcilerParts } from './reconciler-parts.ts';
import { createRecordDuty } from './recovery/record-duty.ts';
import type { RecordWriter } from './recovery/record-writer.ts';
import { createContentLook, NO_LONGER_WANTED, type Surroundings } from './run/content-look.ts';
import { performVerb } from './run/perform.ts';
import { startingPoint } from './run/starting-point.ts';
import type { VolumeWatch } from './volume-watch.ts';

export interface OperationRunnerParts {
  readonly parts: ReconcilerParts;
  readonly policy: Pick<Policy, 'begin' | 'learn' | 'mayBegin'>;
  readonly belief: Belief;
  readonly desired: () => DesiredState;
  readonly recordWriter: RecordWriter;
  readonly watch: Pick<VolumeWatch, 'lookout' | 'forget' | 'holders'>;
  /** False, too, when nothing is to be done any more. */
  readonly isStillWanted: (operation: Operation) => boolean;
  /** What the growth of the volume waited for has come to pass, and it goes before the next pod. */
  readonly onGrowthDue: (volume: VolumeId) => void;
}

/** Settles when the effect has ended, and what it taught is believed. */
export type OperationRunner = (operation: Operation, report: CallReport) => Promise<VolumeOutcome>;

export function createOperationRunner(runner: OperationRunnerParts): OperationRunner {
  const { parts, policy, belief, desired, watch } = runner;
  const { plugins, unwantedSecrets = () => NO_SECRETS } = parts;
  const actual = belief.volumes;
  const lookAtContent = createContentLook({ plugins, belief, desired, learn: policy.learn });
  const writeDown = createRecordDuty({ ...parts, mayBegin: policy.mayBegin });

  return async (operation, report) => {
    const surroundings: Surroundings = {
      unwantedSecrets,
      stillWanted: () => runner.isStillWanted(operation),
      ...report,
    };
    const holders = watch.holders.look(operation);
    const held = holders && (await holders);
    if (held !== undefined) return { kind: 'failed', failure: held };
    if (holders !== undefined && !surroundings.stillWanted()) return NO_LONGER_WANTED;
    const looking = lookAtContent(operation, surroundings);
    const looked = looking && (await looking);
    if (looked !== undefined) return looked;
    const wanted = desired().volumes.get(operation.volume);
    const { before, begun } = beginning(runner, operation);
    const wasRefused = actual.get(operation.volume)?.refusedExpansion !== undefined;
    belief.begin(begun);
    // What is set up anew is grown anew: the refusal of before is no reason any more.
    if (wasRefused && begun.refusedExpansion === undefined) runner.onGrowthDue(operation.volume);
    report.step({ kind: 'recording' });
    const written = await writeDown(operation, begun);
    report.step({ kind: 'working' });
    const needs = climbs(operation.kind) ? plugins.of(begun.spec).needs(begun.spec) : begun.needs;
    const context = { volume: begun, actual, needs: needs ?? begun.needs, wanted, ...surroundings };
    const outcome: VolumeOutcome = written.ok
      ? await performVerb(plugins.of(begun.spec), operation, context)
      : { kind: 'failed', failure: written.failure };
    const now = actual.get(operation.volume);
    assert(now !== undefined, 'a volume with an operation in flight is known');
    const heard = watch.lookout.ended(begun, operation, outcome);
    const learnt = noteSickness(policy.learn(heard, before, operation, outcome), operation, outcome);
    if (now.refusedExpansion !== undefined && learnt.refusedExpansion === undefined)
      runner.onGrowthDue(operation.volume);
    report.step({ kind: 'recording' });
    await settle(runner, learnt, isToldOnce(now, learnt));
    return outcome;
  };
}

/** The volume as it is when the operation begins, and as it must be believed from then on. */
function beginning(
  { parts, policy, belief, desired }: OperationRunnerParts,
  operation: Operation,
): { readonly before: ActualVolume; readonly begun: ActualVolume } {
  const wanted = desired().volumes.get(operation.volume);
  const before = startingPoint(belief.volumes.get(operation.volume), operation, wanted, {
    needsOf: (spec) => parts.plugins.of(spec).needs(spec),
    attachmentUid: attachmentUidNow(desired(), operation.volume),
  });
  const publication = publicationOf(operation);
  const target = publication === undefined ? undefined : wanted?.publications.get(publication);
  return { before, begun: withOpenCall(policy.begin(before, operation, target?.spec), operation) };
}

/** Believes what was learnt, and writes it down; a write that fails costs certainty after a crash, nothing else. */
async function settle(
  { belief, recordWriter, watch, onGrowthDue }: OperationRunnerParts,
  volume: ActualVolume,
  toldOnce: boolean,
): Promise<void> {
  const id = volume.spec.id;
  if (!isForgettable(volume)) {
    belief.learn(volume);
    await recordWriter.note(id, toldOnce);
    return;
  }
  // With the volume its refusal is forgotten, and a growth that waits for another wish would keep the next pod waiting.
  if (volume.refusedExpansion !== undefined) onGrowthDue(id);
  await recordWriter.forget(watch.forget(id));
}
