/**
 * Says "look" when something in a directory may have changed. The one importer of chokidar, of which only the raw
 * events are used: its own `unlink` and `add` lose the last event of a path that flaps (chokidar #1455), and nothing of
 * what an event says is believed anyway.
 */
import { type FSWatcher, watch as watchPath } from 'chokidar';
import { type AbsolutePath, type Cancel, type Clock, type Host, nameIn } from '../../../mount/host.ts';

/** The `watch` of a Host, and its end. */
export interface DirectoryWatcher {
  readonly watch: Host['watch'];
  /** Ends every watch; no hint is given any more. */
  close(): Promise<void>;
}

/** A burst of events is two hints: one at its beginning, because somebody waits, and one when it is over. */
const DEBOUNCE_MS = 20;
/** A directory that is not there is tried again at this pace. */
const MISSING_RETRY_MS = 1_000;
/** Without inotify (no watches left, say) this is the pace of hints, and of trying to watch again. */
const POLL_MS = 10_000;

/**
 * Guarantees: a hint after every watch that begins, so nothing between a first listing and the watch is missed; a
 * directory that is removed, replaced or not there yet is watched again; a failure of inotify makes it slow, not deaf.
 */
export function createDirectoryWatcher(clock: Pick<Clock, 'timer'>): DirectoryWatcher {
  const watches = new Set<{ readonly end: () => Promise<void> }>();
  return {
    watch(directory, hint, concerns = anything) {
      const one = watchDirectory(clock, directory, hint, concerns);
      watches.add(one);
      return () => {
        watches.delete(one);
        void one.end();
      };
    },
    async close() {
      const open = [...watches];
      watches.clear();
      await Promise.all(open.map((one) => one.end()));
    },
  };
}

/**
 * Most files are written under another name first. A hint at that is a look for nothing, and the one at the file itself
 * would be the second of a burst, which has to wait: so whoever watches should say which names concern him.
 */
const anything = (): boolean => true;

function watchDirectory(
  clock: Pick<Clock, 'timer'>,
  directory: AbsolutePath,
  hint: () => void,
  concerns: (name: string) => boolean,
): { readonly end: () => Promise<void> } {
  let watcher: FSWatcher | undefined;
  let ended = false;
  let cancelHint: Cancel | undefined;
  let isBurst = false;
  let cancelRetry: Cancel = () => {};
  const ownName = nameIn(directory);

  function hintSoon(): void {
    if (cancelHint !== undefined) {
      isBurst = true;
      return;
    }
    cancelHint = clock.timer(DEBOUNCE_MS, () => {
      cancelHint = undefined;
      if (!isBurst || ended) return;
      isBurst = false;
      hintSoon();
    });
    hint();
  }

  function begin(): void {
    if (ended) return;
    let found = false;
    let broken = false;
    const mine = watchPath(directory, {
      depth: 0,
      followSymlinks: false,
      atomic: false,
      // The directory alone: one inotify watch, and still a raw event for everything in it.
      ignored: (path) => path !== directory,
    });
    watcher = mine;
    mine.on('addDir', () => {
      found = true;
    });
    mine.on('raw', (event: string, name: unknown) => {
      // inotify tells the end of the directory itself by the directory's own name.
      const isOwnEnd = event === 'rename' && name === ownName;
      if (isOwnEnd || typeof name !== 'string' || concerns(name)) hintSoon();
      if (isOwnEnd) again(mine, DEBOUNCE_MS);
    });
    mine.on('error', () => {
      broken = true;
      again(mine, POLL_MS, hintSoon);
    });
    mine.on('ready', () => {
      if (broken) return;
      if (found) hintSoon();
      else again(mine, MISSING_RETRY_MS);
    });
  }

  /** Ends this watcher and, after `delayMs`, begins another; what happens meanwhile is told by its first hint. */
  function again(mine: FSWatcher, delayMs: number, meanwhile: () => void = () => {}): void {
    if (watcher !== mine) return;
    watcher = undefined;
    void mine.close();
    cancelRetry = clock.timer(delayMs, () => {
      meanwhile();
      begin();
    });
  }

  begin();
  return {
    async end() {
      ended = true;
      cancelHint?.();
      cancelRetry();
      await watcher?.close();
    },
  };
}
