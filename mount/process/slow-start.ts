/** Tells systemd that a start goes on: one longer than TimeoutStartSec= is ended unless it says so (sd_notify(3)). */
import type { Cancel } from '../host.ts';
import type { Log } from './log.ts';
import type { AnsweringHost } from './notify.ts';

export interface SlowStartParts {
  readonly host: AnsweringHost;
  readonly log: Log;
}

/** Each word is good for three periods: two may be lost or late without harm. */
const EVERY_MS = 20_000;
const EXTENSION_MS = 3 * EVERY_MS;
/** A start that has not ended by then never will: another process may do better. */
const SLOW_START_MS_MAX = 1_800_000;

export interface SlowStart {
  /** The start has ended, however it did. Settles when no word is under way any more: none comes after READY. */
  end(): Promise<void>;
}

/**
 * From now on until its end, for half an hour at most. Guarantees: a word goes out only when the event loop ran and a
 * broker answered a question about `/`, so that a start which hangs is ended by its timeout as before.
 */
export function tellSlowStart({ host, log }: SlowStartParts): SlowStart {
  let cancel: Cancel = () => {};
  let isOver = false;
  let underWay = Promise.resolve();

  function schedule(startedForMs: number): void {
    cancel = host.timer(EVERY_MS, () => {
      underWay = tell(startedForMs + EVERY_MS);
    });
  }

  async function tell(startedForMs: number): Promise<void> {
    const seconds = startedForMs / 1_000;
    if (startedForMs > SLOW_START_MS_MAX) return log.error('start takes too long', { seconds });
    const answered = await host.answers();
    if (isOver) return;
    log.info('agent still starting', { seconds, brokerAnswered: answered.ok });
    const status = `starting for ${seconds} s: records, mounts and manifests are read`;
    if (answered.ok) await host.notify(`EXTEND_TIMEOUT_USEC=${EXTENSION_MS * 1_000}\nSTATUS=${status}`);
    if (!isOver) schedule(startedForMs);
  }

  schedule(0);
  return {
    end() {
      isOver = true;
      cancel();
      return underWay;
    },
  };
}
