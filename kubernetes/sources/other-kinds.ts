/** Sources of volumes that are not set up here, by their fields, and what people use instead. */

/**
 * What took the place of the in-tree plugins that the kubelet dropped, in the words after "use". The drivers' names are
 * those of the CSI migration (k8s.io/csi-translation-lib) and, for those that were never migrated, of their vendors.
 */
const INSTEAD = {
  awsElasticBlockStore: csiDriver('ebs.csi.aws.com'),
  azureDisk: csiDriver('disk.csi.azure.com'),
  azureFile: csiDriver('file.csi.azure.com'),
  cephfs: csiDriver('cephfs.csi.ceph.com'),
  cinder: csiDriver('cinder.csi.openstack.org'),
  flexVolume: 'the CSI driver of whoever made the FlexVolume driver',
  flocker: 'another storage with a CSI driver: Flocker has ended',
  gcePersistentDisk: csiDriver('pd.csi.storage.gke.io'),
  gitRepo: 'an emptyDir, and an init container that clones the repository into it',
  glusterfs: `${csiDriver('kadalu')}, or nfs: GlusterFS has no driver of its own any more`,
  photonPersistentDisk: 'another storage with a CSI driver: Photon Controller has ended',
  portworxVolume: csiDriver('pxd.portworx.com'),
  quobyte: csiDriver('csi.quobyte.com'),
  rbd: csiDriver('rbd.csi.ceph.com'),
  scaleIO: csiDriver('csi-vxflexos.dellemc.com'),
  storageos: 'another storage with a CSI driver: StorageOS has ended',
  vsphereVolume: csiDriver('csi.vsphere.vmware.com'),
} as const;

/** Kubernetes still has it, and this program does not. */
const NOT_YET = ['fc'] as const;

/** The fields of all of them, of a pod's volume as of a PersistentVolume. */
export const OTHER_KINDS: readonly string[] = [...Object.keys(INSTEAD), ...NOT_YET];

function csiDriver(name: string): string {
  return `the CSI driver ${name}`;
}

/** Why there is no such volume here, for people: `what` is the field of the source, or words for it. */
export function whyUnsupported(what: string): string {
  const instead = Object.hasOwn(INSTEAD, what) ? INSTEAD[what as keyof typeof INSTEAD] : undefined;
  if (instead === undefined) return `volumes of kind ${what} are not supported`;
  return `volumes of kind ${what} are gone from Kubernetes: use ${instead}`;
}
