/** One consistent list of a selection, page by page. */
import type { Clock } from '../../mount/host.ts';
import { type ApiObjectEnvelope, readListPage } from './api-object.ts';
import type { ApiFailure, ApiResult } from './api-failure.ts';
import type { ApiTransport } from './api-transport.ts';
import type { ResourceSelection } from './resource-path.ts';

/** All objects of a selection at one version. */
export interface Listed {
  /** Each object is found by its uid. */
  readonly objects: ReadonlyMap<string, ApiObjectEnvelope>;
  readonly resourceVersion: string;
  /** Host clock: before the first page was asked for. */
  readonly askedMs: number;
}

export interface ListParts {
  readonly transport: ApiTransport;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly selection: ResourceSelection;
}

const PAGE_OBJECTS = 500;
/** A server may answer pages with fewer objects than asked for, or none. */
const PAGES_MAX = 1_000;
const PAGE_BYTES_MAX = 16 * 1_024 * 1_024;
const PAGE_MS_MAX = 60_000;
/** What one selection of one node may have; more is a selector that was not obeyed. */
export const OBJECTS_MAX = 20_000;

export const TOO_MANY: ApiFailure = {
  code: 'too-large',
  message: `there are more than ${OBJECTS_MAX} objects`,
  effect: 'none',
};
const ENDLESS: ApiFailure = {
  code: 'too-large',
  message: `the list has more than ${PAGES_MAX} pages`,
  effect: 'none',
};
export const MALFORMED: ApiFailure = {
  code: 'malformed',
  message: 'it is not what an API server answers',
  effect: 'none',
};

/** Without a resourceVersion the answer is consistent, never one from a cache that lags. */
export async function readList({ transport, clock, selection }: ListParts): Promise<ApiResult<Listed>> {
  const askedMs = clock.nowMs();
  const objects = new Map<string, ApiObjectEnvelope>();
  let continueToken = '';
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query = new URLSearchParams({ ...selected(selection), limit: `${PAGE_OBJECTS}` });
    if (continueToken !== '') query.set('continue', continueToken);
    const answered = await transport.request({
      method: 'GET',
      path: `${selection.path}?${query}`,
      answerBytesMax: PAGE_BYTES_MAX,
      deadlineMs: PAGE_MS_MAX,
    });
    if (!answered.ok) return answered;
    const read = readListPage(answered.value);
    if (read === undefined) return { ok: false, failure: MALFORMED };
    for (const one of read.objects) objects.set(one.uid, whole(one, selection));
    if (objects.size > OBJECTS_MAX) return { ok: false, failure: TOO_MANY };
    continueToken = read.continueToken;
    if (continueToken === '')
      return { ok: true, value: { objects, resourceVersion: read.resourceVersion, askedMs } };
  }
  return { ok: false, failure: ENDLESS };
}

/** The selector as a query has it. */
export function selected({ fieldSelector }: ResourceSelection): Record<string, string> {
  return fieldSelector === '' ? {} : { fieldSelector };
}

/** Lists leave out what they say once for all. */
export function whole(one: ApiObjectEnvelope, { kind, apiVersion }: ResourceSelection): ApiObjectEnvelope {
  return { ...one, value: { ...one.value, kind, apiVersion } };
}
