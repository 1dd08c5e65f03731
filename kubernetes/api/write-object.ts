/** Changes of one object, each bound to the very version that it was decided on. */
import type { Effect } from '../../mount/failure.ts';
import type { ApiResult } from './api-failure.ts';
import { type ApiObjectEnvelope, readEnvelope } from './api-object.ts';
import type { ApiTransport } from './api-transport.ts';
import { MALFORMED } from './read-list.ts';

/** A merge patch, and the object that it was made for. */
export interface ObjectPatch {
  readonly path: string;
  readonly before: Pick<ApiObjectEnvelope, 'uid' | 'resourceVersion'>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  /** Beside the metadata. */
  readonly change: Readonly<Record<string, unknown>>;
}

/** A field by the names that lead to it, and what it is or is to be; undefined where it is not there. */
export type Field = readonly [names: readonly string[], value: unknown];

/** A change of fields that counts while others are as they were seen, whatever else of the object has changed since. */
export interface ComparedPatch {
  readonly path: string;
  readonly before: Pick<ApiObjectEnvelope, 'uid'>;
  /** What each of them is in must be there. */
  readonly compared: readonly Field[];
  readonly change: readonly Field[];
}

const BOUNDS = { answerBytesMax: 4 * 1_024 * 1_024, deadlineMs: 10_000 } as const;
/**
 * The answer is the object as it is afterwards. `conflict`: it is another version, and nothing was done. Another object
 * of that name is `conflict` or `invalid`. A failure with effect `unknown` may take effect later still, but no more
 * once the object is seen in a version above `before`: that is what the precondition is for.
 */
export async function patchObject(
  transport: ApiTransport,
  { path, before, annotations, labels, change }: ObjectPatch,
): Promise<ApiResult<ApiObjectEnvelope>> {
  const { uid, resourceVersion } = before;
  const metadata = {
    uid,
    resourceVersion,
    ...(annotations === undefined ? {} : { annotations }),
    ...(labels === undefined ? {} : { labels }),
  };
  const answered = await transport.request({
    method: 'PATCH',
    path,
    body: { ...change, metadata },
    ...BOUNDS,
  });
  return answered.ok ? whole(answered.value, 'unknown') : answered;
}

/**
 * The answer is the object as it is afterwards. `invalid`: something that is compared is otherwise, or another object
 * has the name, or the change cannot be; nothing was done. A failure with effect `unknown` may take effect later still,
 * but no more once something that is compared was seen otherwise, and for good if it never becomes the same again.
 */
export async function patchCompared(
  transport: ApiTransport,
  { path, before, compared, change }: ComparedPatch,
): Promise<ApiResult<ApiObjectEnvelope>> {
  const operation = (op: 'test' | 'add', [names, value]: Field) => ({
    op,
    path: names.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join(''),
    // A field that is not there compares as null does.
    value: value ?? null,
  });
  const answered = await transport.request({
    method: 'PATCH',
    path,
    body: [
      operation('test', [['metadata', 'uid'], before.uid]),
      ...compared.map((one) => operation('test', one)),
      // `add` replaces a field that is there (RFC 6902, 4.1).
      ...change.map((one) => operation('add', one)),
    ],
    ...BOUNDS,
  });
  return answered.ok ? whole(answered.value, 'unknown') : answered;
}

/** `conflict`: there is one of that name already. */
export async function createObject(
  transport: ApiTransport,
  path: string,
  body: object,
): Promise<ApiResult<ApiObjectEnvelope>> {
  const answered = await transport.request({ method: 'POST', path, body, ...BOUNDS });
  return answered.ok ? whole(answered.value, 'unknown') : answered;
}

/** Only the object with that uid: one that was made anew under its name stays (`conflict`). */
export async function deleteObject(
  transport: ApiTransport,
  path: string,
  uid: string,
): Promise<ApiResult<unknown>> {
  return transport.request({ method: 'DELETE', path, body: { preconditions: { uid } }, ...BOUNDS });
}

/** Consistent, never out of a cache that lags: no resourceVersion is asked for. */
export async function readOne(transport: ApiTransport, path: string): Promise<ApiResult<ApiObjectEnvelope>> {
  const answered = await transport.request({ method: 'GET', path, ...BOUNDS });
  return answered.ok ? whole(answered.value, 'none') : answered;
}

function whole(value: unknown, effect: Effect): ApiResult<ApiObjectEnvelope> {
  const envelope = readEnvelope(value);
  return envelope === undefined
    ? { ok: false, failure: { ...MALFORMED, effect } }
    : { ok: true, value: envelope };
}
