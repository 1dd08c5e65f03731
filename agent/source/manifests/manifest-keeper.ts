/**
 * What is kept although its manifest is not there, and the operator's word on it: one place for status, API and the
 * agent, over the directory that is trusted and the pods that are held.
 */
import type { Failure, Result } from '../../../mount/failure.ts';
import type { Host } from '../../../mount/host.ts';
import type { PodReference, PodUid } from '../../../plugins/volume.ts';
import type { ActualVolume } from '../../../reconciler/model/actual-state.ts';
import type { DirectoryTrust, ReplacedDirectory } from './directory-trust.ts';
import type { ManifestSource } from './manifest-source.ts';
import type { HeldPods, VanishedHold } from '../vanished-hold.ts';

export interface ManifestKeeper {
  /** Pods of which the manifests vanished while nobody looked. */
  held(): HeldPods;
  /** Undefined while the manifests are read from the directory that they were always read from. */
  replaced(): ReplacedDirectory | undefined;
  /** An operator's word, as `DirectoryTrust.accept`; then it is read. */
  accept(sight: string): Promise<Result<void>>;
  /** All pods that are kept in case it is a mistake that their manifests are gone. */
  missing(): readonly PodReference[];
  /** An operator's word that these are gone: they are kept no longer. */
  forget(pods: readonly PodUid[]): void;
}

export interface ManifestKeeperParts {
  readonly trust: Pick<DirectoryTrust, 'accept' | 'replaced'>;
  readonly hold: Pick<VanishedHold, 'held' | 'forget'>;
  readonly source: Pick<ManifestSource, 'accepted' | 'forget' | 'current'>;
}

export function createManifestKeeper({ trust, hold, source }: ManifestKeeperParts): ManifestKeeper {
  return {
    held: hold.held,
    replaced: trust.replaced,
    async accept(sight) {
      const accepted = await trust.accept(sight);
      // Not written down it is accepted all the same, by this process.
      if (accepted.ok || trust.replaced() === undefined) source.accepted();
      return accepted;
    },
    missing() {
      const { pods, vanishing } = source.current();
      const leaving = [...(vanishing?.pods ?? [])].flatMap((uid) => pods.get(uid)?.reference ?? []);
      return [...[...hold.held().values()].map(({ pod }) => pod), ...leaving];
    },
    forget(pods) {
      source.forget(pods);
      hold.forget(pods);
    },
  };
}

/** The pods that have something of these volumes, or may have it. */
export function podsStanding(volumes: Iterable<ActualVolume>): readonly PodReference[] {
  return [...volumes].flatMap(({ publications }) => [...publications.values()].map(({ spec }) => spec.pod));
}

/** Why each is kept, for the planner and for people. */
export function reasonsOf(
  held: HeldPods,
  clock: Pick<Host, 'nowMs' | 'wallMs'>,
): ReadonlyMap<PodUid, Failure> {
  const wallOf = (ms: number): string =>
    new Date(clock.wallMs() + ms - clock.nowMs()).toISOString().slice(0, 19);
  return new Map(
    [...held].map(([uid, { pod, untilMs }]) => {
      const message =
        `its manifest vanished while nobody looked: it is kept until ${wallOf(untilMs)}Z in case that is a mistake, ` +
        `and then taken down; "mooring forget ${shownPod(pod)}" says that it is gone`;
      return [uid, { code: 'manifest-vanished', message, effect: 'none' }];
    }),
  );
}

/** As `mooring forget` takes it; a pod found on disk has only its uid. */
export function shownPod({ namespace, name, uid }: PodReference): string {
  return name === '' ? uid : `${namespace}/${name}`;
}
