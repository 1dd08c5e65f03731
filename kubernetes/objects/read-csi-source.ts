/** CSI volumes as they are written: in a PersistentVolume, and inline in a pod. */
import { VOLUME_HANDLE_BYTES_MAX } from '../../plugins/volume.ts';
import { DRIVER_NAME, LABEL_NAME, OBJECT_NAME } from '../fields/object-name.ts';
import type { CsiSource, InlineSource, NamedReference } from './objects.ts';
import type { FieldReader } from '../fields/field-reader.ts';

const CONTROL = /\p{Cc}/u;
const FS_TYPE = /^[a-z0-9][a-z0-9._-]{0,31}$/i;

/** spec.csi of a PersistentVolume. */
export function readCsiSource(csi: FieldReader): CsiSource {
  return {
    kind: 'csi',
    driver: csi.key('driver').requiredText(...DRIVER_NAME),
    volumeHandle: csi
      .key('volumeHandle')
      .requiredText(
        (text) => text !== '' && Buffer.byteLength(text) <= VOLUME_HANDLE_BYTES_MAX && !CONTROL.test(text),
        `1 to ${VOLUME_HANDLE_BYTES_MAX} bytes without control characters`,
      ),
    fsType: readFsType(csi.key('fsType')),
    readOnly: csi.key('readOnly').flag(false),
    volumeAttributes: readAttributes(csi.key('volumeAttributes')),
    controllerPublishSecret: readSecretReference(csi.key('controllerPublishSecretRef')),
    stageSecret: readSecretReference(csi.key('nodeStageSecretRef')),
    publishSecret: readSecretReference(csi.key('nodePublishSecretRef')),
    expandSecret: readSecretReference(csi.key('nodeExpandSecretRef')),
  };
}

/** `csi` of a pod's volume: it has no handle of its own, and its secret is one of the pod's namespace. */
export function readInlineSource(csi: FieldReader): InlineSource {
  const secret = csi.key('nodePublishSecretRef');
  return {
    kind: 'csi-inline',
    driver: csi.key('driver').requiredText(...DRIVER_NAME),
    fsType: readFsType(csi.key('fsType')),
    readOnly: csi.key('readOnly').flag(false),
    volumeAttributes: readAttributes(csi.key('volumeAttributes')),
    publishSecretName: secret.present ? secret.key('name').requiredText(...OBJECT_NAME) : undefined,
  };
}

export function readFsType(reader: FieldReader): string {
  return reader.text((text) => text === '' || FS_TYPE.test(text), 'a file system, such as ext4') ?? '';
}

/** Never shown: people put there what belongs into a secret. */
function readAttributes(reader: FieldReader): Readonly<Record<string, string>> {
  const entries = reader.hide().entries();
  return Object.fromEntries(entries.map(([key, value]) => [key, value.requiredText(() => true, 'a string')]));
}

function readSecretReference(reader: FieldReader): NamedReference | undefined {
  if (!reader.present) return undefined;
  return {
    namespace: reader.key('namespace').requiredText(...LABEL_NAME),
    name: reader.key('name').requiredText(...OBJECT_NAME),
  };
}
