/** VolumeAttachments that are read and say nothing here: whoever wrote them to fence a volume has to be told. */
import type { Sliced } from '../../mount/process/slices.ts';
import type {
  CsiDriver,
  ObjectKey,
  PersistentVolume,
  Stamped,
  VolumeAttachment,
} from '../../kubernetes/objects/objects.ts';

/** One that says nothing, and why, for people. */
export interface AttachmentRemark {
  readonly object: Stamped<VolumeAttachment>;
  readonly field: string;
  readonly message: string;
}

interface Objects {
  readonly VolumeAttachment: ReadonlyMap<ObjectKey, Stamped<VolumeAttachment>>;
  readonly PersistentVolume: ReadonlyMap<ObjectKey, PersistentVolume>;
  readonly CSIDriver: ReadonlyMap<ObjectKey, CsiDriver>;
}

/** Pure. At most one for each. */
export function* attachmentRemarks(objects: Objects): Sliced<readonly AttachmentRemark[]> {
  const remarks: AttachmentRemark[] = [];
  for (const object of objects.VolumeAttachment.values()) {
    const remark = remarkOf(object, objects);
    if (remark !== undefined) remarks.push(remark);
    yield;
  }
  return remarks;
}

function remarkOf(object: Stamped<VolumeAttachment>, objects: Objects): AttachmentRemark | undefined {
  const { attacher, volumeName } = object;
  const source = objects.PersistentVolume.get(volumeName)?.source;
  const remark = (field: string, message: string) => ({ object, field: `spec.${field}`, message });
  if (source === undefined)
    return remark('source.persistentVolumeName', `ignored: there is no PersistentVolume ${volumeName}`);
  if (source.kind !== 'csi' || source.driver !== attacher)
    return remark('attacher', `ignored: ${attacher} is not the driver of PersistentVolume ${volumeName}`);
  return needsNoAttach(objects.CSIDriver, attacher)
    ? remark('attacher', `ignored: CSIDriver ${attacher} has attachRequired: false`)
    : undefined;
}

/** Its CSIDriver object says so. */
export function needsNoAttach(drivers: ReadonlyMap<ObjectKey, CsiDriver>, driver: string): boolean {
  return drivers.get(driver)?.attachRequired === false;
}
