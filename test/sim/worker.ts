/** A batch of seeds, as a worker simulates it. */
import { type Report, simulate } from './simulate.ts';
import { STORIES } from './stories.ts';
import { addTally, NO_TALLY, type Tally } from './tally.ts';

export interface Batch {
  readonly first: number;
  readonly count: number;
  readonly tailLines: number;
  /** A name in STORIES: what the seeds are made to be about. */
  readonly about: string | undefined;
}

/** The sum of a batch; only the first failure is told whole. */
export interface BatchReport {
  readonly seeds: number;
  readonly steps: number;
  readonly crashes: number;
  readonly driverCalls: number;
  readonly tally: Tally;
  readonly crashedAt: readonly string[];
  readonly failed: readonly number[];
  /** The hash of the trace of each seed. */
  readonly hashes: readonly (readonly [seed: number, hash: string])[];
  readonly failure: Pick<Report, 'seed' | 'violation' | 'tail' | 'traceHash'> | undefined;
}

export async function simulateBatch({ first, count, tailLines, about }: Batch): Promise<BatchReport> {
  const crashedAt = new Set<string>();
  const failed: number[] = [];
  const hashes: [number, string][] = [];
  const tally: Tally = { ...NO_TALLY };
  const story = about === undefined ? undefined : STORIES[about];
  let failure: BatchReport['failure'];
  let [steps, crashes, driverCalls] = [0, 0, 0];
  for (let seed = first; seed < first + count; seed += 1) {
    const report = await simulate(seed, story === undefined ? {} : { plan: (plan) => story(plan, seed) });
    steps += report.steps;
    crashes += report.crashes;
    driverCalls += report.driverCalls;
    addTally(tally, report.tally);
    for (const boundary of report.crashedAt) crashedAt.add(boundary);
    hashes.push([seed, report.traceHash]);
    if (report.violation === undefined) continue;
    failed.push(seed);
    const { violation, traceHash, tail } = report;
    failure ??= { seed, violation, traceHash, tail: tail.slice(-tailLines) };
  }
  const crashedAll = [...crashedAt];
  return { seeds: count, steps, crashes, driverCalls, tally, crashedAt: crashedAll, failed, hashes, failure };
}
