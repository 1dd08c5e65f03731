/** The text of the kubelet's `vol_data.json`, both ways. Pure. */
import { type CsiVolumeSpec, isDriverName } from '../volume.ts';

/** What is written; a field that is left out, or empty, is not in the file. */
export interface VolumeData {
  readonly driver: string;
  readonly volumeHandle: string;
  readonly specName?: string;
  readonly nodeName?: string;
  readonly attachmentId?: string;
  readonly lifecycle?: CsiVolumeSpec['lifecycle'];
  readonly seLinuxContext?: string;
}

/** The kubelet's names of the fields, in order: the same volume has the same bytes. */
export function formatVolumeData(data: VolumeData): string {
  const fields = {
    attachmentID: data.attachmentId,
    driverName: data.driver,
    nodeName: data.nodeName,
    seLinuxMountContext: data.seLinuxContext === '' ? undefined : data.seLinuxContext,
    specVolID: data.specName,
    volumeHandle: data.volumeHandle,
    volumeLifecycleMode: data.lifecycle,
  };
  return `${JSON.stringify(fields)}\n`;
}

/** Whose directory it is. */
export interface VolumeDataOwner {
  readonly driver: string;
  readonly volumeHandle: string;
  /** `Ephemeral`: written inline in its pod, neither attached nor staged. */
  readonly lifecycle: CsiVolumeSpec['lifecycle'];
}

/** Whether a volume can be found by it. */
export function namesVolume(owner: VolumeDataOwner | undefined): owner is VolumeDataOwner {
  return owner !== undefined && isDriverName(owner.driver) && owner.volumeHandle !== '';
}

/**
 * Total: undefined for what names no driver and handle, as after a power cut (k/k#108217). The texts are as they stand
 * in the file, so they may be no name and no handle.
 */
export function parseVolumeData(text: string): VolumeDataOwner | undefined {
  try {
    const data: unknown = JSON.parse(text);
    if (typeof data !== 'object' || data === null) return undefined;
    const { driverName: driver, volumeHandle, volumeLifecycleMode } = data as Record<string, unknown>;
    if (typeof driver !== 'string' || typeof volumeHandle !== 'string') return undefined;
    return {
      driver,
      volumeHandle,
      lifecycle: volumeLifecycleMode === 'Ephemeral' ? 'Ephemeral' : 'Persistent',
    };
  } catch {
    return undefined;
  }
}
