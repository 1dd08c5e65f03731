/**
 * Pods that something stands of and that no listing of this life has shown, be it as ending or over: their manifests
 * vanished while nobody looked (RS-02). What the records know counts as seen, so they are kept for a time, longer than
 * in life, before it is believed: one is as likely a wish as a mistake, and nobody saw which.
 */
import type { Cancel, Clock } from '../../mount/host.ts';
import type { PodReference, PodUid } from '../../plugins/volume.ts';
import type { DesiredObjects } from './desired-objects.ts';

export interface HeldPod {
  readonly pod: PodReference;
  /** Host clock: when it was first missed. */
  readonly sinceMs: number;
  /** Host clock: when it is believed to be gone, or as soon after that as everything can be read. */
  readonly untilMs: number;
}

export type HeldPods = ReadonlyMap<PodUid, HeldPod>;

export interface VanishedHold {
  /** Who is held by the wish of now; `standing`: the pods that have something here, or may have it. */
  look(
    desired: Pick<DesiredObjects, 'complete' | 'pods' | 'shownPods' | 'unknownOrigins'>,
    standing: Iterable<PodReference>,
  ): HeldPods;
  /** The pods that the last look held. */
  held(): HeldPods;
  /** An operator's word that they are gone. `onDue` is called. */
  forget(pods: Iterable<PodUid>): void;
  stop(): void;
}

export interface VanishedHoldParts {
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  /** 0: nobody is held. */
  readonly holdMs: number;
  /** Somebody is held no more: look again. */
  readonly onDue: () => void;
}

/** As the guard of AP-12 has it: fewer than these are not "most". */
const MOST_PODS_MIN = 4;

export function createVanishedHold({ clock, holdMs, onDue }: VanishedHoldParts): VanishedHold {
  /** Shown by a listing of this life, or believed to be gone; only of pods that are shown or stand. */
  let decided = new Set<PodUid>();
  let held = new Map<PodUid, HeldPod>();
  let cancel: Cancel = () => {};

  function planLook(isAllKnown: boolean): void {
    cancel();
    if (held.size === 0 || !isAllKnown) return;
    const dueMs = Math.min(...[...held.values()].map(({ untilMs }) => untilMs));
    cancel = clock.timer(Math.max(1, dueMs - clock.nowMs()), onDue);
  }

  return {
    look(desired, standing) {
      if (!desired.complete || holdMs === 0) return held;
      const nowMs = clock.nowMs();
      const stands = new Map([...standing].map((pod) => [pod.uid, pod]));
      // Unknown is not unwanted: what cannot be read now may have come to have it since it was missed.
      const isAllKnown = desired.unknownOrigins.size === 0;
      const shown = new Set([...desired.pods.keys(), ...desired.shownPods]);
      const isKnown = (uid: PodUid): boolean => decided.has(uid) || shown.has(uid);
      const missed = [...stands.values()].filter(({ uid }) => !isKnown(uid));
      decided = new Set([...shown, ...[...decided].filter((uid) => stands.has(uid))]);
      const gone =
        missed.length >= MOST_PODS_MIN && missed.length > desired.pods.size ? [] : succeeded(missed, desired);
      for (const { uid } of gone) decided.add(uid);
      const before = held;
      held = new Map();
      for (const pod of missed) {
        const one = before.get(pod.uid) ?? { pod, sinceMs: nowMs, untilMs: nowMs + holdMs };
        if (one.untilMs <= nowMs && isAllKnown) decided.add(pod.uid);
        else if (!decided.has(pod.uid)) held.set(pod.uid, one);
      }
      planLook(isAllKnown);
      return held;
    },
    held: () => held,
    forget(pods) {
      for (const pod of pods) {
        held.delete(pod);
        decided.add(pod);
      }
      onDue();
    },
    stop: () => cancel(),
  };
}

/** Another pod has the name by now, and a name is one pod's: somebody has decided. */
function succeeded(
  missed: readonly PodReference[],
  desired: Pick<DesiredObjects, 'pods'>,
): readonly PodReference[] {
  const names = new Set([...desired.pods.values()].map(({ reference }) => nameOf(reference)));
  return missed.filter((pod) => pod.name !== '' && names.has(nameOf(pod)));
}

function nameOf({ namespace, name }: PodReference): string {
  return `${namespace}/${name}`;
}
