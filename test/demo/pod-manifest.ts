/** The pod of the demo: one volume of every kind. */
import { basename } from 'node:path';

export const POD = 'web';
export const POD_UID = 'c0ffee00-1f0e-4c5d-9a57-3f1b2d4e6a78';
export const CLAIM = 'shop-data';
/** Not a secret of anybody. */
export const PASSWORD = 'correct horse battery staple';
export const GREETING = 'Welcome aboard.\n';

/** `storage`: PersistentVolume and claim as `mooring-loopfile create --yaml` prints them. */
export function podManifest(storage: string, hostDirectory: string): string {
  return `${storage}---
apiVersion: v1
kind: Secret
metadata:
  name: shop-login
stringData:
  password: ${PASSWORD}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: shop-settings
data:
  greeting: |
    ${GREETING.trimEnd()}
---
apiVersion: v1
kind: Pod
metadata:
  name: ${POD}
  uid: ${POD_UID}
spec:
  containers:
    - name: shop
      image: shop:1
      volumeMounts:
        - { name: data, mountPath: /data }
        - { name: login, mountPath: /etc/login, readOnly: true }
        - { name: settings, mountPath: /etc/shop, readOnly: true }
        - { name: work, mountPath: /work }
        - { name: fast, mountPath: /fast }
        - { name: ${basename(hostDirectory)}, mountPath: /srv }
  volumes:
    - name: data
      persistentVolumeClaim: { claimName: ${CLAIM} }
    - name: login
      secret: { secretName: shop-login, defaultMode: 0400 }
    - name: settings
      configMap: { name: shop-settings }
    - name: work
      emptyDir: {}
    - name: fast
      emptyDir: { medium: Memory, sizeLimit: 16Mi }
    - name: ${basename(hostDirectory)}
      hostPath: { path: ${hostDirectory}, type: DirectoryOrCreate }
`;
}
