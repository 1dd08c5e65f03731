/**
 * What a kube-apiserver answers to a node, by the semantics of its API concepts: reads at the versions that they allow,
 * lists in pages of one snapshot, watches, preconditions, parts of objects, rights. How an answer travels, and what is
 * lost on the way, is the transport's.
 */
import type { Random } from '../random.ts';
import type { VirtualTime } from '../virtual-time.ts';
import { type ApiTarget, readTarget } from './api-path.ts';
import { readSelector } from './api-selector.ts';
import { type ApiAnswer, badVersion, expired, invalid, refusal } from './api-answer.ts';
import { createObject, deleteObject, patchObject } from './api-writes.ts';
import type { ApiFaults } from './api-faults.ts';
import type { Json } from './json-object.ts';
import type { ObjectStore } from './object-store.ts';
import type { TokenIssuer } from './token-issuer.ts';
import { WatchStream, type Watching } from './watch-stream.ts';

export interface ApiServerParts {
  readonly store: ObjectStore;
  readonly time: Pick<VirtualTime, 'nowMs' | 'after'>;
  readonly random: Random;
  readonly faults: () => ApiFaults;
  /** Why it is forbidden; undefined: it is allowed. */
  readonly forbids: (verb: Verb, target: ApiTarget) => string | undefined;
  /** Without one there are no service accounts. */
  readonly tokens?: TokenIssuer;
  /** Lists of it are empty for now, by mistake. */
  readonly hides?: (target: ApiTarget) => boolean;
}

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'patch' | 'delete';

const VERBS: Readonly<Record<string, Verb>> = { POST: 'create', PATCH: 'patch', DELETE: 'delete' };
/** A list is consistent, at this version at least, at this one exactly, or as old as it may be. */
const WELL_FORMED = /^(?:0|[1-9]\d{0,17})$/;

export class ApiServer {
  readonly store: ObjectStore;
  readonly #parts: ApiServerParts;
  readonly #watches = new Set<WatchStream>();

  constructor(parts: ApiServerParts) {
    this.#parts = parts;
    this.store = parts.store;
  }

  get watches(): number {
    return this.#watches.size;
  }

  answer(method: string, path: string, body: Json = {}): ApiAnswer {
    const target = readTarget(path);
    if (target === undefined) return refusal(404, 'the server could not find the requested resource');
    const isOne = target.name !== undefined;
    const forbidden = this.#forbidden(VERBS[method] ?? (isOne ? 'get' : 'list'), target);
    if (forbidden !== undefined) return forbidden;
    if (method === 'POST' && target.part === 'token') return this.#issueToken(target, body);
    if (method === 'POST') return createObject(this.store, target, body);
    if (method === 'PATCH') return patchObject(this.store, target, body);
    if (method === 'DELETE') return deleteObject(this.store, target, body);
    return isOne ? this.#get(target) : this.#list(target);
  }

  /** A refusal, or what ends the stream from outside. */
  watch(path: string, watching: Watching): ApiAnswer | (() => void) {
    const target = readTarget(path);
    if (target === undefined) return refusal(404, 'the server could not find the requested resource');
    const selector = readSelector(target);
    const forbidden = this.#forbidden('watch', target);
    if (forbidden !== undefined) return forbidden;
    if (!selector.ok) return refusal(400, selector.message);
    const refused = refusedWatch(target);
    if (refused !== undefined) return refused;
    const { query } = target;
    const version = query.get('resourceVersion') ?? '';
    const isOld = Number(version) > 0 && Number(version) < this.store.oldest;
    const { random } = this.#parts;
    // It tells either by the status of its answer, or by the first event.
    if (isOld && random.chance(0.5)) return expired();
    const stream: WatchStream = new WatchStream({
      ...this.#parts,
      target,
      isSelected: selector.isSelected,
      watching,
      onEnd: () => this.#watches.delete(stream),
    });
    this.#watches.add(stream);
    if (isOld) stream.expire();
    else stream.begin(version);
    return () => stream.drop();
  }

