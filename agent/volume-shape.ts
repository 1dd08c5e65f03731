/** PersistentVolumes and their claims. */
import { type AccessMode, VOLUME_HANDLE_BYTES_MAX } from '../plugins/volume.ts';
import { readMetadata } from './metadata-shape.ts';
import { mountOptionProblem } from './mount-option.ts';
import { DRIVER_NAME, LABEL_NAME, OBJECT_NAME, OBJECT_UID } from './object-name.ts';
import type {
  CsiSource,
  NamedReference,
  PersistentVolume,
  PersistentVolumeClaim,
  VolumeMode,
} from './objects.ts';
import type { Place } from './place.ts';

const CONTROL = /\p{Cc}/u;
const FS_TYPE = /^[a-z0-9][a-z0-9._-]{0,31}$/i;
const ACCESS_MODES: readonly AccessMode[] = [
  'ReadWriteOnce',
  'ReadOnlyMany',
  'ReadWriteMany',
  'ReadWriteOncePod',
];
const VOLUME_MODES: readonly VolumeMode[] = ['Filesystem', 'Block'];
const CLAIM_PROTECTION = 'kubernetes.io/pvc-protection';

/** Every source type of PersistentVolumeSpec; a field that is none of them is not a source. */
const VOLUME_SOURCES: readonly string[] = [
  'awsElasticBlockStore',
  'azureDisk',
  'azureFile',
  'cephfs',
  'cinder',
  'csi',
  'fc',
  'flexVolume',
  'flocker',
  'gcePersistentDisk',
  'glusterfs',
  'hostPath',
  'iscsi',
  'local',
  'nfs',
  'photonPersistentDisk',
  'portworxVolume',
  'quobyte',
  'rbd',
  'scaleIO',
  'storageos',
  'vsphereVolume',
];

/** A PersistentVolume; what is wrong with it is left in the place's problems. */
export function readPersistentVolume(place: Place): PersistentVolume {
  const { name } = readMetadata(place);
  const spec = place.key('spec');
  const modes = spec.key('accessModes');
  const accessModes = modes.list().map((one) => one.oneOf(ACCESS_MODES, 'ReadWriteOnce'));
  if (accessModes.length === 0) modes.refuse(`expected at least one of ${ACCESS_MODES.join(', ')}`);
  return {
    kind: 'PersistentVolume',
    name,
    source: readSource(spec),
    accessModes,
    mountOptions: spec.key('mountOptions').list().map(readMountOption),
    volumeMode: spec.key('volumeMode').oneOf(VOLUME_MODES, 'Filesystem'),
    claimRef: readClaimReference(spec.key('claimRef')),
  };
}

function readSource(spec: Place): PersistentVolume['source'] {
  const given = VOLUME_SOURCES.filter((one) => spec.key(one).present);
  const [what] = given;
  if (what === undefined) spec.refuse('has no volume source; expected csi');
  else if (given.length > 1) spec.refuse(`has more than one volume source: ${given.join(', ')}`);
  return what === 'csi' ? readCsiSource(spec.key('csi')) : { kind: 'unsupported', what: what ?? '' };
}

function readCsiSource(csi: Place): CsiSource {
  return {
    kind: 'csi',
    driver: csi.key('driver').requiredText(...DRIVER_NAME),
    volumeHandle: csi
      .key('volumeHandle')
      .requiredText(
        (text) => text !== '' && Buffer.byteLength(text) <= VOLUME_HANDLE_BYTES_MAX && !CONTROL.test(text),
        `1 to ${VOLUME_HANDLE_BYTES_MAX} bytes without control characters`,
      ),
    fsType:
      csi.key('fsType').text((text) => text === '' || FS_TYPE.test(text), 'a file system, such as ext4') ??
      '',
    readOnly: csi.key('readOnly').flag(false),
    volumeAttributes: readAttributes(csi.key('volumeAttributes').hide()),
    controllerPublishSecret: readSecretReference(csi.key('controllerPublishSecretRef')),
    stageSecret: readSecretReference(csi.key('nodeStageSecretRef')),
    publishSecret: readSecretReference(csi.key('nodePublishSecretRef')),
  };
}

function readAttributes(place: Place): Readonly<Record<string, string>> {
  return Object.fromEntries(
    place.entries().map(([key, value]) => [key, value.requiredText(() => true, 'a string')]),
  );
}

function readSecretReference(place: Place): NamedReference | undefined {
  if (!place.present) return undefined;
  return {
    namespace: place.key('namespace').requiredText(...LABEL_NAME),
    name: place.key('name').requiredText(...OBJECT_NAME),
  };
}

function readMountOption(place: Place): string {
  const option = place.requiredText(() => true, 'a mount option');
  const problem = mountOptionProblem(option);
  if (problem !== undefined) place.refuse(`${place.shown()} ${problem}`);
  return option;
}

function readClaimReference(place: Place): PersistentVolume['claimRef'] {
  if (!place.present) return undefined;
  return {
    namespace: place.key('namespace').text(...LABEL_NAME) ?? 'default',
    name: place.key('name').requiredText(...OBJECT_NAME),
    uid: nonEmpty(place.key('uid').text((text) => text === '' || OBJECT_UID[0](text), OBJECT_UID[1])),
  };
}

/** A claim; its status is not read, because a phase is information and never an input (S1-2). */
export function readClaim(place: Place): PersistentVolumeClaim {
  const { namespace, name, uid, deleted, finalizers } = readMetadata(place);
  const spec = place.key('spec');
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
    volumeMode: spec.key('volumeMode').oneOf(VOLUME_MODES, 'Filesystem'),
    leaving: deleted && !finalizers.includes(CLAIM_PROTECTION),
  };
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}
