/** The part that every object of an API server has, and the lists and events that they come in. Pure and total. */
import { isMapping, mappingIn } from '../fields/plain-value.ts';
import { isResourceVersion } from './resource-version.ts';

/** An object as the server sent it, with what tells it from others. */
export interface ApiObjectEnvelope {
  readonly uid: string;
  readonly resourceVersion: string;
  /** The whole object, not read any further. */
  readonly value: Readonly<Record<string, unknown>>;
}

export interface ListPage {
  readonly objects: readonly ApiObjectEnvelope[];
  readonly resourceVersion: string;
  /** Empty on the last page. */
  readonly continueToken: string;
}

export type WatchEvent =
  | { readonly kind: 'changed' | 'deleted'; readonly object: ApiObjectEnvelope }
  | { readonly kind: 'bookmark'; readonly resourceVersion: string }
  | { readonly kind: 'error'; readonly status: number; readonly message: string };

const UID_CHARACTERS_MAX = 256;

/** Undefined when it is not an object of an API server. */
export function readEnvelope(value: unknown): ApiObjectEnvelope | undefined {
  if (!isMapping(value)) return undefined;
  const { uid, resourceVersion } = mappingIn(value['metadata']);
  if (typeof uid !== 'string' || uid === '' || uid.length > UID_CHARACTERS_MAX) return undefined;
  return isResourceVersion(resourceVersion) ? { uid, resourceVersion, value } : undefined;
}

/** Undefined when any part of it cannot be understood: a list with one object less is another list. */
export function readListPage(value: unknown): ListPage | undefined {
  const { metadata, items } = mappingIn(value);
  const { resourceVersion, continue: more } = mappingIn(metadata);
  const continueToken = more ?? '';
  // Go writes an empty list as null.
  if (!Array.isArray(items) && items !== null) return undefined;
  if (!isResourceVersion(resourceVersion) || typeof continueToken !== 'string') return undefined;
  const objects = (items ?? []).map(readEnvelope);
  const whole = objects.filter((one) => one !== undefined);
  return whole.length === objects.length ? { objects: whole, resourceVersion, continueToken } : undefined;
}

/** Undefined for what is not an event of a watch. */
export function readWatchEvent(value: unknown): WatchEvent | undefined {
  const { type, object } = mappingIn(value);
  if (!isMapping(object)) return undefined;
  if (type === 'ERROR') {
    const { code, message } = object;
    return {
      kind: 'error',
      status: typeof code === 'number' ? code : 0,
      message: typeof message === 'string' ? message : '',
    };
  }
  if (type === 'BOOKMARK') {
    const { resourceVersion } = mappingIn(object['metadata']);
    return isResourceVersion(resourceVersion) ? { kind: 'bookmark', resourceVersion } : undefined;
  }
  const envelope = readEnvelope(object);
  if (envelope === undefined) return undefined;
  if (type === 'ADDED' || type === 'MODIFIED') return { kind: 'changed', object: envelope };
  return type === 'DELETED' ? { kind: 'deleted', object: envelope } : undefined;
}
