/** Volumes of servers as they are written, alike in a PersistentVolume and in a pod. */
import type { FieldReader } from '../fields/field-reader.ts';
import { readIscsiTarget } from '../fields/iscsi-target.ts';
import { readNfsExport } from '../fields/nfs-export.ts';
import { LABEL_NAME, OBJECT_NAME } from '../fields/object-name.ts';
import type { IscsiSource, NfsSource } from './objects.ts';
import { readFsType } from './read-csi-source.ts';

export function readNfsSource(nfs: FieldReader): NfsSource {
  return { kind: 'nfs', ...readNfsExport(nfs), readOnly: nfs.key('readOnly').flag(false) };
}

/** Only a PersistentVolume names the namespace of its secret; without one it is that of the pod. */
export function readIscsiSource(iscsi: FieldReader): IscsiSource {
  const initiator = iscsi.key('initiatorName');
  if ((initiator.text() ?? '') !== '')
    initiator.refuse(
      'is not supported: an interface with that name has to be made on the node ' +
        '(iscsiadm -m iface -I NAME -o new, then -n iface.initiatorname), and iscsiInterface to name it',
    );
  const secret = iscsi.key('secretRef');
  const chap = {
    discovery: iscsi.key('chapAuthDiscovery').flag(false),
    session: iscsi.key('chapAuthSession').flag(false),
  };
  if ((chap.discovery || chap.session) && !secret.present)
    secret.refuse('is missing; expected the Secret with the keys for CHAP, because CHAP is asked for');
  return {
    kind: 'iscsi',
    ...readIscsiTarget(iscsi),
    fsType: readFsType(iscsi.key('fsType')),
    readOnly: iscsi.key('readOnly').flag(false),
    chap,
    secret: secret.present
      ? {
          namespace:
            secret.key('namespace').text((text) => text === '' || LABEL_NAME[0](text), LABEL_NAME[1]) ?? '',
          name: secret.key('name').requiredText(...OBJECT_NAME),
        }
      : undefined,
  };
}
