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
