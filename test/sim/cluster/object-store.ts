/**
 * All objects of a cluster in one line of versions, as etcd has them: every change makes the next version, what changes
 * nothing makes none, and any version is known until the history before it is compacted.
 */
import { isSameJson, type Json, metadataOf, nameOf, textsOf } from './json-object.ts';

export interface Change {
  readonly version: number;
  readonly collection: string;
  /** Undefined when it was created, or was removed. */
  readonly before: Json | undefined;
  readonly after: Json | undefined;
}

const FIRST_VERSION = 100;
const FIRST_WALL_MS = Date.UTC(2026, 0, 1);

export class ObjectStore {
  readonly #nowMs: () => number;
  readonly #objects = new Map<string, Json>();
  readonly #history: Change[] = [];
  readonly #listeners = new Set<(change: Change) => void>();
  #version: number;
  #oldest: number;
  #uids = 0;

  /** `nowMs`: for times of creation and deletion. */
  constructor(nowMs: () => number, firstVersion = FIRST_VERSION) {
    this.#nowMs = nowMs;
    this.#version = firstVersion;
    this.#oldest = firstVersion;
  }

  get version(): number {
    return this.#version;
  }

  /** What came before is not known any more. */
  get oldest(): number {
    return this.#oldest;
  }

  /** `collection`: `/api/v1/namespaces/default/pods`. */
  get(collection: string, name: string): Json | undefined {
    return this.#objects.get(`${collection}/${name}`);
  }

  /** In the order of their keys; `/api/v1/pods` is of all namespaces. `version`: as it was then. */
  list(collection: string, version = this.#version): readonly (readonly [key: string, object: Json])[] {
    const objects = version === this.#version ? this.#objects : this.#objectsAt(version);
    return [...objects]
      .filter(([key]) => isIn(key.slice(0, key.lastIndexOf('/')), collection))
      .sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** After this version, oldest first. */
  since(version: number): readonly Change[] {
    return this.#history.filter((change) => change.version > version);
  }

  /** A uid that it has is kept. There is none of that name. */
  create(collection: string, object: Json): Json {
    const key = `${collection}/${nameOf(object)}`;
    if (this.#objects.has(key)) throw new Error(`broken invariant: there is ${key} already`);
    this.#uids += 1;
    const uid = metadataOf(object)['uid'] ?? `api-uid-${this.#uids}`;
    const creationTimestamp = this.timeText();
    return this.#set(key, undefined, {
      ...object,
      metadata: { ...metadataOf(object), uid, creationTimestamp, generation: 1 },
    });
  }

  /** The answer: as it is afterwards. One that is being deleted goes with its last finalizer. */
  replace(collection: string, object: Json): Json {
    const key = `${collection}/${nameOf(object)}`;
    const before = this.#objects.get(key);
    if (before === undefined) throw new Error(`broken invariant: there is no ${key}`);
    const { uid, creationTimestamp, generation, resourceVersion } = metadataOf(before);
    const isOther = !isSameJson(before['spec'], object['spec']);
    const next = {
      ...object,
      metadata: {
        ...metadataOf(object),
        ...{ uid, creationTimestamp, resourceVersion },
        generation: Number(generation) + (isOther ? 1 : 0),
      },
    };
    if (isSameJson(before, next)) return before;
    const { deletionTimestamp, finalizers } = metadataOf(next);
    const hadFinalizers = textsOf(metadataOf(before)['finalizers']).length > 0;
    const isOver = deletionTimestamp !== undefined && hadFinalizers && textsOf(finalizers).length === 0;
    if (!isOver) return this.#set(key, before, next);
    this.#take(key, before);
    return next;
  }

  /** With finalizers it is only marked. The answer: whether there was one. */
  remove(collection: string, name: string): boolean {
    const key = `${collection}/${name}`;
    const before = this.#objects.get(key);
    if (before === undefined) return false;
    const { finalizers, deletionTimestamp } = metadataOf(before);
    if (textsOf(finalizers).length === 0) this.#take(key, before);
    else if (deletionTimestamp === undefined) this.#set(key, before, this.deleted(before));
    return true;
  }

  /** The same object, with deletion asked for. */
  deleted(object: Json): Json {
    return { ...object, metadata: { ...metadataOf(object), deletionTimestamp: this.timeText() } };
  }

  /** What was before this version is known no more. */
  compact(): void {
    this.#oldest = this.#version;
    this.#history.splice(0);
  }

  /** A backup is restored that has all there is, in versions of before; nobody is told. */
  setBack(byVersions: number): void {
    this.#version -= byVersions;
    this.compact();
    for (const [key, object] of this.#objects) {
      const metadata = metadataOf(object);
      const resourceVersion = `${Math.min(Number(metadata['resourceVersion']), this.#version)}`;
      this.#objects.set(key, { ...object, metadata: { ...metadata, resourceVersion } });
    }
  }

  onChange(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  timeText(afterMs = 0): string {
    return new Date(FIRST_WALL_MS + this.#nowMs() + afterMs).toISOString().replace(/\.\d+Z$/, 'Z');
  }

  #set(key: string, before: Json | undefined, object: Json): Json {
    this.#version += 1;
    const metadata = { ...metadataOf(object), resourceVersion: `${this.#version}` };
    const after = { ...object, metadata };
    this.#objects.set(key, after);
    this.#tell(key, before, after);
    return after;
  }

  #take(key: string, before: Json): void {
    this.#version += 1;
    this.#objects.delete(key);
    this.#tell(key, before, undefined);
  }

  #tell(key: string, before: Json | undefined, after: Json | undefined): void {
    const collection = key.slice(0, key.lastIndexOf('/'));
    const change = { version: this.#version, collection, before, after };
    this.#history.push(change);
    for (const listener of [...this.#listeners]) listener(change);
  }

  #objectsAt(version: number): ReadonlyMap<string, Json> {
    const objects = new Map(this.#objects);
    for (const { collection, before, after } of this.since(version).toReversed()) {
      const key = `${collection}/${nameOf(before ?? after ?? {})}`;
      if (before === undefined) objects.delete(key);
      else objects.set(key, before);
    }
    return objects;
  }
}

/** `/api/v1/pods` is of all namespaces. */
export function isIn(where: string, collection: string): boolean {
  return where === collection || where.replace(/\/namespaces\/[^/]+(?=\/)/, '') === collection;
}
