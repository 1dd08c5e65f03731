/** Several mounts, or several umounts, in one process: of a node in bulk the processes are the largest part. */

import { assert } from '../../failure.ts';

/** A command line is bounded, and so is what one run can say for itself. */
const TOGETHER_MAX = 16;

interface Waiting<Item, Report> {
  readonly item: Item;
  readonly settle: (report: Report) => void;
}

/**
 * Runs `runAll` at once when it is not under way; who comes meanwhile goes with the next run. It answers as many
 * reports as it got items, in their order.
 * Guarantees: one run at a time, each item is given once, and none is given before the run that was under way when it
 * came has ended.
 * Assumes: nothing that goes this way can hang, for the others would wait for it.
 */
export function createTogether<Item, Report>(
  runAll: (items: readonly [Item, ...Item[]]) => Promise<readonly Report[]>,
): (item: Item) => Promise<Report> {
  const waiting: Waiting<Item, Report>[] = [];
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    for (let first = waiting.shift(); first !== undefined; first = waiting.shift()) {
      const rest = waiting.splice(0, TOGETHER_MAX - 1);
      const reports = await runAll([first.item, ...rest.map(({ item }) => item)]);
      for (const [index, { settle }] of [first, ...rest].entries()) {
        const report = reports[index];
        assert(report !== undefined, 'each of a run gets a report');
        settle(report);
      }
    }
    isRunning = false;
  }

  return (item) =>
    new Promise((settle) => {
      waiting.push({ item, settle });
      if (!isRunning) void run();
    });
}
