/** When what happened to a volume and its pod: seen from outside by watches, told as a line for each phase. */
import type { AdminChange, AdminClient, AdminWatch } from '../cluster/admin-client.ts';

export interface Moments {
  /** Notes that it is now; the first time counts. */
  note(what: string): void;
  /** What was noted, in the order in which it came. */
  seen(): readonly string[];
  /** In the same order, with the time since the one before and since the first. */
  lines(): readonly string[];
  end(): void;
}

/** What an object's change means; undefined: nothing that is told. */
export type Meaning = (change: AdminChange) => string | undefined;

/** Settles when all watches have begun. */
export async function watchMoments(
  admin: AdminClient,
  meanings: Readonly<Record<string, Meaning>>,
): Promise<Moments> {
  const at = new Map<string, number>();
  const note = (what: string): void => {
    if (!at.has(what)) at.set(what, performance.now());
  };
  const watches: AdminWatch[] = [];
  const end = (): void => {
    for (const watch of watches) watch.end();
  };
  for (const [path, meaning] of Object.entries(meanings))
    watches.push(
      admin.watch(path, (change) => {
        const what = meaning(change);
        if (what !== undefined) note(what);
      }),
    );
  try {
    await Promise.all(watches.map(({ begun }) => begun));
  } catch (error) {
    end();
    throw error;
  }
  return {
    note,
    seen: () => [...at.keys()],
    lines() {
      const all = [...at.entries()];
      const beginMs = all[0]?.[1] ?? 0;
      return all.map(([what, ms], index) => {
        const since = ms - (all[index - 1]?.[1] ?? ms);
        return `${seconds(ms - beginMs)} s  (+${seconds(since).trim()})  ${what}`;
      });
    },
    end,
  };
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(3).padStart(8);
}
