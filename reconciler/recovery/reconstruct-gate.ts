/** What looking at the layout on disk has taught, and what it allows: the orphans, and whether all was read. */
import type { Belief } from '../model/belief.ts';
import type { Failure } from '../../mount/failure.ts';
import { isOrphan } from '../../plugins/kinds/volume-questions.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { PodUid, VolumeId } from '../../plugins/volume.ts';
import { type Reconstruction, mergeFound } from './reconstruct.ts';
import type { DesiredState } from '../model/desired-state.ts';
import { lastToGoBeside, lastToGo } from '../model/last-to-go.ts';
import type { Log } from '../../mount/process/log.ts';
import { claimsOn, isExplained } from '../model/orphan.ts';
import type { Gate } from '../model/plan.ts';
import { specs } from '../model/specs.ts';
import {
  stagedDevices,
  possibleUseOf,
  type UnknownPlaces,
  type UnreadPlace,
  whyPodUnknown,
} from './unattributed-mounts.ts';

export interface ReconstructGateParts {
  readonly layout: Layout;
  readonly log: Log;
  /** What was found joins it. */
  readonly belief: Belief;
  readonly desired: () => DesiredState;
  readonly isBusy: (volume: VolumeId) => boolean;
  readonly touch: (volume: VolumeId) => void;
  /** Nothing of it is to be remembered. */
  readonly forget: (volume: VolumeId) => void;
}

export interface ReconstructGate {
  /** As Reconciler.takeReconstructed. */
  take(found: Reconstruction): void;
  /** The part of the gate that depends on the layout. */
  gateOf(volume: VolumeId): Pick<Gate, 'layoutRead' | 'placesRead' | 'possibleUse' | 'contested'>;
  /** Before a volume is planned: an orphan that is explained by now is forgotten. */
  visit(volume: VolumeId): void;
  /** An operation ended: it may explain an orphan. */
  ended(): void;
  forgotten(volume: VolumeId): void;
}

const NOWHERE: ReadonlySet<string> = new Set();

const NOT_READ_YET: Failure = {
  code: 'removed-last',
  message: 'the state root has not been read yet since the start',
  effect: 'none',
};

export function createReconstructGate(parts: ReconstructGateParts): ReconstructGate {
  const { log, layout, belief, desired, isBusy, touch } = parts;
  const actual = belief.volumes;
  const orphans = new Set<VolumeId>();
  const read = { layoutRead: false, placesRead: false };
  let unknown: UnknownPlaces | undefined;
  /** As the last scan left them; undefined: there was none. */
  let unread: readonly UnreadPlace[] | undefined;
  /** While places are unknown: all that each volume was seen staged from. */
  const stagedFrom = new Map<VolumeId, ReadonlySet<string>>();
  for (const [id, { spec }] of actual) if (isOrphan(spec)) orphans.add(id);

  /** What was once read whole stays so: of all that came later there is a record. */
  function noteReading(found: Reconstruction): void {
    const before = signature();
    read.layoutRead ||= found.complete;
    read.placesRead ||= found.placesRead;
    unknown = read.layoutRead ? undefined : found.unknown;
    unread = found.unreadPlaces ?? unread;
    for (const id of actual.keys()) noteStaged(id);
    if (read.layoutRead) stagedFrom.clear();
    if (signature() !== before) for (const id of specs(actual, desired()).keys()) touch(id);
  }

  function signature(): string {
    const blockers = unknown?.unread.map(({ blocker }) => blocker);
    return JSON.stringify([read, unknown?.mounts, blockers, unread?.map(({ path }) => path)]);
  }

  function noteStaged(id: VolumeId): void {
    const volume = actual.get(id);
    if (volume === undefined || unknown === undefined) return;
    const devices = stagedDevices(volume, unknown.table, layout);
    if (devices.length > 0) stagedFrom.set(id, new Set([...(stagedFrom.get(id) ?? []), ...devices]));
  }

  function whetherRead(id: VolumeId): Pick<Gate, 'layoutRead' | 'possibleUse'> {
    if (read.layoutRead || unknown === undefined) return { layoutRead: read.layoutRead };
    noteStaged(id);
    const seen = stagedFrom.get(id) ?? NOWHERE;
    const possibleUse = possibleUseOf(id, { unknown, actual, layout, stagedFrom: seen });
    return { layoutRead: possibleUse === undefined, possibleUse };
  }

  /** As for `lastToGo`. */
  function whyUnknown(pod: PodUid): Failure | undefined {
    return unread === undefined ? NOT_READ_YET : whyPodUnknown(pod, unread, layout);
  }

  return {
    take(found) {
      for (const id of found.gone) {
        if (!orphans.has(id) || isBusy(id)) continue;
        log.info('orphan gone', { volume: id });
        const places = [...(actual.get(id)?.publications.keys() ?? [])];
        parts.forget(id);
        for (const one of [id, ...lastToGoBeside(places, belief)]) touch(one);
      }
      for (const volume of found.volumes) {
        const { id } = volume.spec;
        const adopted = mergeFound(actual.get(id), volume);
        if (adopted === undefined) continue;
        belief.reconstruct(adopted);
        if (isOrphan(volume.spec)) orphans.add(id);
        log.info('volume found on disk', { volume: id });
        touch(id);
      }
      noteReading(found);
    },
    gateOf: (volume) => ({
      placesRead: read.placesRead,
      ...whetherRead(volume),
      contested: orphans.has(volume)
        ? claimsOn(volume, actual, desired())
        : lastToGo(actual.get(volume), belief, desired(), whyUnknown),
    }),
    visit(volume) {
      if (orphans.has(volume) && !isBusy(volume) && isExplained(volume, actual)) parts.forget(volume);
    },
    ended() {
      for (const orphan of orphans) touch(orphan);
    },
    forgotten: (volume) => {
      orphans.delete(volume);
      stagedFrom.delete(volume);
    },
  };
}
