/** Several umounts in one process: of what a drained node does, the processes are the largest part. */
import type { AbsolutePath } from '../host.ts';

/** A command line is bounded, and so is what one run can say for itself. */
const TARGETS_MAX = 16;

interface Waiting<Report> {
  readonly target: AbsolutePath;
  readonly settle: (report: Report) => void;
}

/**
 * Runs `unmountAll` at once when it is not under way; who comes meanwhile goes with the next run. All of a run get its
 * report.
 * Guarantees: one run at a time, each target is given once, and none is given before the run that was under way when it
 * came has ended.
 * Assumes: no umount that goes this way can hang, for the others would wait for it.
 */
export function createUnmountTogether<Report>(
  unmountAll: (targets: readonly AbsolutePath[]) => Promise<Report>,
): (target: AbsolutePath) => Promise<Report> {
  const waiting: Waiting<Report>[] = [];
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    while (waiting.length > 0) {
      const together = waiting.splice(0, TARGETS_MAX);
      const report = await unmountAll(together.map(({ target }) => target));
      for (const { settle } of together) settle(report);
    }
    isRunning = false;
  }

  return (target) =>
    new Promise((settle) => {
      waiting.push({ target, settle });
      if (!isRunning) void run();
    });
}
