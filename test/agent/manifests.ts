/** Builders of manifests: what a person would have written. */
import { wholly } from '../../mount/process/slices.ts';
import type { fail, Result } from '../../mount/failure.ts';
import { type AbsolutePath, parseAbsolutePath } from '../../mount/host.ts';
import { Sensitive } from '../../plugins/secret/sensitive.ts';
import { parsePodUid, type PodUid } from '../../plugins/volume.ts';
import { DEFAULT_MANIFEST_LIMITS } from '../../agent/source/manifests/parse/manifest-limits.ts';
import { observe } from '../../agent/source/manifests/manifest-file.ts';
import { readManifestFile } from '../../agent/source/manifests/parse/manifest-reading.ts';
import {
  assembleDesiredObjects,
  createAssembly,
  type DesiredObjects,
} from '../../agent/source/desired-objects.ts';
import type { SourcePart } from '../../agent/source/objects-source.ts';

export function podUid(text: string): PodUid {
  const uid = parsePodUid(text);
  if (uid === undefined) throw new Error(`not a pod uid: ${text}`);
  return uid;
}

export function path(text: string): AbsolutePath {
  const parsed = parseAbsolutePath(text);
  if (parsed === undefined) throw new Error(`not a path: ${text}`);
  return parsed;
}

/** A pod that mounts every one of its volumes; `volumes` by name, each the source as written below the name. */
export function podYaml(
  name: string,
  volumes: Readonly<Record<string, string>> = {},
  uid = `uid-${name}`,
): string {
  const names = Object.keys(volumes);
  const mounts = names.map((one) => `    - {name: ${one}, mountPath: /mnt/${one}}\n`).join('');
  const sources = names.map((one) => `  - name: ${one}\n    ${volumes[one]}\n`).join('');
  return `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
${uid === '' ? '' : `  uid: ${uid}\n`}spec:
  containers:
  - name: main
${mounts === '' ? '' : `    volumeMounts:\n${mounts}`}${sources === '' ? '' : `  volumes:\n${sources}`}`;
}

/** The same pod with one more line of spec, in flow style. */
export function withSpec(pod: string, line: string): string {
  return `${pod}  ${line}\n`;
}

/** The same pod, with its volumes as raw devices. */
export function withDevices(pod: string): string {
  return pod.replace('volumeMounts', 'volumeDevices').replaceAll('mountPath', 'devicePath');
}

export function claimSource(claimName: string, readOnly = false): string {
  return `persistentVolumeClaim: {claimName: ${claimName}, readOnly: ${readOnly}}`;
}

export function claimYaml(
  name: string,
  spec = `{volumeName: pv-${name}}`,
  metadata = '',
  status = '',
): string {
  return `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: ${name}, ${metadata}}
spec: ${spec}
${status === '' ? '' : `status: ${status}\n`}`;
}

export interface VolumeParts {
  readonly handle?: string;
  /** More lines of spec, in flow style. */
  readonly spec?: string;
  /** More lines of spec.csi, in flow style. */
  readonly csi?: string;
  readonly accessModes?: string;
  /** More lines of metadata, in flow style. */
  readonly metadata?: string;
}

export function volumeYaml(
  name: string,
  {
    handle = `handle-${name}`,
    spec = '',
    csi = '',
    accessModes = 'ReadWriteOnce',
    metadata = '',
  }: VolumeParts = {},
): string {
  return `apiVersion: v1
kind: PersistentVolume
metadata: {name: ${name}, ${metadata}}
spec: {accessModes: [${accessModes}], csi: {driver: test.csi.example, volumeHandle: "${handle}", ${csi}}, ${spec}}
`;
}

export function csiDriverYaml(name: string, spec: string): string {
  return `apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: ${name}}\nspec: ${spec}\n`;
}

export function nodeYaml(name: string, taints: string): string {
  return `apiVersion: v1\nkind: Node\nmetadata: {name: ${name}}\nspec: {taints: ${taints}}\n`;
}

export interface AttachmentParts {
  readonly volume?: string;
  readonly attacher?: string;
  readonly node?: string;
  readonly metadata?: string;
  readonly source?: string;
}

/** For `volumeYaml`, on the node of `STAND_ALONE`, the source in flow style. */
export function attachmentYaml(
  name: string,
  status: string,
  {
    volume = 'pv-data',
    attacher = 'test.csi.example',
    node = 'node-1',
    metadata = '',
    source = `persistentVolumeName: ${volume}`,
  }: AttachmentParts = {},
): string {
  return `apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: ${name}, ${metadata}}
spec: {attacher: ${attacher}, nodeName: ${node}, source: {${source}}}
${status === '' ? '' : `status: ${status}\n`}`;
}

export function secretYaml(name: string, stringData: Readonly<Record<string, string>>): string {
  const lines = Object.entries(stringData)
    .map(([key, value]) => `  ${key}: ${JSON.stringify(value)}\n`)
    .join('');
  return `apiVersion: v1\nkind: Secret\nmetadata: {name: ${name}}\nstringData:\n${lines}`;
}

export function configMapYaml(name: string, data: Readonly<Record<string, string>>): string {
  const lines = Object.entries(data)
    .map(([key, value]) => `  ${key}: ${JSON.stringify(value)}\n`)
    .join('');
  return `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\ndata:\n${lines}`;
}

/** What these files say, each believed at once; made anew for each call. */
export function partsOf(files: Readonly<Record<string, string>>): readonly SourcePart[] {
  return Object.entries(files).map(([name, text]) => {
    const bytes = Buffer.from(text);
    const reading = readManifestFile(name, bytes, DEFAULT_MANIFEST_LIMITS);
    const look = { kind: 'content', bytes: new Sensitive(bytes), digest: text, reading } as const;
    const listing = {
      nowMs: 0,
      beganMs: 0,
      settleMs: 0,
      readingSinceMs: Number.POSITIVE_INFINITY,
    };
    return observe(name, undefined, look, listing).part;
  });
}

/** The wish of a directory with these files. */
export function wishOf(files: Readonly<Record<string, string>>): DesiredObjects {
  const reading = { name: 'manifests', complete: true, parts: partsOf(files) };
  return wholly(assembleDesiredObjects([reading], createAssembly(0)));
}

/** The only rejection, as `field: message`; fails when there is none or more than one. */
export function onlyRejection(wish: DesiredObjects): string {
  const [first, ...others] = wish.rejected;
  if (first === undefined || others.length > 0) {
    throw new Error(`expected one rejection, found ${JSON.stringify(wish.rejected)}`);
  }
  return `${first.field ?? ''}: ${first.message}`;
}

export function failed(result: Result<unknown>): ReturnType<typeof fail>['failure'] {
  if (result.ok) throw new Error(`expected a failure, found ${JSON.stringify(result.value).slice(0, 200)}`);
  return result.failure;
}
