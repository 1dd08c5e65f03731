/**
 * What an API server does with objects, in memory: one line of versions, lists and watches by field selector, rights
 * that are taken away, a history that is cut off. Whoever serves it says how an answer travels.
 */
import { at, type Json, jsonPatch, mergePatch } from '../../sim/cluster/json-object.ts';

export type { Json } from '../../sim/cluster/json-object.ts';

export interface StoredAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly retryAfter?: string;
}

export interface Watching {
  readonly line: (event: unknown) => void;
  readonly ended: () => void;
}

interface Change {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly collection: string;
  readonly object: Json;
}

interface Watch extends Watching {
  readonly collection: string;
  readonly query: URLSearchParams;
  /** Nothing up to this version is told. */
  readonly after: number;
}

const NODE_NAMES: Readonly<Record<string, (object: Json) => string>> = {
  'metadata.name': (object) => metadataOf(object)['name'] as string,
  'spec.nodeName': (object) => ((object['spec'] ?? {}) as Json)['nodeName'] as string,
};

export class ApiStore {
  /** Paths beginning so are 403. */
  readonly denied = new Set<string>();
  /** Asked before each answer: another one in its place. */
  instead: (method: string, path: string, body: Json) => StoredAnswer | undefined = () => undefined;
  /** All that was asked: `GET /api/v1/pods?…`. */
  readonly asked: string[] = [];
  pageObjectsMax = 1_000;
  /** Watches are told nothing: somebody between holds their lines back. */
  isMute = false;
  #version = 100;
  #oldest = 0;
  #uids = 0;
  readonly #objects = new Map<string, Json>();
  readonly #history: Change[] = [];
  readonly #watches = new Set<Watch>();

