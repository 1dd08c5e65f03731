/** What a kind of volume must be able to do. The reconciler knows volumes only through this. */
import type { Result } from '../mount/failure.ts';
import type { MountIdentity } from '../mount/host.ts';
import type { SecretData, Sensitive } from './sensitive.ts';
import type { PluginName, PublicationSpec, VolumeSpec } from './volume.ts';

/** Which rungs of the ladder a volume has below `publish`. */
export interface Needs {
  readonly attach: boolean;
  readonly stage: boolean;
}

/** Opaque to us, immutable, and passed to stage and publish (CSI ControllerPublishVolume). */
export type PublishContext = Readonly<Record<string, string>>;

/** What was learnt while climbing and must survive a restart. */
export interface VolumeFacts {
  readonly needs: Needs;
  readonly publishContext: PublishContext | undefined;
  readonly stagedMount: MountIdentity | undefined;
}

/** Driver secrets as resolved from the wish; undefined where the volume names none. */
export interface VolumeSecrets {
  readonly controllerPublish: SecretData | undefined;
  readonly stage: SecretData | undefined;
  readonly publish: SecretData | undefined;
}

export const NO_SECRETS: VolumeSecrets = {
  controllerPublish: undefined,
  stage: undefined,
  publish: undefined,
};

/** The files of a secret or configMap volume: path below the volume root to content and mode. */
export type VolumeFiles = Sensitive<
  ReadonlyMap<string, { readonly content: Uint8Array; readonly mode: number }>
>;

/** A call about the whole volume. */
export interface VolumeCall {
  readonly spec: VolumeSpec;
  readonly facts: VolumeFacts;
  readonly secrets: VolumeSecrets;
  /** False once the world has moved on while the call waited its turn: answer `no-longer-wanted`, do nothing. */
  readonly stillWanted: () => boolean;
}

/** A call about one place of the volume in one pod. */
export interface PublicationCall extends VolumeCall {
  readonly publication: PublicationSpec;
  /** Present when the wish has files for it; teardown never needs them. */
  readonly files: VolumeFiles | undefined;
}

/**
 * Guarantees: every verb is idempotent, settles only when its effect has ended, never throws for input or the world,
 * and asks the kernel before it answers: `ok` from a climbing verb means the mount (or directory) is there, `ok` from
 * a descending verb means nothing of it is left, its directories included. A failure with effect `none` promises
 * that what was there before the call is still there, unchanged.
 *
 * Descending verbs need nothing but their call: no secret, no API object, no capability of today's driver (INV-14).
 */
export interface VolumePlugin {
  readonly name: PluginName;
  /** Undefined while it cannot be known, because the driver is not registered. */
  needs(spec: VolumeSpec): Needs | undefined;
  /** The bulkhead it runs in: a hung driver fills only its own lane. */
  lane(spec: VolumeSpec): string;
  attach(call: VolumeCall): Promise<Result<{ readonly publishContext: PublishContext | undefined }>>;
  detach(call: VolumeCall): Promise<Result<void>>;
  /** The mount found at the staging path; undefined for a driver that stages without mounting. */
  stage(call: VolumeCall): Promise<Result<{ readonly stagedMount: MountIdentity | undefined }>>;
  unstage(call: VolumeCall): Promise<Result<void>>;
  /** Also refreshes: publishing again with other files replaces the content as one generation. */
  publish(call: PublicationCall): Promise<Result<{ readonly mount: MountIdentity | undefined }>>;
  unpublish(call: PublicationCall): Promise<Result<void>>;
}

export interface PluginRegistry {
  /** Total over the kinds: every spec has its plugin. */
  of(spec: VolumeSpec): VolumePlugin;
}
