/** From the plan of one volume, which is its next step, to what becomes of each of its mounts. Pure. */
import type { PublicationSpec } from '../../plugins/volume.ts';
import type { ActualPublication } from '../../reconciler/model/actual-state.ts';
import { publicationOf } from '../../reconciler/model/operation.ts';
import type { VolumePlan } from '../../reconciler/model/plan.ts';
import type { VolumePair } from '../status/status-places.ts';

/**
 * `keep`: it is there, and no call is made. `repeat`: it may be there and nothing proves it, so the calls that made it
 * are made again, which takes nothing away; files that are mounted are compared. `mount`: it is not there, and is set
 * up. `wait`: it is not there, and something is missing. `leave-alone`: it may be there, and nothing is done to it.
 * `take-down`: it goes.
 */
export type PlannedAction = 'keep' | 'repeat' | 'mount' | 'wait' | 'leave-alone' | 'take-down';

export type Wait = VolumePlan['waits'][number];

export interface PlannedMount {
  readonly action: PlannedAction;
  /** Why it does not go on. */
  readonly wait: Wait | undefined;
}

/** Each place that is wanted or may be there, and what becomes of it. */
export function plannedPlaces(
  { wanted, actual }: VolumePair,
  plan: VolumePlan,
): readonly (PlannedMount & { readonly place: PublicationSpec })[] {
  const desired = wanted?.publications ?? new Map();
  const there = actual?.publications ?? new Map<string, ActualPublication>();
  const goes = new Set(
    plan.operations.filter(({ kind }) => kind === 'unpublish').map((operation) => publicationOf(operation)),
  );
  const climbs = plan.operations.filter(({ kind }) => kind === 'attach' || kind === 'stage');
  const waitOf = (key: string): Wait | undefined =>
    plan.waits.find(({ publication }) => publication === key) ??
    plan.waits.find(({ publication }) => publication === undefined);
  return [...new Set([...desired.keys(), ...there.keys()])].map((key) => {
    const place: PublicationSpec = desired.get(key)?.spec ?? there.get(key)?.spec;
    const presence = there.get(key)?.presence;
    if (goes.has(key)) return { place, action: 'take-down', wait: undefined };
    const isPublished = plan.operations.some((one) => one.kind === 'publish' && publicationOf(one) === key);
    const wait = waitOf(key);
    if (!desired.has(key)) return { place, action: 'leave-alone', wait };
    const isDone = isPublished || (climbs.length > 0 && presence?.kind !== 'present');
    if (isDone) return { place, action: presence === undefined ? 'mount' : 'repeat', wait: undefined };
    if (presence?.kind === 'present') return { place, action: 'keep', wait: undefined };
    return { place, action: presence === undefined ? 'wait' : 'leave-alone', wait };
  });
}

/** The mount that the places of the volume are made from; undefined: surely none is there. */
export function plannedStage(pair: VolumePair, plan: VolumePlan): PlannedMount | undefined {
  const { wanted, actual } = pair;
  if (actual === undefined || actual.staged.kind === 'absent') return undefined;
  const kinds = new Set(plan.operations.map(({ kind }) => kind));
  const places = plannedPlaces(pair, plan);
  const allGo = places.length > 0 && places.every(({ action }) => action === 'take-down');
  // Nothing else goes down before it.
  if (kinds.has('unstage') || allGo) return { action: 'take-down', wait: undefined };
  const [wait] = plan.waits;
  if (wanted === undefined) return { action: 'leave-alone', wait };
  if (actual.staged.kind === 'present' && !kinds.has('stage')) return { action: 'keep', wait: undefined };
  const isRepeated = kinds.has('stage') || kinds.has('attach');
  return isRepeated ? { action: 'repeat', wait: undefined } : { action: 'leave-alone', wait };
}