  /** History is cut: watches that have not been told all of it, and lists that are being read, are expired. */
  compact(): void {
    this.store.compact();
    for (const stream of [...this.#watches]) if (stream.isBehind()) stream.expire();
  }

  /** As if they had all been too slow. */
  expireWatches(): void {
    for (const stream of [...this.#watches]) stream.expire();
  }

  /** Connections are lost: nothing more is heard of them, and they end. */
  cutWatches(isMeant: () => boolean = () => true): void {
    for (const stream of [...this.#watches]) if (isMeant()) stream.cut();
  }

  /** In order, as at the end of their time. */
  endWatches(): void {
    for (const stream of [...this.#watches]) stream.end();
  }

  /** What came too late so far comes now. */
  catchUp(): void {
    for (const stream of [...this.#watches]) stream.catchUp();
  }

  #forbidden(verb: Verb, target: ApiTarget): ApiAnswer | undefined {
    const why = this.#parts.forbids(verb, target);
    if (why === undefined) return undefined;
    const { resource, name = '' } = target;
    return refusal(403, `${resource} "${name}" is forbidden: cannot ${verb} resource "${resource}": ${why}`);
  }

  #issueToken({ collection, name = '' }: ApiTarget, body: Json): ApiAnswer {
    const { tokens } = this.#parts;
    const account = this.store.get(collection, name);
    if (account === undefined || tokens === undefined)
      return refusal(404, `serviceaccounts "${name}" not found`);
    return tokens.issue(account, collection.replace(/serviceaccounts$/, 'pods'), body);
  }

  #get({ collection, name = '', query, resource, part }: ApiTarget): ApiAnswer {
    if (part !== '' && part !== 'status') return refusal(404, `the server has no ${resource}/${part}`);
    const at = this.#versionFor(query.get('resourceVersion') ?? '', '');
    if (typeof at !== 'number') return at;
    const found = this.store.list(collection, at).find(([key]) => key === `${collection}/${name}`);
    return found === undefined
      ? refusal(404, `${resource} "${name}" not found`)
      : { status: 200, body: found[1] };
  }

  #list(target: ApiTarget): ApiAnswer {
    const { collection, query, kind, apiVersion } = target;
    const selector = readSelector(target);
    if (!selector.ok) return refusal(400, selector.message);
    const next = readToken(query.get('continue') ?? '');
    if (next === undefined) return refusal(400, 'continue key is not valid');
    const { resourceVersion, resourceVersionMatch } = Object.fromEntries(query);
    const version = next.version ?? this.#versionFor(resourceVersion ?? '', resourceVersionMatch ?? '');
    if (typeof version !== 'number') return version;
    if (version < this.store.oldest && version !== this.store.version) return expired();
    const isHidden = this.#parts.hides?.(target) === true;
    const all = this.store
      .list(collection, version)
      .filter(([key, object]) => !isHidden && key > next.after && selector.isSelected(object));
    const limit = Number(query.get('limit') ?? 0);
    const page = limit > 0 ? all.slice(0, limit) : all;
    const last = page.at(-1)?.[0];
    const left = all.length - page.length;
    const more =
      left === 0 || last === undefined
        ? {}
        : { continue: makeToken(version, last), remainingItemCount: left };
    const items = page.map(([, { kind: _, apiVersion: __, ...item }]) => item);
    return {
      status: 200,
      body: { kind: `${kind}List`, apiVersion, metadata: { resourceVersion: `${version}`, ...more }, items },
    };
  }

  /** At which version it is read: a cache that lags may answer only whoever allows that. */
  #versionFor(asked: string, match: string): number | ApiAnswer {
    const { version, oldest } = this.store;
    if (asked === '') return match === '' ? version : invalid('resourceVersionMatch is forbidden');
    if (!WELL_FORMED.test(asked)) return badVersion(asked);
    if (match === 'Exact') return Number(asked) < oldest ? expired() : Number(asked);
    if (Number(asked) > version) return tooLarge(asked, version);
    const { random, faults } = this.#parts;
    const leastVersion = Math.max(Number(asked), oldest);
    return random.chance(faults().staleRead) ? random.between(leastVersion, version) : version;
  }
}

function tooLarge(asked: string, version: number): ApiAnswer {
  const message = `Too large resource version: ${asked}, current: ${version}`;
  return { ...refusal(504, message), retryAfter: '1' };
}

/** By the query alone. */
function refusedWatch({ query }: ApiTarget): ApiAnswer | undefined {
  const version = query.get('resourceVersion') ?? '';
  if (version !== '' && !WELL_FORMED.test(version)) return badVersion(version);
  const match = query.get('resourceVersionMatch') ?? '';
  if (query.get('sendInitialEvents') !== 'true')
    return match === '' ? undefined : invalid('resourceVersionMatch is forbidden for watch');
  return match === 'NotOlderThan' ? undefined : invalid('sendInitialEvents requires NotOlderThan');
}

interface PageToken {
  /** Undefined on the first page. */
  readonly version: number | undefined;
  /** The key of the last object so far. */
  readonly after: string;
}

function makeToken(version: number, after: string): string {
  return Buffer.from(JSON.stringify({ version, after })).toString('base64url');
}

function readToken(text: string): PageToken | undefined {
  if (text === '') return { version: undefined, after: '' };
  try {
    const token = JSON.parse(Buffer.from(text, 'base64url').toString()) as Partial<PageToken>;
    const { version, after } = token;
    return typeof version === 'number' && typeof after === 'string' ? { version, after } : undefined;
  } catch {
    return undefined;
  }
}
