/** The way of what is desired: from the sources, through who is kept in case it is a mistake, to the reconciler. */
import { assert } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import type { Log } from '../../mount/process/log.ts';
import type { Slices } from '../../mount/process/slices.ts';
import type { ActualPublication, ActualState, ActualVolume } from '../../reconciler/model/actual-state.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { DesiredState } from '../../reconciler/model/desired-state.ts';
import type { Reconciler } from '../../reconciler/reconciler.ts';
import type { Config } from '../config/config.ts';
import { desire, type DesireOptions } from '../resolve/desired-state-populator.ts';
import type { ResolveOptions } from '../resolve/resolved.ts';
import { createUnresolvedBook, type UnresolvedBook } from '../resolve/unresolved-book.ts';
import type { DesiredObjects } from '../source/desired-objects.ts';
import {
  createManifestKeeper,
  type ManifestKeeper,
  podsStanding,
  reasonsOf,
} from '../source/manifest-keeper.ts';
import { createMassRemovalLog } from '../source/mass-removal-log.ts';
import { createRejectionLog } from '../source/rejection-log.ts';
import { createMergedSources, type MergedSources } from '../source/merged-sources.ts';
import type { ObjectsSource } from '../source/objects-source.ts';
import { createVanishedHold } from '../source/vanished-hold.ts';
import { createVanishedLog } from '../source/vanished-log.ts';
import { createDesiredObjectsReader, type DesiredObjectsReader } from './desired-objects-reader.ts';
import { createRepublisher } from './republisher.ts';

/** What a volume of a pod may need beside what is wanted. */
export type Answers = Pick<ResolveOptions, 'tokens' | 'trustBundles' | 'capacity' | 'attachment'> &
  Pick<DesireOptions, 'standing'>;

export interface DesiredFeedParts {
  readonly host: Host;
  readonly sources: readonly ObjectsSource[];
  readonly answers: Answers;
  readonly config: Config;
  readonly log: Log;
  readonly slices: Slices;
  /** hostPath volumes at, below or above one of these are refused. */
  readonly deniedHostPaths: readonly AbsolutePath[];
  readonly hasSeLinux: () => boolean;
  /** Undefined before it has begun. */
  readonly reconciler: () => Pick<Reconciler, 'actual' | 'setDesired'> | undefined;
  /** The reconciler has something else to work on now; of `actual` nothing has changed by it yet. */
  readonly onTaken: (desired: DesiredState, actual: ActualState) => void;
}

export interface DesiredFeed {
  readonly source: MergedSources;
  readonly manifests: ManifestKeeper;
  /** Reads nothing before there is a reconciler. */
  readonly reader: DesiredObjectsReader;
  readonly unresolvedSinceMs: UnresolvedBook['sinceMs'];
  /** How many pods are kept in case it is a mistake that they are gone. */
  heldPods(): number;
  stop(): void;
}

export function createDesiredFeed(parts: DesiredFeedParts): DesiredFeed {
  const { host, config, log, slices } = parts;
  let stopped = false;
  const hold = createVanishedHold({
    clock: host,
    holdMs: config.vanishedHoldMs,
    onDue: () => {
      if (parts.reconciler() !== undefined && !stopped) reader.read();
    },
  });
  const source = createMergedSources({ host, sources: parts.sources, slices });
  const unresolved = createUnresolvedBook(host);
  const republisher = createRepublisher(host, config.republishIntervalMs);
  const removalLog = createMassRemovalLog(log, host);
  const vanishedLog = createVanishedLog(log, host);
  const rejectionLog = createRejectionLog(log);

  const placesOf = (volume: VolumeId): readonly ActualPublication[] => [
    ...(parts.reconciler()?.actual().get(volume)?.publications.values() ?? []),
  ];
  const reader = createDesiredObjectsReader({
    clock: host,
    slices,
    newest: source.current,
    desire: (objects) =>
      desire(objects, {
        deniedHostPaths: parts.deniedHostPaths,
        nodeName: config.nodeName,
        ...parts.answers,
        seLinux: parts.hasSeLinux(),
        holdersOf: (volume) => new Set(placesOf(volume).map(({ spec }) => spec.pod.uid)),
        hasMounted: (volume, pod) =>
          placesOf(volume).some(
            ({ spec, untold, mount }) => spec.pod.uid === pod && untold !== true && mount !== undefined,
          ),
        republishEpoch: republisher.epochFor(objects, () => reader.read()),
      }),
    take,
  });

  /** `found` is about to join what stands: who is to be kept of it is decided before. */
  function take(objects: DesiredObjects, desired: DesiredState, found: readonly ActualVolume[]): void {
    const reconciler = parts.reconciler();
    assert(reconciler !== undefined, 'the wish is read when there is something to work on it');
    removalLog.note(objects);
    rejectionLog.note(objects);
    const held = hold.look(objects, podsStanding([...reconciler.actual().values(), ...found]));
    vanishedLog.note(objects, held);
    unresolved.note(desired.unresolved);
    reconciler.setDesired({ ...desired, heldPods: reasonsOf(held, objects, host) });
    parts.onTaken(desired, reconciler.actual());
  }

  return {
    source,
    manifests: createManifestKeeper({ sources: parts.sources, hold, desired: source.current }),
    reader,
    unresolvedSinceMs: unresolved.sinceMs,
    heldPods: () => hold.held().size,
    stop() {
      stopped = true;
      republisher.stop();
      hold.stop();
      source.stop();
      reader.stop();
    },
  };
}
