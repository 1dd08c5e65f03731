/** PersistentVolumes of kinds without a driver, and those kinds as pods write them, as volumes to set up. */
import { type Failure, ok, type Result } from '../../mount/failure.ts';
import { localVolumeId } from '../../plugins/local/local-traits.ts';
import { chapProblem } from '../../plugins/iscsi/chap.ts';
import { iscsiVolumeId } from '../../plugins/iscsi/iscsi-traits.ts';
import { nfsVolume } from '../../plugins/nfs/nfs-traits.ts';
import { whyDenied } from '../../plugins/pod/denied-path.ts';
import { HOST_PATH_PLUGIN } from '../../plugins/pod/pod-traits.ts';
import { podVolumeId } from '../../plugins/volume.ts';
import type {
  IscsiSource,
  LocalSource,
  NfsSource,
  PersistentVolume,
  Pod,
} from '../../kubernetes/objects/objects.ts';
import { brokenRules, isTrueOf, wordsOf } from '../../plugins/topology-rule.ts';
import { NO_SECRETS } from '../../plugins/plugin.ts';
import { objectKey } from '../../kubernetes/objects/objects.ts';
import { optionName } from '../../kubernetes/fields/mount-option.ts';
import { refuse } from '../../kubernetes/fields/refuse.ts';
import type { HostPathSource } from '../../kubernetes/sources/read-host-path.ts';
import { resolveSecret } from './csi-secrets.ts';
import { PLAIN, type Resolved, type Sources } from './resolved.ts';

const NO_FILES = { fsType: '', mountOptions: [] } as const;

/** `readOnly` is the pod's word. */
export function resolveLocal(
  sources: Sources,
  volume: PersistentVolume,
  { path, fsType }: LocalSource,
  readOnly: boolean,
): Result<Resolved> {
  const { name, accessModes, volumeMode: mode } = volume;
  // A device is shown as it is: neither a file system nor mount options are of it.
  const files = mode === 'Block' ? NO_FILES : { fsType, mountOptions: volume.mountOptions };
  const title = `PersistentVolume ${name}: the local path ${path}`;
  const denied = whyDenied({ title, path }, sources.options.deniedHostPaths);
  if (denied !== undefined) return refuse('spec-invalid', denied);
  const id = localVolumeId(name);
  return ok({
    ...PLAIN,
    spec: { kind: 'local', id, name, path, mode, ...files, accessModes },
    specName: name,
    readOnly,
    blocked: wrongNode(sources, volume),
  });
}

/** A PersistentVolume; `readOnly` is the pod's word. As in the kubelet the path is each pod's own volume. */
export function resolveHostPathVolume(
  sources: Sources,
  pod: Pod,
  { volume, source, readOnly }: { volume: PersistentVolume; source: HostPathSource; readOnly: boolean },
): Result<Resolved> {
  const { name, volumeMode, mountOptions } = volume;
  if (volumeMode === 'Block')
    return refuse('spec-invalid', `PersistentVolume ${name}: a hostPath is no device`);
  // Who has written `ro` counts on it.
  if (mountOptions.length > 0) {
    const because = 'a hostPath is not mounted, so it cannot have mount options';
    const message = `PersistentVolume ${name}: ${because} (${mountOptions.map(optionName).join(', ')})`;
    return refuse('spec-invalid', `${message.slice(0, 800)}; a local volume can`);
  }
  const resolved = resolveHostPath(sources, pod, { source, name, title: `PersistentVolume ${name}: ` });
  if (!resolved.ok) return resolved;
  const blocked = wrongNode(sources, volume);
  return ok({ ...resolved.value, readOnly, blocked });
}

/** `name`: of the PersistentVolume, or of the volume in the pod. */
export function resolveHostPath(
  { options }: Sources,
  { reference: { uid } }: Pod,
  { source, name, title = '' }: { source: HostPathSource; name: string; title?: string },
): Result<Resolved> {
  const { path, type } = source;
  const denied = whyDenied({ title: `${title}hostPath ${path}`, path }, options.deniedHostPaths);
  if (denied !== undefined) return refuse('spec-invalid', denied);
  const id = podVolumeId(HOST_PATH_PLUGIN, uid, name);
  return ok({ ...PLAIN, specName: name, spec: { kind: 'host-path', id, pod: uid, name, path, type } });
}

