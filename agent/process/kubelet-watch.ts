/** A kubelet that comes while the agent runs: each would undo what the other does, so one of them has to go. */
import type { Failure } from '../../mount/failure.ts';
import { type AbsolutePath, below, type Cancel, type Clock, type Host } from '../../mount/host.ts';
import { createPacedLook } from '../../plugins/csi/driver/coalesced-task.ts';
import { SOCKET, SOCKET_DIRECTORIES } from './kubelet-beside.ts';

/** One that only begins (`kubelet --version`) is gone by then. */
const STAYS_MS = 2_000;

export interface KubeletWatchParts {
  readonly host: Clock & Pick<Host, 'watch' | 'inspect'>;
  readonly root: AbsolutePath;
  /** As `lookForKubelet`. */
  readonly look: () => Promise<Failure | undefined>;
  /** Called once, with what was found twice. */
  readonly onFound: (failure: Failure) => void;
}

/**
 * Looks when something happens to the sockets that every kubelet serves below its root, and to nothing else: a look is
 * a pass over all processes. A kubelet for our Node with a root of its own is found at the start alone.
 */
export function watchForKubelet({ host, root, look, onFound }: KubeletWatchParts): Cancel {
  const watched = new Map<AbsolutePath, Cancel>();
  let cancelSecond: Cancel = () => {};
  let isEnded = false;

  async function lookTwice(): Promise<void> {
    if ((await look()) === undefined || isEnded) return;
    await new Promise<void>((resolve) => {
      cancelSecond = host.timer(STAYS_MS, resolve);
    });
    const found = await look();
    if (found === undefined || isEnded) return;
    end();
    onFound(found);
  }

  const looking = createPacedLook(host, 0, lookTwice);

  /** A watch of what is not there would try each second. */
  async function watchDirectories(): Promise<void> {
    for (const directory of SOCKET_DIRECTORIES.map((name) => below(root, name))) {
      const facts = await host.inspect(directory);
      const isThere = facts.ok && facts.value.kind === 'directory';
      if (isEnded || !facts.ok || isThere === watched.has(directory)) continue;
      watched.get(directory)?.();
      watched.delete(directory);
      if (!isThere) continue;
      const cancel = host.watch(
        directory,
        () => void looking.ask(),
        (name) => name === SOCKET,
      );
      watched.set(directory, cancel);
    }
  }

  function end(): void {
    isEnded = true;
    looking.stop();
    cancelSecond();
    for (const cancel of watched.values()) cancel();
    watched.clear();
  }

  const isOfKubelet = (name: string): boolean => (SOCKET_DIRECTORIES as readonly string[]).includes(name);
  watched.set(
    root,
    host.watch(root, () => void watchDirectories(), isOfKubelet),
  );
  return end;
}
