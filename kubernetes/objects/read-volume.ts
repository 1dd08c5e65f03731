/** PersistentVolumes and their claims. */
import type { AccessMode, Bytes, VolumeMode } from '../../plugins/volume.ts';
import { readCsiSource, readFsType } from './read-csi-source.ts';
import { annotation, readMetadata } from './read-metadata.ts';
import { driverOptionProblem, mountOptionProblem } from '../fields/mount-option.ts';
import { LABEL_NAME, OBJECT_NAME, OBJECT_UID } from '../fields/object-name.ts';
import type { PersistentVolume, PersistentVolumeClaim } from './objects.ts';
import { isGroupId } from './read-pod-security.ts';
import { readNodeAffinity } from './read-node-affinity.ts';
import { type FieldReader, quoted } from '../fields/field-reader.ts';
import { readHostPath } from '../fields/host-path.ts';
import { readIscsiSource, readNfsSource } from './read-network-source.ts';
import { OTHER_KINDS } from '../sources/other-kinds.ts';
import { readHostPathSource } from '../sources/read-host-path.ts';
import { CLAIM_PROTECTION, VOLUME_PROTECTION } from '../fields/protection.ts';
import { parseExactBytes } from '../fields/quantity.ts';

const ACCESS_MODES: readonly AccessMode[] = [
  'ReadWriteOnce',
  'ReadOnlyMany',
  'ReadWriteMany',
  'ReadWriteOncePod',
];
const VOLUME_MODES: readonly VolumeMode[] = ['Filesystem', 'Block'];
export const GID_ANNOTATION = 'pv.beta.kubernetes.io/gid';
/** There was no `spec.mountOptions` then. */
const MOUNT_OPTIONS_ANNOTATION = 'volume.beta.kubernetes.io/mount-options';
const NO_NODE_EXPANSION = 'volume.kubernetes.io/node-expansion-not-required';
const RESIZE_STATUS = /^[A-Za-z]{0,64}$/;

/** Every source type of PersistentVolumeSpec; a field that is none of them is not a source. */
const VOLUME_SOURCES: readonly string[] = ['csi', 'hostPath', 'iscsi', 'local', 'nfs', ...OTHER_KINDS];

/** A PersistentVolume; what is wrong with it is left in the reader's problems. */
export function readPersistentVolume(reader: FieldReader): PersistentVolume {
  const { name, deleted, finalizers } = readMetadata(reader);
  const spec = reader.key('spec');
  const modes = spec.key('accessModes');
  const accessModes = readAccessModes(modes);
  if (accessModes.length === 0) modes.refuse(`expected at least one of ${ACCESS_MODES.join(', ')}`);
  const source = readSource(spec);
  return {
    kind: 'PersistentVolume',
    name,
    leaving: deleted && !finalizers.includes(VOLUME_PROTECTION),
    source,
    accessModes,
    mountOptions: readMountOptions(reader, source),
    volumeMode: spec.key('volumeMode').oneOf(VOLUME_MODES, 'Filesystem'),
    claimRef: readClaimReference(spec.key('claimRef')),
    reachableFrom: readNodeAffinity(spec.key('nodeAffinity')),
    capacityBytes: readSize(spec.key('capacity').key('storage')),
    supplementalGid: readGid(annotation(reader, GID_ANNOTATION)),
  };
}

/** As Kubernetes allows them: ReadWriteOncePod beside another mode would be sent as one and enforced as the other. */
function readAccessModes(modes: FieldReader): readonly AccessMode[] {
  const accessModes = modes.list().map((one) => one.requiredOneOf(ACCESS_MODES, 'ReadWriteOnce'));
  if (accessModes.length > 1 && accessModes.includes('ReadWriteOncePod'))
    modes.refuse('ReadWriteOncePod cannot be beside other modes; write it alone, or leave it out');
  return accessModes;
}

/** None means "not said", as in CSI. */
function readSize(reader: FieldReader): Bytes | undefined {
  const right = 'a size that is not negative and less than 8Ei, such as 10Gi';
  const text = reader.scalarText(right);
  if (text === undefined) return undefined;
  const bytes = parseExactBytes(text);
  if (bytes === undefined) reader.refuse(`expected ${right}, found ${reader.shown()}`);
  return bytes === '0' ? undefined : bytes;
}

