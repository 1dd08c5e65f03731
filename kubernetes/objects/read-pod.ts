/** Pods: who they are and which of their volumes a container mounts. */
import { sha256Hex } from '../../plugins/layout/layout.ts';
import { parsePodUid, type PodUid } from '../../plugins/volume.ts';
import { type ReadContainer, readContainers } from './read-container.ts';
import { readContentSource } from './read-content.ts';
import { readInlineSource } from './read-csi-source.ts';
import { type PodFields, podFields, readDownwardSource } from './read-downward.ts';
import { readMetadata } from './read-metadata.ts';
import { LABEL_NAME, OBJECT_NAME } from '../fields/object-name.ts';
import { type NamedReference, objectKey, type Pod, type PodVolume, type PodVolumeSource } from './objects.ts';
import { type FieldReader, quoted } from '../fields/field-reader.ts';
import { readIscsiSource, readNfsSource } from './read-network-source.ts';
import { readProjectedSource } from './read-projected.ts';
import { readFsGroup, readPodSeLinux } from './read-pod-security.ts';
import { OTHER_KINDS } from '../sources/other-kinds.ts';
import { readEmptyDir } from '../sources/read-empty-dir.ts';
import { readHostPathSource } from '../sources/read-host-path.ts';
import { readImage } from '../sources/read-image.ts';

/**
 * The uid of a pod that gives none, as the kubelet makes one for a static pod: the same file, namespace and name are
 * the same pod, in every life of the agent.
 */
export function derivePodUid(origin: string, pod: NamedReference): PodUid | undefined {
  const hex = sha256Hex(`mooring static pod\n${origin}\n${objectKey(pod)}`);
  const cuts = [0, 8, 12, 16, 20, 32];
  return parsePodUid(
    cuts
      .slice(1)
      .map((end, index) => hex.slice(cuts[index], end))
      .join('-'),
  );
}

/** A pod; what is wrong with it is left in the reader's problems. `origin` is the manifest file's name. */
export function readPod(reader: FieldReader, origin: string): Pod {
  const { name, namespace, uid } = readMetadata(reader);
  const spec = reader.key('spec');
  const account = spec.key('serviceAccountName').present ? 'serviceAccountName' : 'serviceAccount';
  const serviceAccount = spec
    .key(account)
    .text((text) => text === '' || OBJECT_NAME[0](text), OBJECT_NAME[1]);
  const podUid = uid === undefined ? derivePodUid(origin, { namespace, name }) : parsePodUid(uid);
  const fields = podFields(reader, { name, namespace, uid: podUid ?? '' });
  const containers = readContainers(spec, fields.metadata);
  const all = containers.map(({ container }) => container);
  return {
    kind: 'Pod',
    // A uid that does not parse has left its problem behind, and then this object is not used.
    reference: {
      uid: podUid ?? ('' as PodUid),
      name,
      namespace,
      serviceAccount: serviceAccount || 'default',
    },
    volumes: readVolumes(spec, containers, fields),
    containers: all,
    fsGroup: readFsGroup(spec),
    seLinux: readPodSeLinux(spec, all),
  };
}

/** What can be a device to a pod, as in Kubernetes; the rest is files. What we do not set up answers for itself. */
const DEVICE_SOURCES: ReadonlySet<PodVolumeSource['kind']> = new Set(['claim', 'own-claim', 'unsupported']);

/** The volumes that a container mounts; the others are ignored (KV-A3), whatever they are. */
function readVolumes(
  spec: FieldReader,
  containers: readonly ReadContainer[],
  pod: PodFields,
): readonly PodVolume[] {
  const uses = readUses(containers);
  const volumes: PodVolume[] = [];
  const names = new Set<string>();
  for (const reader of spec.key('volumes').list()) {
    const name = reader.key('name').requiredText(...LABEL_NAME);
    if (names.has(name) && name !== '')
      reader.key('name').refuse(`${quoted(name)} is the name of an earlier volume`);
    names.add(name);
    const used = uses.get(name);
    if (used === undefined) continue;
    const source = readSource(reader, pod);
    if (used.block && !DEVICE_SOURCES.has(source.kind))
      used.reader.refuse(`${quoted(name)} is not a claim, and only claims can be used as devices`);
    volumes.push({ name, block: used.block, source });
  }
  for (const [name, { reader }] of uses) {
    if (!names.has(name)) reader.refuse(`${quoted(name)} is not the name of a volume in spec.volumes`);
  }
  return volumes;
}

interface Use {
  readonly reader: FieldReader;
  readonly block: boolean;
}

function readUses(containers: readonly ReadContainer[]): ReadonlyMap<string, Use> {
  const uses = new Map<string, Use>();
  for (const container of containers) {
    for (const key of ['volumeMounts', 'volumeDevices'] as const) {
      for (const mount of container.reader.key(key).list()) {
        const reader = mount.key('name');
        const name = reader.text() ?? '';
        const block = key === 'volumeDevices';
        if (name === '') continue;
        const before = uses.get(name);
        if (before !== undefined && before.block !== block)
          reader.refuse(`${quoted(name)} is in volumeMounts and in volumeDevices; it is files or a device`);
        uses.set(name, { reader, block });
      }
    }
  }
  return uses;
}

const SUPPORTED: Readonly<Record<string, (source: FieldReader, pod: PodFields) => PodVolumeSource>> = {
  persistentVolumeClaim: (source) => ({
    kind: 'claim',
    claimName: source.key('claimName').requiredText(...OBJECT_NAME),
    readOnly: source.key('readOnly').flag(false),
  }),
  csi: readInlineSource,
  emptyDir: (source, { spec }) => readEmptyDir(source, spec),
  ephemeral: readOwnClaim,
  image: readImage,
  iscsi: readIscsiSource,
  nfs: readNfsSource,
  hostPath: readHostPathSource,
  secret: (source) => readContentSource('secret', source.key('secretName'), source),
  configMap: (source) => readContentSource('config-map', source.key('name'), source),
  downwardAPI: readDownwardSource,
  projected: readProjectedSource,
};

function readSource(volume: FieldReader, pod: PodFields): PodVolumeSource {
  const known = [...Object.keys(SUPPORTED), ...OTHER_KINDS].filter((one) => volume.key(one).present);
  const [what] = known;
  if (known.length > 1) volume.refuse(`has more than one source: ${known.join(', ')}`);
  const read = what === undefined ? undefined : SUPPORTED[what];
  if (what !== undefined && read !== undefined) return read(volume.key(what), pod);
  if (what !== undefined) return { kind: 'unsupported', what };
  const written = volume.entries().filter(([key]) => key !== 'name');
  if (written.length > 0 && written.every(([key]) => key === 'emptyDir'))
    return readEmptyDir(volume.key('emptyDir'), pod.spec);
  return { kind: 'unsupported', what: unknownSource(volume, written) };
}

/**
 * A source that Kubernetes has not invented yet, or none, which is a mistake: the API server makes an emptyDir of that,
 * and of a file that was cut short a pod would have one in the place of its claim.
 */
function unknownSource(volume: FieldReader, written: ReturnType<FieldReader['entries']>): string {
  const [unknown] = written.filter(([, value]) => value.present);
  if (unknown === undefined)
    volume.refuse('has no source; expected one such as persistentVolumeClaim or emptyDir');
  return unknown?.[0] ?? '';
}

/** The template is for whoever makes the claim; only the claim decides. */
function readOwnClaim(source: FieldReader): PodVolumeSource {
  const spec = source.key('volumeClaimTemplate').key('spec');
  if (!spec.present) spec.refuse('is missing; expected the specification of the claim');
  return { kind: 'own-claim' };
}
