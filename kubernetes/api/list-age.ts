/** Whether a list is of now, of before what was seen, or of a server whose data was set back and stays so. */
import type { ApiFailure } from './api-failure.ts';
import type { Listed } from './read-list.ts';
import { compareResourceVersions } from './resource-version.ts';

/** Answers that agree on an earlier state at this distance: the server's data was set back, and stays so. */
export const WENT_BACK_MS = 60_000;

export const WENT_BACK: ApiFailure = {
  code: 'failed',
  message:
    'the API server answers with an older state than it has shown before, as after a restored backup; ' +
    'what was seen counts',
  effect: 'none',
};

export class ListAge {
  /** The first list that was older than what had been seen. */
  #older: Listed | undefined;

  /** `seen`: the newest version that was; undefined before there was any. What is `older` does not count. */
  of(listed: Listed, seen: string | undefined): 'news' | 'older' | 'set-back' {
    const older = this.#older;
    if (seen === undefined || compareResourceVersions(listed.resourceVersion, seen) >= 0) {
      this.#older = undefined;
      return 'news';
    }
    if (older === undefined || !hasSameUids(older, listed)) {
      this.#older = listed;
      return 'older';
    }
    if (listed.askedMs - older.askedMs < WENT_BACK_MS) return 'older';
    this.#older = undefined;
    return 'set-back';
  }
}

function hasSameUids(a: Listed, b: Listed): boolean {
  return a.objects.size === b.objects.size && [...a.objects.keys()].every((uid) => b.objects.has(uid));
}
