/** VolumeAttachment objects: what an attach/detach controller says of one volume and one node. */
import { readMetadata } from './read-metadata.ts';
import { DRIVER_NAME, OBJECT_NAME } from '../fields/object-name.ts';
import type { ObjectKey, VolumeAttachment } from './objects.ts';
import { FieldReader } from '../fields/field-reader.ts';

/** What a VolumeAttachment is about, as far as it can be read. */
export interface AttachmentSubject {
  readonly volumeName: ObjectKey | undefined;
  readonly nodeName: string | undefined;
}

/** What is wrong with it is left in the reader's problems. A status without `attached` says neither, and is refused. */
export function readVolumeAttachment(reader: FieldReader): VolumeAttachment {
  const { name, uid, deleted } = readMetadata(reader);
  const spec = reader.key('spec');
  const status = reader.key('status');
  return {
    kind: 'VolumeAttachment',
    name,
    uid,
    attacher: spec.key('attacher').requiredText(...DRIVER_NAME),
    nodeName: spec.key('nodeName').requiredText(...OBJECT_NAME),
    volumeName: readVolumeName(spec.key('source')),
    attached: readAttached(status),
    attachError: readError(status.key('attachError')),
    deleted,
  };
}

/** What a VolumeAttachment is about whose other fields may be wrong. */
export function attachmentSubject(value: unknown): AttachmentSubject {
  const spec = new FieldReader(value, '', []).key('spec');
  return {
    volumeName: spec
      .key('source')
      .key('persistentVolumeName')
      .text(...OBJECT_NAME),
    nodeName: spec.key('nodeName').text(...OBJECT_NAME),
  };
}

function readVolumeName(source: FieldReader): string {
  const volumeName = source.key('persistentVolumeName');
  const inline = source.key('inlineVolumeSpec');
  if (!inline.present) return volumeName.requiredText(...OBJECT_NAME);
  inline.refuse('is not supported; only persistentVolumeName is');
  return '';
}

function readAttached(status: FieldReader): boolean | undefined {
  if (!status.present) return undefined;
  const attached = status.key('attached');
  if (!attached.present) attached.refuse('is missing; expected true or false, or no status at all');
  return attached.flag(false);
}

function readError(error: FieldReader): string | undefined {
  return error.present ? (error.key('message').text() ?? 'no message') : undefined;
}
