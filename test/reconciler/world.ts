/** Builders for the states that the reconciler's tests start from. */
import type { Failure } from '../../mount/failure.ts';
import { NO_SECRETS, type Needs } from '../../plugins/plugin.ts';
import {
  type AccessMode,
  type Bytes,
  type CsiVolumeSpec,
  type PodUid,
  publicationKey,
  type PublicationKey,
  type PublicationSpec,
} from '../../plugins/volume.ts';
import {
  ABSENT,
  type ActualPublication,
  type ActualVolume,
  type Presence,
  PRESENT,
  RESTARTED,
} from '../../reconciler/model/actual-state.ts';
import type { DesiredState, DesiredVolume } from '../../reconciler/model/desired-state.ts';
import { csiSpec } from '../plugins/csi-spec.ts';

export const DRIVER = 'driver.example';

export function csi(handle: string): CsiVolumeSpec {
  return csiSpec(DRIVER, handle, `pv-${handle}`);
}

export function place(pod: string, handle: string, origin = 'pods.yaml'): PublicationSpec {
  const uid = pod as PodUid;
  const specName = `pv-${handle}`;
  const reference = { uid, name: pod, namespace: 'default', serviceAccount: 'default' };
  return { key: publicationKey(uid, specName), pod: reference, specName, readOnly: false, origin };
}

export function presence(kind: 'absent' | 'present' | 'unsure'): Presence {
  return kind === 'absent' ? ABSENT : kind === 'present' ? PRESENT : RESTARTED;
}

interface ActualShape {
  readonly attached?: 'absent' | 'present' | 'unsure';
  readonly staged?: 'absent' | 'present' | 'unsure';
  readonly pods?: Readonly<Record<string, 'present' | 'unsure'>>;
  readonly needs?: Needs;
}

export function actual(handle: string, shape: ActualShape): ActualVolume {
  const publications = new Map<PublicationKey, ActualPublication>();
  for (const [pod, kind] of Object.entries(shape.pods ?? {})) {
    const spec = place(pod, handle);
    publications.set(spec.key, {
      spec,
      presence: presence(kind),
      generation: kind === 'present' ? '' : undefined,
      mount: undefined,
    });
  }
  return {
    spec: csi(handle),
    needs: shape.needs ?? { attach: false, stage: true, expand: false },
    attached: presence(shape.attached ?? 'absent'),
    staged: presence(shape.staged ?? 'absent'),
    publishContext: undefined,
    stagedMount: undefined,
    publications,
    sizeBytes: undefined,
    refusedExpansion: undefined,
    quarantine: undefined,
  };
}

export function bytes(count: number): Bytes {
  return String(count) as Bytes;
}

/** Wanted by pods that share it, or by one pod at a time. */
export function wantedAs(mode: AccessMode, handle: string, pods: readonly string[]): DesiredVolume {
  const volume = wanted(handle, pods);
  return { ...volume, spec: { ...csi(handle), accessModes: [mode] } };
}

export function wantedOfSize(handle: string, pods: readonly string[], count: number): DesiredVolume {
  const size = { bytes: bytes(count), knownBytes: undefined, held: undefined };
  return { ...wanted(handle, pods), size };
}

export function wanted(handle: string, pods: readonly string[], blocked?: Failure): DesiredVolume {
  const publications = new Map(
    pods.map((pod) => {
      const spec = place(pod, handle);
      return [spec.key, { spec, generation: '', files: undefined, tokens: undefined }];
    }),
  );
  return {
    spec: csi(handle),
    secrets: NO_SECRETS,
    publications,
    blocked,
    size: undefined,
  };
}

export function wish(volumes: readonly DesiredVolume[], more: Partial<DesiredState> = {}): DesiredState {
  return {
    complete: true,
    volumes: new Map(volumes.map((volume) => [volume.spec.id, volume])),
    frozenPods: new Set(),
    unknownOrigins: new Set(),
    unresolved: [],
    outOfService: false,
    lostAttachments: new Set(),
    attachmentUids: new Map(),
    ...more,
  };
}
