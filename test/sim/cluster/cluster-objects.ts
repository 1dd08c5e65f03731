/** What the objects of the store say together: which pods this node has, what they lead to, what is to be attached. */
import { attachmentNameOf } from '../../../kubernetes/objects/attachment-name.ts';
import { csiVolumeId } from '../../../plugins/volume.ts';
import { NAMESPACE, NODE_NAME } from '../manifests.ts';
import { at, isMapping, type Json, metadataOf, nameOf, textsOf } from './json-object.ts';
import type { ObjectStore } from './object-store.ts';

const CORE = '/api/v1';
const STORAGE = '/apis/storage.k8s.io/v1';
const IN_NAMESPACE = `${CORE}/namespaces/${NAMESPACE}`;
export const PODS = `${IN_NAMESPACE}/pods`;
export const CLAIMS = `${IN_NAMESPACE}/persistentvolumeclaims`;
export const VOLUMES = `${CORE}/persistentvolumes`;
export const NODES = `${CORE}/nodes`;
export const ATTACHMENTS = `${STORAGE}/volumeattachments`;
export const CSI_NODES = `${STORAGE}/csinodes`;
export const ACCOUNTS = `${IN_NAMESPACE}/serviceaccounts`;

const COLLECTIONS: Readonly<Record<string, string>> = {
  Pod: PODS,
  PersistentVolumeClaim: CLAIMS,
  PersistentVolume: VOLUMES,
  Secret: `${IN_NAMESPACE}/secrets`,
  ConfigMap: `${IN_NAMESPACE}/configmaps`,
  CSIDriver: `${STORAGE}/csidrivers`,
  Node: NODES,
};

/** Throws for a kind that this cluster does not have. */
export function collectionOf({ kind }: Json): string {
  const found = COLLECTIONS[String(kind)];
  if (found === undefined) throw new Error(`broken invariant: nobody makes a ${String(kind)}`);
  return found;
}

/** A volume that is to be attached to this node. */
export interface WantedVolume {
  readonly driver: string;
  readonly handle: string;
  readonly specName: string;
  readonly unique: string;
  /** The name of its VolumeAttachment. */
  readonly attachment: string;
}

/** Its containers have ended, as far as the object says: nobody needs its volumes any more. */
export function isOver(pod: Json): boolean {
  const { phase, containerStatuses } = at(pod, 'status');
  if (phase === 'Succeeded' || phase === 'Failed') return true;
  const all = Array.isArray(containerStatuses) ? containerStatuses : [];
  const haveEnded = all.length > 0 && all.every((one) => isMapping(at(one, 'state')['terminated']));
  return metadataOf(pod)['deletionTimestamp'] !== undefined && haveEnded;
}

export class ClusterObjectsView {
  readonly #store: ObjectStore;
  /** Volumes that may be gone by now: whoever attached one still knows what it was. */
  readonly #known = new Map<string, Json>();

  constructor(store: ObjectStore) {
    this.#store = store;
    store.onChange(({ collection, after }) => {
      if (collection === VOLUMES && after !== undefined) this.#known.set(nameOf(after), after);
    });
  }

  podsHere(): readonly Json[] {
    const pods = this.#store.list(PODS).map(([, pod]) => pod);
    return pods.filter((pod) => at(pod, 'spec')['nodeName'] === NODE_NAME);
  }

  /** By their unique names: what pods here need and have not done with. */
  wantedVolumes(): ReadonlyMap<string, WantedVolume> {
    const wanted = new Map<string, WantedVolume>();
    for (const pod of this.podsHere().filter((one) => !isOver(one)))
      for (const claim of claimsOf(pod)) {
        const volume = this.#volumeOfClaim(claim);
        const found = volume === undefined ? undefined : this.#wantedOf(volume);
        if (found !== undefined) wanted.set(found.unique, found);
      }
    return wanted;
  }

  volumeOfAttachment(attachment: Json): WantedVolume | undefined {
    const name = at(attachment, 'spec', 'source')['persistentVolumeName'];
    const known = this.#known.get(String(name));
    return known === undefined ? undefined : this.#wantedOf(known);
  }

  /** Does a pod of this node lead there? By the graph of the Node authorizer. */
  leadsTo(resource: string, name: string): boolean {
    const pods = this.podsHere();
    const claims = pods.flatMap(claimsOf);
    if (resource === 'persistentvolumeclaims') return claims.includes(name);
    const volumes = claims.map((claim) => this.#volumeOfClaim(claim)).filter((one) => one !== undefined);
    if (resource === 'persistentvolumes') return volumes.some((volume) => nameOf(volume) === name);
    if (resource === 'secrets')
      return [...pods.flatMap(secretsOf), ...volumes.flatMap(secretsOfVolume)].includes(name);
    return pods.flatMap(mapsOf).includes(name);
  }

  #volumeOfClaim(claim: string): Json | undefined {
    const { volumeName } = at(this.#store.get(CLAIMS, claim), 'spec');
    return typeof volumeName === 'string' ? this.#store.get(VOLUMES, volumeName) : undefined;
  }

  /** Undefined for one that needs no attachment. */
  #wantedOf(volume: Json): WantedVolume | undefined {
    const { driver, volumeHandle } = at(volume, 'spec', 'csi');
    if (driver === undefined) return undefined;
    const described = this.#store.get(`${STORAGE}/csidrivers`, String(driver));
    if (at(described, 'spec')['attachRequired'] === false) return undefined;
    const handle = { driver: String(driver), volumeHandle: String(volumeHandle) };
    return {
      driver: handle.driver,
      handle: handle.volumeHandle,
      specName: nameOf(volume),
      unique: csiVolumeId(handle.driver, handle.volumeHandle),
      attachment: attachmentNameOf(handle, NODE_NAME),
    };
  }
}

function volumesOf(pod: Json): readonly Json[] {
  const { volumes } = at(pod, 'spec');
  return Array.isArray(volumes) ? volumes.filter(isMapping) : [];
}

/** By name. */
export function claimsOf(pod: Json): readonly string[] {
  return volumesOf(pod).flatMap((volume) => {
    if (isMapping(volume['ephemeral'])) return [`${nameOf(pod)}-${String(volume['name'])}`];
    return textsOf([at(volume, 'persistentVolumeClaim')['claimName']]);
  });
}

function secretsOf(pod: Json): readonly string[] {
  return volumesOf(pod).flatMap((volume) =>
    textsOf([
      at(volume, 'secret')['secretName'],
      at(volume, 'csi', 'nodePublishSecretRef')['name'],
      at(volume, 'iscsi', 'secretRef')['name'],
      ...projected(volume, 'secret'),
    ]),
  );
}

function mapsOf(pod: Json): readonly string[] {
  return volumesOf(pod).flatMap((volume) =>
    textsOf([at(volume, 'configMap')['name'], ...projected(volume, 'configMap')]),
  );
}

function projected(volume: Json, kind: string): readonly unknown[] {
  const { sources } = at(volume, 'projected');
  return Array.isArray(sources) ? sources.map((one) => at(one, kind)['name']) : [];
}

function secretsOfVolume(volume: Json): readonly string[] {
  const { nodeStageSecretRef, nodePublishSecretRef } = at(volume, 'spec', 'csi');
  const ofIscsi = at(volume, 'spec', 'iscsi', 'secretRef')['name'];
  return textsOf([at(nodeStageSecretRef)['name'], at(nodePublishSecretRef)['name'], ofIscsi]);
}