/** A PersistentVolume; `readOnly` is the pod's word. */
export function resolveNfsVolume(
  sources: Sources,
  pod: Pod,
  { volume, source, readOnly }: { volume: PersistentVolume; source: NfsSource; readOnly: boolean },
): Result<Resolved> {
  const { name, mountOptions, volumeMode } = volume;
  if (volumeMode === 'Block')
    return refuse(
      'spec-invalid',
      `PersistentVolume ${name}: an NFS server has files, and volumeMode is Block`,
    );
  const blocked = wrongNode(sources, volume);
  return ok({
    ...resolveNfs(pod, name, source, mountOptions),
    readOnly: readOnly || source.readOnly,
    blocked,
  });
}

/** `name`: of the PersistentVolume, or of the volume in the pod. */
export function resolveNfs(
  { reference: { uid } }: Pod,
  name: string,
  { server, path, readOnly }: NfsSource,
  mountOptions: readonly string[] = [],
): Resolved {
  const spec = { ...nfsVolume(uid, name), source: `${server}:${path}`, mountOptions };
  return { ...PLAIN, spec, specName: name, readOnly };
}

/** A PersistentVolume; `readOnly` is the pod's word. */
export function resolveIscsiVolume(
  sources: Sources,
  pod: Pod,
  { volume, source, readOnly }: { volume: PersistentVolume; source: IscsiSource; readOnly: boolean },
): Result<Resolved> {
  const { name, mountOptions, accessModes, volumeMode } = volume;
  if (volumeMode === 'Block') {
    const message = `PersistentVolume ${name}: iSCSI volumes with volumeMode Block are not supported yet`;
    return refuse('kind-unsupported', message);
  }
  const wrong = wrongNode(sources, volume);
  const resolved = resolveIscsi(sources, pod, { source, name, mountOptions, accessModes });
  return ok({
    ...resolved,
    readOnly: readOnly || source.readOnly,
    blocked: wrong ?? resolved.blocked,
  });
}

interface NamedIscsi extends Partial<Pick<PersistentVolume, 'mountOptions' | 'accessModes'>> {
  readonly source: IscsiSource;
  /** The PersistentVolume's, or the volume's in the pod. */
  readonly name: string;
}

export function resolveIscsi(
  { desired }: Sources,
  { reference: { namespace } }: Pod,
  { source, name, mountOptions = [], accessModes = [] }: NamedIscsi,
): Resolved {
  const { portal, portals, iqn, lun, iface, fsType, readOnly, chap, secret } = source;
  const place = { portal, iqn, lun, iface };
  const id = iscsiVolumeId(place);
  const spec = {
    kind: 'iscsi',
    id,
    ...place,
    portals,
    fsType,
    mountOptions,
    readOnly,
    chap,
    accessModes,
  } as const;
  const resolved = { ...PLAIN, spec, specName: name, readOnly };
  if (secret === undefined || (!chap.discovery && !chap.session)) return resolved;
  const whose = { ...secret, namespace: secret.namespace === '' ? namespace : secret.namespace };
  const data = resolveSecret(desired, whose);
  if (!data.ok) return { ...resolved, blocked: data.failure };
  const key = objectKey(whose);
  const problem = chapProblem(chap, data.value?.reveal() ?? {});
  if (problem !== undefined)
    return { ...resolved, blocked: refuse('spec-invalid', `Secret ${key}: ${problem}`, key).failure };
  return { ...resolved, secrets: { ...NO_SECRETS, stage: data.value } };
}

const HOSTNAME = 'kubernetes.io/hostname';
const NODE_NAME = 'metadata.name';

/**
 * `wrong-topology` when none of the terms of its nodeAffinity holds (Kubernetes: CheckNodeAffinity). Without a Node
 * object only the node's name is known here, as its hostname too: what is asked of other labels is not judged then.
 */
function wrongNode(
  { desired, options: { nodeName } }: Sources,
  { name, reachableFrom }: PersistentVolume,
): Failure | undefined {
  if (reachableFrom === undefined) return undefined;
  const node = desired.nodes.get(nodeName);
  const labels = new Map([
    [HOSTNAME, nodeName],
    ...Object.entries(node?.labels ?? {}),
    [NODE_NAME, nodeName],
  ]);
  const broken = brokenRules(
    reachableFrom,
    (rule) => (node === undefined && !labels.has(rule.key)) || isTrueOf(rule, labels.get(rule.key)),
  );
  if (broken === undefined) return undefined;
  const [rule] = broken;
  const here = labels.get(rule?.key ?? '') ?? 'nothing';
  const message =
    `PersistentVolume ${name} is not of this node: its nodeAffinity ${wordsOf(rule)}, ` +
    `and node ${nodeName} has ${here}`;
  return refuse('wrong-topology', message, nodeName).failure;
}
