/** What should be: built by the agent floor from the wish, read by the planner. */
import type { Failure } from '../mount/failure.ts';
import type { VolumeFiles, VolumeSecrets } from '../plugins/plugin.ts';
import type {
  PodReference,
  PodUid,
  PublicationKey,
  PublicationSpec,
  VolumeId,
  VolumeSpec,
} from '../plugins/volume.ts';

export interface DesiredPublication {
  readonly spec: PublicationSpec;
  /** Changes when the published content should; empty for kinds without content. Not derived from secret bytes. */
  readonly generation: string;
  readonly files: VolumeFiles | undefined;
}

export interface DesiredVolume {
  readonly spec: VolumeSpec;
  readonly secrets: VolumeSecrets;
  readonly publications: ReadonlyMap<PublicationKey, DesiredPublication>;
  /** Wanted, but not to be climbed yet (a secret is missing, say); nothing of it is torn down either. */
  readonly blocked: Failure | undefined;
}

/** A volume of a pod that could not be resolved to a VolumeSpec. */
export interface UnresolvedVolume {
  readonly pod: PodReference;
  readonly volumeName: string;
  readonly failure: Failure;
}

export interface DesiredState {
  /** False until every source has been listed once after start; nothing is torn down before (INV-15). */
  readonly complete: boolean;
  readonly volumes: ReadonlyMap<VolumeId, DesiredVolume>;
  /** Unknown is not unwanted: for these pods nothing is torn down. */
  readonly frozenPods: ReadonlySet<PodUid>;
  /** Sources that cannot be read now: publications that came from them are frozen too. */
  readonly unknownOrigins: ReadonlySet<string>;
  readonly unresolved: readonly UnresolvedVolume[];
}

export const NOTHING_KNOWN: DesiredState = {
  complete: false,
  volumes: new Map(),
  frozenPods: new Set(),
  unknownOrigins: new Set(),
  unresolved: [],
};
