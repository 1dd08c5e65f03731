/** One consistent list of a selection, page by page. */
import type { Clock } from '../../mount/host.ts';
import { type ApiObjectEnvelope, readListPage } from './api-object.ts';
import type { ApiFailure, ApiResult } from './api-failure.ts';
import type { ApiTransport } from './api-transport.ts';
import { type ResourceSelection, selected } from './resource-path.ts';

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

const PAGE_OBJECTS_MAX = 500;
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

/** One reader for all lists of a selection: what it found of the size of its objects counts for the next list. */
export interface ListReader {
  /**
   * All objects of one moment. Without a resourceVersion the answer is consistent, never one from a cache that lags. A
   * page that is `too-large` begins the list anew with half as many objects in each, down to one.
   */
  read(): Promise<ApiResult<Listed>>;
}

export function createListReader(parts: ListParts): ListReader {
  return new PagedReader(parts);
}

/** What was read of one list. */
interface Begun {
  readonly askedMs: number;
  readonly objects: Map<string, ApiObjectEnvelope>;
  continueToken: string;
}

class PagedReader implements ListReader {
  readonly #parts: ListParts;
  #pageObjects = PAGE_OBJECTS_MAX;

  constructor(parts: ListParts) {
    this.#parts = parts;
  }

  async read(): Promise<ApiResult<Listed>> {
    let limit = this.#pageObjects;
    let list = this.#begin();
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const answered = await this.#ask(limit, list.continueToken);
      if (!answered.ok && answered.failure.code === 'too-large' && limit > 1) {
        // From the beginning: a token goes on with the limit that it was given for.
        limit = Math.floor(limit / 2);
        this.#pageObjects = limit;
        list = this.#begin();
        continue;
      }
      if (!answered.ok) return answered;
      const read = readListPage(answered.value);
      if (read === undefined) return { ok: false, failure: MALFORMED };
      const { askedMs, objects } = list;
      for (const one of read.objects) objects.set(one.uid, whole(one, this.#parts.selection));
      if (objects.size > OBJECTS_MAX) return { ok: false, failure: TOO_MANY };
      if (read.continueToken === '') {
        // What fits into one page does so whatever the limit is.
        if (list.continueToken === '') this.#pageObjects = PAGE_OBJECTS_MAX;
        return { ok: true, value: { objects, resourceVersion: read.resourceVersion, askedMs } };
      }
      list.continueToken = read.continueToken;
    }
    return { ok: false, failure: ENDLESS };
  }

  #begin(): Begun {
    return { askedMs: this.#parts.clock.nowMs(), objects: new Map(), continueToken: '' };
  }

  #ask(limit: number, continueToken: string): Promise<ApiResult<unknown>> {
    const { transport, selection } = this.#parts;
    const query = new URLSearchParams({ ...selected(selection), limit: `${limit}` });
    if (continueToken !== '') query.set('continue', continueToken);
    return transport.request({
      method: 'GET',
      path: `${selection.path}?${query}`,
      answerBytesMax: PAGE_BYTES_MAX,
      deadlineMs: PAGE_MS_MAX,
    });
  }
}

/** Lists leave out what they say once for all. */
export function whole(one: ApiObjectEnvelope, { kind, apiVersion }: ResourceSelection): ApiObjectEnvelope {
  return { ...one, value: { ...one.value, kind, apiVersion } };
}