  /**
   * `path`: of the collection, as `/api/v1/namespaces/default/pods`. The answer: the object as it is stored; a Node has
   * a status, always.
   */
  put(path: string, object: Json): Json {
    const metadata = metadataOf(object);
    const key = `${path}/${String(metadata['name'])}`;
    const before = this.#objects.get(key);
    this.#version += 1;
    this.#uids += 1;
    const uid = (before && metadataOf(before)['uid']) ?? metadata['uid'] ?? `uid-${this.#uids}`;
    const stored = {
      ...(path.endsWith('/nodes') ? { status: {} } : {}),
      ...object,
      metadata: { ...metadata, uid, resourceVersion: `${this.#version}` },
    };
    this.#objects.set(key, stored);
    this.#tell({
      version: this.#version,
      type: before === undefined ? 'ADDED' : 'MODIFIED',
      collection: path,
      object: stored,
    });
    return stored;
  }

  /** Others make so many versions. */
  age(versions: number): void {
    for (let made = 0; made < versions; made += 1)
      this.put('/api/v1/namespaces/default/pods', { metadata: { name: 'busy' } });
  }

  remove(path: string, name: string): void {
    const key = `${path}/${name}`;
    const before = this.#objects.get(key);
    if (before === undefined) return;
    this.#objects.delete(key);
    this.#version += 1;
    const object = { ...before, metadata: { ...metadataOf(before), resourceVersion: `${this.#version}` } };
    this.#tell({ version: this.#version, type: 'DELETED', collection: path, object });
  }

  /** What was before is known no more: watches that would need it are `expired`. Open ones are told so. */
  compact(): void {
    this.#oldest = this.#version;
    this.#history.splice(0);
    for (const watch of [...this.#watches]) {
      watch.line({
        type: 'ERROR',
        object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' },
      });
      this.#end(watch);
    }
  }

  /**
   * The state and the versions of a backup: `forget` says which objects are lost. A watch that is opened at a version
   * that the server has yet to come to is taken, and told nothing until then; those that are open go on.
   */
  restore(version: number, forget: (name: string) => boolean): void {
    this.#version = version;
    this.#history.splice(0);
    for (const [key, object] of this.#objects) {
      const metadata = metadataOf(object);
      const isLater = Number(metadata['resourceVersion']) > version;
      if (forget(String(metadata['name']))) this.#objects.delete(key);
      else if (isLater)
        this.#objects.set(key, { ...object, metadata: { ...metadata, resourceVersion: `${version}` } });
    }
  }

  version(): number {
    return this.#version;
  }

  /** A minute has passed. */
  bookmark(): void {
    for (const { line, after } of this.#watches)
      if (after <= this.#version)
        line({ type: 'BOOKMARK', object: { metadata: { resourceVersion: `${this.#version}` } } });
  }

  endWatches(): void {
    for (const watch of [...this.#watches]) this.#end(watch);
  }

  watches(): number {
    return this.#watches.size;
  }

  answer(method: string, target: string, body: Json = {}): StoredAnswer {
    this.asked.push(`${method} ${target}`);
    const { pathname, searchParams } = new URL(target, 'https://server');
    const other = this.instead(method, target, body);
    if (other !== undefined) return other;
    if ([...this.denied].some((one) => pathname.startsWith(one)))
      return refusal(403, `${pathname} is forbidden`);
    if (method === 'PATCH') return this.#patch(pathname, body);
    if (method === 'POST' && pathname.endsWith('/token'))
      return { status: 201, body: this.#token(pathname, body) };
    if (method === 'POST') return this.#create(pathname, body);
    if (method === 'DELETE') return this.#delete(pathname, body);
    const object = this.#objects.get(decodeURIComponent(pathname));
    if (object !== undefined) return { status: 200, body: object };
    if (!COLLECTION.test(pathname)) return refusal(404, `${pathname} not found`);
    const all = this.#matching(pathname, searchParams);
    const from = Number(searchParams.get('continue') ?? 0);
    const size = Math.min(Number(searchParams.get('limit') ?? this.pageObjectsMax), this.pageObjectsMax);
    const rest = from + size < all.length ? { continue: `${from + size}` } : {};
    const items = all.slice(from, from + size).map(({ kind: _, apiVersion: __, ...one }) => one);
    return {
      status: 200,
      body: { kind: 'List', metadata: { resourceVersion: `${this.#version}`, ...rest }, items },
    };
  }

  /** The answer: why it is refused, or how to end it. */
  watch(target: string, watching: Watching): StoredAnswer | (() => void) {
    this.asked.push(`WATCH ${target}`);
    const { pathname, searchParams } = new URL(target, 'https://server');
    const other = this.instead('WATCH', target, {});
    if (other !== undefined) return other;
    if ([...this.denied].some((one) => pathname.startsWith(one)))
      return refusal(403, `${pathname} is forbidden`);
    const from = Number(searchParams.get('resourceVersion'));
    if (from < this.#oldest) return refusal(410, 'too old resource version');
    const after = from > this.#version ? from : 0;
    const watch = { collection: pathname, query: searchParams, after, ...watching };
    this.#watches.add(watch);
    for (const change of this.#history.filter(({ version }) => version > from)) this.#tellOne(watch, change);
    return () => this.#watches.delete(watch);
  }

  get(path: string, name: string): Json | undefined {
    return this.#objects.get(`${path}/${name}`);
  }

  #patch(pathname: string, patch: unknown): StoredAnswer {
    const key = decodeURIComponent(pathname).replace(/\/status$/, '');
    const before = this.#objects.get(key);
    if (before === undefined) return refusal(404, `${pathname} not found`);
    const { uid, resourceVersion } = at(patch, 'metadata');
    const now = metadataOf(before);
    if (uid !== undefined && uid !== now['uid']) return refusal(409, 'the uid is another one');
    if (resourceVersion !== undefined && resourceVersion !== now['resourceVersion'])
      return refusal(409, 'the object has been modified');
    const merged = Array.isArray(patch) ? jsonPatch(before, patch) : (mergePatch(before, patch) as Json);
    if (merged === undefined)
      return refusal(422, 'the patch does not apply: something that it tests is otherwise');
    // What changes nothing makes no version and no event.
    if (JSON.stringify(merged) === JSON.stringify(before)) return { status: 200, body: before };
    return { status: 200, body: this.put(key.slice(0, key.lastIndexOf('/')), merged) };
  }

  #create(pathname: string, object: Json): StoredAnswer {
    const key = `${pathname}/${String(metadataOf(object)['name'])}`;
    if (this.#objects.has(key)) return refusal(409, `${key} already exists`);
    return { status: 201, body: this.put(pathname, object) };
  }

  #delete(pathname: string, options: Json): StoredAnswer {
    const key = decodeURIComponent(pathname);
    const before = this.#objects.get(key);
    if (before === undefined) return refusal(404, `${pathname} not found`);
    const { uid } = (options['preconditions'] ?? {}) as Json;
    if (uid !== undefined && uid !== metadataOf(before)['uid']) return refusal(409, 'the uid is another one');
    const at = key.lastIndexOf('/');
    this.remove(key.slice(0, at), key.slice(at + 1));
    return { status: 200, body: { kind: 'Status' } };
  }

  /** Its life is in the spec, as the server has it: an hour, whatever was asked for. */
  #token(pathname: string, { spec }: Json): Json {
    const expirationTimestamp = new Date(Date.UTC(2026, 0, 1) + 3_600_000)
      .toISOString()
      .replace('.000Z', 'Z');
    this.#version += 1;
    const body = Buffer.from(`${pathname} ${this.#version}`).toString('base64url');
    const granted = { ...(spec as Json), expirationSeconds: 3_600 };
    return {
      kind: 'TokenRequest',
      spec: granted,
      status: { token: `head.${body}.sign`, expirationTimestamp },
    };
  }

  #matching(collection: string, query: URLSearchParams): Json[] {
    return [...this.#objects]
      .filter(
        ([key, object]) => isIn(key.slice(0, key.lastIndexOf('/')), collection) && isSelected(object, query),
      )
      .map(([, object]) => object);
  }

  #tell(change: Change): void {
    this.#history.push(change);
    for (const watch of [...this.#watches]) this.#tellOne(watch, change);
  }

  #tellOne(
    { collection, query, line, after }: Watch,
    { version, type, collection: where, object }: Change,
  ): void {
    if (!this.isMute && version > after && isIn(where, collection) && isSelected(object, query))
      line({ type, object });
  }

  #end(watch: Watch): void {
    this.#watches.delete(watch);
    watch.ended();
  }
}

const COLLECTION = /\/(?:pods|nodes|csidrivers|secrets|configmaps|volumeattachments|csinodes|events)$/;

/** `/api/v1/pods` is of all namespaces. */
function isIn(where: string, collection: string): boolean {
  return where === collection || where.replace(/\/namespaces\/[^/]+/, '') === collection;
}

function isSelected(object: Json, query: URLSearchParams): boolean {
  const [field = '', value] = (query.get('fieldSelector') ?? '').split('=');
  return field === '' || NODE_NAMES[field]?.(object) === value;
}

function metadataOf(object: Json): Json {
  return (object['metadata'] ?? {}) as Json;
}

export function refusal(status: number, message: string): StoredAnswer {
  const reason = status === 404 ? { reason: 'NotFound' } : {};
  return { status, body: { kind: 'Status', status: 'Failure', code: status, message, ...reason } };
}

/** The answer of somebody between us and the server, as a balancer that knows no such path. */
export const NOT_OF_THE_SERVER: StoredAnswer = { status: 404, body: '404 page not found' };
