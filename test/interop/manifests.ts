/** Plain Kubernetes YAML for the tests with drivers nobody here wrote. */

export interface VolumeFacts {
  readonly driver: string;
  readonly handle: string;
  readonly name: string;
  readonly mode?: 'Filesystem' | 'Block';
  readonly fsType?: string;
  readonly capacity?: string;
  /** Lines of the `csi` source, as `key: value`. */
  readonly csi?: readonly string[];
  /** Lines of the PersistentVolume's spec. */
  readonly spec?: readonly string[];
  readonly accessMode?: string;
}

export function volumeAndClaim(facts: VolumeFacts): string {
  const {
    driver,
    handle,
    name,
    mode = 'Filesystem',
    fsType,
    capacity = '1Gi',
    accessMode = 'ReadWriteOnce',
  } = facts;
  const csi = [...(fsType === undefined ? [] : [`fsType: ${fsType}`]), ...(facts.csi ?? [])];
  return `apiVersion: v1
kind: PersistentVolume
metadata: { name: ${name} }
spec:
  capacity: { storage: ${capacity} }
  accessModes: [${accessMode}]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: ""
  volumeMode: ${mode}
  claimRef: { namespace: default, name: ${name} }
${(facts.spec ?? []).map((line) => `  ${line}\n`).join('')}  csi:
    driver: ${driver}
    volumeHandle: "${handle}"
${csi.map((line) => `    ${line}\n`).join('')}---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: ${name}, namespace: default }
spec:
  accessModes: [${accessMode}]
  storageClassName: ""
  volumeMode: ${mode}
  volumeName: ${name}
  resources: { requests: { storage: ${capacity} } }
`;
}

export function pod(name: string, uid: string, claim: string, readOnly = false): string {
  return podWith(
    name,
    uid,
    `persistentVolumeClaim: { claimName: ${claim}, readOnly: ${readOnly} }`,
    'volumeMounts',
  );
}

/** `source`: the volume's source in flow style. */
export function podWith(
  name: string,
  uid: string,
  source: string,
  use: 'volumeMounts' | 'volumeDevices' = 'volumeMounts',
): string {
  const used =
    use === 'volumeMounts' ? '{ name: data, mountPath: /data }' : '{ name: data, devicePath: /dev/data }';
  return `apiVersion: v1
kind: Pod
metadata: { name: ${name}, namespace: default, uid: ${uid} }
spec:
  containers:
    - name: one
      image: one:1
      ${use}: [${used}]
  volumes:
    - name: data
      ${source}
`;
}

export function csiDriver(name: string, ...spec: readonly string[]): string {
  const lines = spec.map((line) => `  ${line}\n`).join('');
  return `apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: { name: ${name} }\nspec:\n${lines}`;
}

export function documents(...parts: readonly string[]): string {
  return parts.join('---\n');
}