/** As for the kubelet (getExtraSupplementalGid) what is no group costs nobody the volume. */
function readGid(reader: FieldReader): PersistentVolume['supplementalGid'] {
  const text = reader.text();
  if (text === undefined) return undefined;
  return /^[0-9]{1,10}$/.test(text) && isGroupId(Number(text)) ? Number(text) : 'none';
}

function readSource(spec: FieldReader): PersistentVolume['source'] {
  const given = VOLUME_SOURCES.filter((one) => spec.key(one).present);
  const [what] = given;
  if (what === undefined) spec.refuse('has no volume source; expected one such as csi or local');
  else if (given.length > 1) spec.refuse(`has more than one volume source: ${given.join(', ')}`);
  switch (what) {
    case 'csi':
      return readCsiSource(spec.key(what));
    case 'hostPath':
      return readHostPathSource(spec.key(what));
    case 'iscsi':
      return readIscsiSource(spec.key(what));
    case 'nfs':
      return readNfsSource(spec.key(what));
    case 'local':
      return {
        kind: 'local',
        path: readHostPath(spec.key(what).key('path')),
        fsType: readFsType(spec.key(what).key('fsType')),
      };
    default:
      return { kind: 'unsupported', what: what ?? '' };
  }
}

/**
 * In the kubelet, what it mounts itself has the options of the annotation when that is there, whatever the field says
 * (MountOptionFromSpec).
 */
function readMountOptions(reader: FieldReader, source: PersistentVolume['source']): readonly string[] {
  const isOfDriver = source.kind === 'csi';
  const listed = reader.key('spec').key('mountOptions').list();
  const annotated = annotation(reader, MOUNT_OPTIONS_ANNOTATION);
  const text = isOfDriver ? undefined : annotated.text();
  const problemOf = isOfDriver ? driverOptionProblem : mountOptionProblem;
  const refuse = (at: FieldReader, option: string): void => {
    const problem = problemOf(option);
    if (problem !== undefined) at.refuse(`${quoted(optionName(option))} ${problem}`);
  };
  if (text !== undefined) {
    const options = text.split(',').filter((option) => option !== '');
    for (const option of options) refuse(annotated, option);
    return options;
  }
  return listed.map((one) => {
    const option = one.requiredText(() => true, 'a mount option');
    refuse(one, option);
    return option;
  });
}

/** What stands behind it may be a password. */
function optionName(option: string): string {
  return option.split(/[=: ]/, 1)[0] ?? '';
}

function readClaimReference(reader: FieldReader): PersistentVolume['claimRef'] {
  if (!reader.present) return undefined;
  return {
    namespace: reader.key('namespace').text(...LABEL_NAME) ?? 'default',
    name: reader.key('name').requiredText(...OBJECT_NAME),
    uid: nonEmpty(reader.key('uid').text((text) => text === '' || OBJECT_UID[0](text), OBJECT_UID[1])),
  };
}

/**
 * A claim. Of its status only what says how far a growth has come: a phase is information and never an input.
 */
export function readClaim(reader: FieldReader): PersistentVolumeClaim {
  const { namespace, name, uid, deleted, finalizers, ownerPodUid } = readMetadata(reader);
  const status = reader.key('status');
  const spec = reader.key('spec');
  if (!spec.present) spec.refuse('is missing; expected the specification of the claim');
  const volumeName = spec
    .key('volumeName')
    .text((text) => text === '' || OBJECT_NAME[0](text), OBJECT_NAME[1]);
  return {
    kind: 'PersistentVolumeClaim',
    namespace,
    name,
    uid,
    volumeName: nonEmpty(volumeName),
    accessModes: readAccessModes(spec.key('accessModes')),
    volumeMode: spec.key('volumeMode').oneOf(VOLUME_MODES, 'Filesystem'),
    leaving: deleted && !finalizers.includes(CLAIM_PROTECTION),
    ownerPodUid,
    requestedBytes: readSize(spec.key('resources').key('requests').key('storage')),
    statusBytes: readSize(status.key('capacity').key('storage')),
    allocatedBytes: readSize(status.key('allocatedResources').key('storage')),
    resizeStatus:
      status
        .key('allocatedResourceStatuses')
        .key('storage')
        .text((text) => RESIZE_STATUS.test(text), 'a status, such as NodeResizePending') ?? '',
    nodeExpansionNotRequired: annotation(reader, NO_NODE_EXPANSION).present,
  };
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}
