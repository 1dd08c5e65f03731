/** What is kept although no source says it any more, and the operator's word on it: for status, API and agent. */
import { fail, type Failure, type Result } from '../../mount/failure.ts';
import type { Host } from '../../mount/host.ts';
import type { PodReference, PodUid } from '../../plugins/volume.ts';
import type { ActualVolume } from '../../reconciler/model/actual-state.ts';
import { massRemovalIn, type DesiredObjects } from './desired-objects.ts';
import type { ObjectsSource, ReplacedDirectory } from './objects-source.ts';
import type { HeldPods, VanishedHold } from './vanished-hold.ts';

export interface ManifestKeeper {
  /** Pods of which the manifests vanished while nobody looked. */
  held(): HeldPods;
  /** Undefined while every source is read from where it was always read from. */
  replaced(): ReplacedDirectory | undefined;
  /** An operator's word, as `SourceKeeping.accept`; then it is read. */
  accept(sight: string): Promise<Result<void>>;
  /** All pods that are kept in case it is a mistake that their manifests are gone. */
  missing(): readonly PodReference[];
  /** An operator's word that these are gone: they are kept no longer. */
  forget(pods: readonly PodUid[]): void;
}

export interface ManifestKeeperParts {
  readonly sources: readonly Pick<ObjectsSource, 'keeping'>[];
  readonly hold: Pick<VanishedHold, 'held' | 'forget'>;
  /** The newest. */
  readonly desired: () => Pick<DesiredObjects, 'pods' | 'reports'>;
}

export function createManifestKeeper({ sources, hold, desired }: ManifestKeeperParts): ManifestKeeper {
  const keepings = sources.flatMap(({ keeping }) => keeping ?? []);
  return {
    held: hold.held,
    replaced: () => keepings.flatMap((one) => one.replaced() ?? [])[0],
    async accept(sight) {
      const meant = keepings.find((one) => one.replaced()?.sight === sight) ?? keepings[0];
      if (meant !== undefined) return meant.accept(sight);
      const message = 'nothing here is read from a directory';
      return fail({ code: 'reference-missing', message, effect: 'none' });
    },
    missing() {
      const { pods, reports: all } = desired();
      // What a cluster does not show any more comes back or goes by itself.
      const reports = all.filter(({ cluster }) => cluster === undefined);
      const leaving = [...(massRemovalIn({ reports })?.pods ?? [])].flatMap(
        (uid) => pods.get(uid)?.reference ?? [],
      );
      return [...[...hold.held().values()].map(({ pod }) => pod), ...leaving];
    },
    forget(pods) {
      for (const keeping of keepings) keeping.forget(pods);
      hold.forget(pods);
    },
  };
}

/** The pods that have something of these volumes, or may have it. */
export function podsStanding(volumes: Iterable<ActualVolume>): readonly PodReference[] {
  return [...volumes].flatMap(({ publications }) => [...publications.values()].map(({ spec }) => spec.pod));
}

/** Why each is kept as it is, for the planner and for people. */
export function reasonsOf(
  held: HeldPods,
  objects: Pick<DesiredObjects, 'reports' | 'unknownOrigins'>,
  clock: Pick<Host, 'nowMs' | 'wallMs'>,
): ReadonlyMap<PodUid, Failure> {
  const [unknown] = objects.unknownOrigins;
  const asLong = unknown === undefined ? '' : `, and as long as ${unknown} cannot be read,`;
  const wallOf = (ms: number): string =>
    new Date(clock.wallMs() + ms - clock.nowMs()).toISOString().slice(0, 19);
  const vanished = (message: string): Failure => ({ code: 'manifest-vanished', message, effect: 'none' });
  const reasons = new Map<PodUid, Failure>();
  for (const { massRemoval, cluster } of objects.reports) {
    if (massRemoval === undefined) continue;
    const until = wallOf(massRemoval.untilMs);
    const kept = `it is kept as it is until ${until}Z in case that is a mistake, and then taken down`;
    const message =
      cluster === undefined
        ? `its manifest vanished with those of most pods: ${kept}; "mooring forget" says that it is gone`
        : `the API server does not show it any more, nor most pods: ${kept}`;
    for (const uid of massRemoval.pods) reasons.set(uid, vanished(message));
  }
  for (const [uid, { pod, untilMs }] of held) {
    const message =
      `its manifest vanished while nobody looked: it is kept until ${wallOf(untilMs)}Z${asLong} in case that is ` +
      `a mistake, and then taken down; "mooring forget ${shownPod(pod)}" says that it is gone`;
    reasons.set(uid, vanished(message));
  }
  return reasons;
}

/** As `mooring forget` takes it; a pod found on disk has only its uid. */
export function shownPod({ namespace, name, uid }: PodReference): string {
  return name === '' ? uid : `${namespace}/${name}`;
}
