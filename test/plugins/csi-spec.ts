/** CSI volumes for tests of every floor. */
import { CSI_DEFAULTS, type CsiVolumeSpec, csiVolumeId } from '../../plugins/volume.ts';

/** One that a single node uses, with no CSIDriver object and nothing special about it but `changes`. */
export function csiSpec(
  driver: string,
  volumeHandle: string,
  specName: string,
  changes: Partial<CsiVolumeSpec> = {},
): CsiVolumeSpec {
  return {
    ...CSI_DEFAULTS,
    kind: 'csi',
    id: csiVolumeId(driver, volumeHandle),
    driver,
    volumeHandle,
    specName,
    fsType: 'ext4',
    mountOptions: [],
    volumeAttributes: {},
    accessModes: ['ReadWriteOnce'],
    readOnly: false,
    attachRequired: undefined,
    podInfoOnMount: false,
    ...changes,
  };
}
