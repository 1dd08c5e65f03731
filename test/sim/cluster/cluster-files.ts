/**
 * What the user of a cluster applies, under the names of the files that hold the same for a node without one. Objects
 * go to the API server, and pods that are not wanted any more go the way that pods go.
 */
import { CLAIM_PROTECTION } from '../../../kubernetes/fields/protection.ts';
import { at, isMapping, type Json, metadataOf, nameOf, uidOf } from './json-object.ts';
import { type ManifestFile, WishFiles } from '../manifest-files.ts';
import { NODE_NAME } from '../manifests.ts';
import { CLAIMS, collectionOf, PODS } from './cluster-objects.ts';
import type { ObjectStore } from './object-store.ts';

export interface ClusterFilesParts {
  readonly store: ObjectStore;
  /** A pod is not wanted any more: what becomes of its object, and of what is its own. */
  readonly onUnwanted: (pod: Json, own: readonly Json[]) => void;
}

export class ClusterFiles extends WishFiles {
  readonly #parts: ClusterFilesParts;
  /** What each file has applied. */
  readonly #applied = new Map<string, readonly Json[]>();

  /** Claims that were deleted, as they were last: whoever makes one anew finds the same volume. */
  readonly #lost = new Map<string, Json>();

  constructor(parts: ClusterFilesParts) {
    super();
    this.#parts = parts;
    parts.store.onChange(({ collection, before, after }) => {
      if (collection === CLAIMS && before !== undefined && after === undefined)
        this.#lost.set(nameOf(before), before);
    });
  }

  /** A server has no directory that somebody could replace. */
  putOutOfReach(): void {}
  comeInReach(): void {}

  /** Nor are its objects in files. */
  take(): boolean {
    return false;
  }

  write({ name, objects, state }: ManifestFile): void {
    const before = this.#applied.get(name) ?? [];
    const after = state === 'gone' ? [] : inOrder(objects() as readonly Json[]);
    this.#applied.set(name, after);
    const pod = before.find(({ kind }) => kind === 'Pod');
    const isSame =
      pod !== undefined && after.some((one) => one['kind'] === 'Pod' && uidOf(one) === uidOf(pod));
    if (pod !== undefined && !isSame) {
      const own = before.filter((one) => one !== pod && !after.some((other) => isSameObject(one, other)));
      this.#parts.onUnwanted(pod, own);
      // The name of a pod is free when it has gone.
      if (after.length > 0) this.#parts.store.remove(PODS, nameOf(pod));
    }
    for (const object of after) this.#apply(object);
  }

  #apply(object: Json): void {
    const { store } = this.#parts;
    const collection = collectionOf(object);
    const there = store.get(collection, nameOf(object));
    const { uid } = metadataOf(object);
    if (there !== undefined && uid !== undefined && uid !== uidOf(there))
      store.remove(collection, nameOf(object));
    this.#letGo(collection, nameOf(object), uid);
    if (store.get(collection, nameOf(object)) === undefined) this.#create(collection, object);
    else if (there !== undefined)
      store.replace(collection, { ...there, ...object, ...statusOf(there), metadata: merged(there, object) });
  }

  /** A claim of another pod of that name, which has gone, may still be held back: whoever comes waits for its end. */
  #letGo(collection: string, name: string, uid: unknown): void {
    const { store } = this.#parts;
    const left = store.get(collection, name);
    if (left === undefined || uid === undefined || uid === uidOf(left)) return;
    store.replace(collection, { ...left, metadata: { ...metadataOf(left), finalizers: [] } });
  }

  /** A claim that was there before has the volume that it had. */
  #create(collection: string, object: Json): void {
    const lost = this.#lost.get(nameOf(object));
    const isSame = collection === CLAIMS && lost !== undefined && uidOf(lost) === uidOf(object);
    this.#parts.store.create(collection, isSame ? { ...object, ...statusOf(lost) } : object);
  }

  /** What is applied still, and somebody has deleted. */
  applyAgain(collection: string, name: string): void {
    if (this.#parts.store.get(collection, name) !== undefined) return;
    const all = [...this.#applied.values()].flat();
    const object = all.find((one) => collectionOf(one) === collection && nameOf(one) === name);
    if (object !== undefined) this.#create(collection, object);
  }

  /** The claims that are applied, by name. */
  claims(): readonly string[] {
    const all = [...this.#applied.values()].flat();
    return all.filter((one) => collectionOf(one) === CLAIMS).map(nameOf);
  }
}

/** It is nobody's to apply. */
function statusOf({ status }: Json): Json {
  return status === undefined ? {} : { status };
}

/** Finalizers are made with the object, and never come back. */
function merged(there: Json, object: Json): Json {
  const { finalizers } = metadataOf(there);
  return { ...metadataOf(there), ...metadataOf(object), ...(finalizers === undefined ? {} : { finalizers }) };
}

function isSameObject(a: Json, b: Json): boolean {
  return a['kind'] === b['kind'] && nameOf(a) === nameOf(b);
}

/** What a pod names is there before it. */
function inOrder(objects: readonly Json[]): readonly Json[] {
  const shaped = objects.map(asInServer);
  return [...shaped.filter(({ kind }) => kind !== 'Pod'), ...shaped.filter(({ kind }) => kind === 'Pod')];
}

/** As an API server has what a manifest says: pods are bound, claims too, and secrets are encoded. */
function asInServer(object: Json): Json {
  const spec = object['spec'] as Json;
  switch (object['kind']) {
    case 'Pod':
      return { ...object, spec: { ...spec, nodeName: NODE_NAME }, status: { phase: 'Pending' } };
    case 'Secret': {
      const { stringData, ...rest } = object;
      const entries = Object.entries(stringData as Readonly<Record<string, string>>);
      const data = Object.fromEntries(
        entries.map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
      );
      return { ...rest, data };
    }
    case 'PersistentVolumeClaim': {
      const annotations = { 'pv.kubernetes.io/bind-completed': 'yes' };
      const metadata = {
        ...metadataOf(object),
        uid: claimUid(spec['volumeName']),
        annotations,
        finalizers: [CLAIM_PROTECTION],
      };
      const { storage } = at(spec, 'resources', 'requests');
      return { ...object, status: { capacity: { storage } }, metadata };
    }
    case 'PersistentVolume': {
      const claimRef = { ...(spec['claimRef'] as Json), uid: claimUid(nameOf(object)) };
      const { csi } = spec;
      const source = isMapping(csi) && isOfClass(nameOf(object)) ? { csi: { ...csi, ...OF_CLASS } } : {};
      return { ...object, spec: { ...spec, claimRef, ...source } };
    }
    default:
      return object;
  }
}

/** What some StorageClasses put into their volumes for who attaches them: a secret that no node may read. */
const OF_CLASS = { controllerPublishSecretRef: { namespace: 'vault', name: 'attacher' } };

/** Half of them, by their names: to draw it would change what each seed tells. */
function isOfClass(volumeName: string): boolean {
  return Number(volumeName.at(-1)) % 2 === 0;
}

/** Each volume has one claim. */
function claimUid(volumeName: unknown): string {
  return `claim-of-${String(volumeName)}`;
}
