/**
 * `npm run sim -- --seeds N [--seed FIRST] [--workers W] [--trace LINES] [--about STORY] [--hashes FILE]`: simulates N
 * seeds, the first one FIRST; all made to be about one thing when a story of stories.ts is named. With `--minutes M`
 * instead of `--seeds`: as many as there is time for, the first one drawn by chance, and told. With both: no more than
 * N, as far as M minutes go; on a machine that is too slow for all of them, how many were left out is told loudly.
 * Fewer than a fiftieth is a failure: then nothing was shown.
 * FILE gets a line for each seed with the hash of its trace, in the order of the seeds. A change that is to change
 * nothing leaves the file as it was (CONTRIBUTING.md).
 * Exits 1 when an invariant was violated, with the seed, the end of its trace and the command that plays it again.
 * Seeds that are known to fail (open-seeds.ts) are told loudly and do not fail a run of many; alone they do.
 */
import type { ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { OPEN_SEEDS } from './open-seeds.ts';
import { STORIES } from './stories.ts';
import { addTally, NO_TALLY, tallyText } from './tally.ts';
import { EFFECTS } from './weather.ts';
import type { Batch, BatchReport } from './worker.ts';
import { buildWorkerProgram } from './worker-program.ts';

/** At the end of a run the batches are smaller, so that no worker waits long for the last one. */
const BATCH_SEEDS_MAX = 10;
const BATCHES_LEFT_MIN = 4;
const MINUTE_MS = 60_000;
/** Drawn seeds are none that a fixed run has, and whole numbers of 32 bits with all that is made of them. */
const DRAWN_MIN = 10_000_000;
const DRAWN_MAX = 1_000_000_000;
const TAIL_LINES = '30';
/** The least part of the seeds asked for that shows something, when there was not time for all. */
const SHARE_MIN = 0.02;
/** What is simulated when neither seeds nor minutes are asked for. */
const SEEDS_ALONE = 1;
/** A person wants to see that it goes on; a log, how it went. */
const PROGRESS_MS = process.stderr.isTTY ? 10_000 : 60_000;

interface Options {
  /** Infinity: until the minutes are over. */
  readonly seeds: number;
  readonly minutes: number | undefined;
  readonly first: number;
  readonly workers: number;
  readonly traceLines: number;
  readonly about: string | undefined;
  readonly hashesFile: string | undefined;
}

function optionsFrom(argv: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      seeds: { type: 'string' },
      minutes: { type: 'string' },
      seed: { type: 'string' },
      workers: { type: 'string', default: String(availableParallelism()) },
      trace: { type: 'string', default: TAIL_LINES },
      about: { type: 'string' },
      hashes: { type: 'string' },
    },
  });
  const { about } = values;
  if (about !== undefined && STORIES[about] === undefined)
    throw new Error(`--about: not one of ${Object.keys(STORIES).join(', ')}: ${about}`);
  const number = (key: 'seeds' | 'minutes' | 'seed' | 'workers' | 'trace'): number => {
    const value = Number(values[key]);
    if (!Number.isSafeInteger(value) || value < 0)
      throw new Error(`--${key}: not a whole number: ${values[key]}`);
    return value;
  };
  const minutes = values.minutes === undefined ? undefined : number('minutes');
  const isDrawn = minutes !== undefined && values.seeds === undefined;
  const ownFirst = isDrawn ? randomInt(DRAWN_MIN, DRAWN_MAX) : 1;
  const most = isDrawn ? Number.POSITIVE_INFINITY : SEEDS_ALONE;
  return {
    seeds: values.seeds === undefined ? most : number('seeds'),
    minutes,
    first: values.seed === undefined ? ownFirst : number('seed'),
    workers: number('workers'),
    traceLines: number('trace'),
    about,
    hashesFile: values.hashes,
  };
}

class Tally {
  seeds = 0;
  steps = 0;
  crashes = 0;
  driverCalls = 0;
  readonly rare = { ...NO_TALLY };
  readonly crashedAt = new Set<string>();
  readonly failed: number[] = [];
  readonly hashes = new Map<number, string>();
  failure: BatchReport['failure'];

  add(report: BatchReport): void {
    this.seeds += report.seeds;
    this.steps += report.steps;
    this.crashes += report.crashes;
    this.driverCalls += report.driverCalls;
    addTally(this.rare, report.tally);
    for (const boundary of report.crashedAt) this.crashedAt.add(boundary);
    this.failed.push(...report.failed);
    for (const [seed, hash] of report.hashes) this.hashes.set(seed, hash);
    if (
      report.failure !== undefined &&
      (this.failure === undefined || report.failure.seed < this.failure.seed)
    ) {
      this.failure = report.failure;
    }
  }
}

/** Hands batches to worker processes until none is left. */
async function simulateAll(options: Options, onReport: (report: BatchReport) => void): Promise<void> {
  const next = batchesOf(options);
  const workers = Math.max(1, Math.min(options.workers, Math.ceil(options.seeds / BATCH_SEEDS_MAX)));
  const start = await buildWorkerProgram();
  await Promise.all(Array.from({ length: workers }, () => work(start(), next, onReport)));
}

/** The next batch each time, until all are handed out or the time is over. */
function batchesOf({ seeds, minutes, first, workers, traceLines, about }: Options): () => Batch | undefined {
  const endMs = performance.now() + (minutes ?? Number.POSITIVE_INFINITY) * MINUTE_MS;
  let done = 0;
  return () => {
    const left = seeds - done;
    const count = Math.min(BATCH_SEEDS_MAX, Math.ceil(left / (BATCHES_LEFT_MIN * Math.max(1, workers))));
    if (count <= 0 || performance.now() > endMs) return undefined;
    const batch = { first: first + done, count, tailLines: traceLines, about };
    done += count;
    return batch;
  };
}

function work(
  child: ChildProcess,
  nextBatch: () => Batch | undefined,
  onReport: (report: BatchReport) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const next = (): void => {
      const batch = nextBatch();
      if (batch !== undefined) child.send(batch);
      else child.disconnect();
    };
    child.on('message', (report) => {
      onReport(report as BatchReport);
      next();
    });
    child.on('exit', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`a worker ended with ${code}`));
    });
    next();
  });
}

function summary(tally: Tally, ms: number): string {
  const perSecond = (tally.seeds / (ms / 1_000)).toFixed(0);
  const all = EFFECTS.flatMap((kind) => [`${kind}/before`, `${kind}/after`]);
  const never = all.filter((boundary) => !tally.crashedAt.has(boundary));
  return [
    `${tally.seeds} seeds in ${(ms / 1_000).toFixed(1)} s, ${perSecond} seeds/s, ${tally.steps} events, ` +
      `${tally.crashes} crashes, ${tally.driverCalls} driver calls`,
    tallyText(tally.rare),
    `crashed at ${all.length - never.length} of ${all.length} effect boundaries` +
      (never.length === 0 ? '' : `; never at ${never.join(', ')}`),
  ].join('\n');
}

function describeFailure({ failed, failure }: Tally): string {
  if (failure === undefined) return '';
  const about = options.about === undefined ? '' : ` --about ${options.about}`;
  return [
    ...failure.tail,
    '',
    `${failed.length} seeds failed: ${failed
      .sort((a, b) => a - b)
      .slice(0, 20)
      .join(' ')}`,
    `seed ${failure.seed}: ${failure.violation?.invariant}: ${failure.violation?.text}`,
    `again: npm run sim -- --seeds 1 --seed ${failure.seed} --trace 300${about}`,
  ].join('\n');
}

const options = optionsFrom(process.argv.slice(2));
if (options.minutes !== undefined) {
  const most = Number.isFinite(options.seeds) ? `, ${options.seeds} at most,` : '';
  process.stdout.write(`${options.minutes} minutes of seeds${most} from ${options.first}\n`);
}
const tally = new Tally();
const startedMs = performance.now();
const progress = setInterval(() => {
  const failed = tally.failed.length === 0 ? '' : `: ${tally.failed.slice(0, 20).join(' ')}`;
  const of = Number.isFinite(options.seeds) ? ` of ${options.seeds}` : '';
  process.stderr.write(`${tally.seeds}${of} seeds, ${tally.failed.length} failed${failed}\n`);
}, PROGRESS_MS);
await simulateAll(options, (report) => tally.add(report));
clearInterval(progress);
process.stdout.write(`${summary(tally, performance.now() - startedMs)}\n`);
const leftOut = options.seeds - tally.seeds;
if (Number.isFinite(leftOut) && leftOut > 0) {
  process.stdout.write(
    `*** ${leftOut} OF ${options.seeds} SEEDS WERE NOT SIMULATED: ` +
      `${options.minutes} minutes are not enough for them on this machine ***\n`,
  );
  if (tally.seeds < options.seeds * SHARE_MIN) process.exitCode = 1;
}
if (options.hashesFile !== undefined) {
  const hashes = [...tally.hashes].sort(([a], [b]) => a - b);
  writeFileSync(options.hashesFile, hashes.map(([seed, hash]) => `${seed} ${hash}\n`).join(''));
}
const open = tally.failed.filter((seed) => OPEN_SEEDS.has(seed));
if (open.length > 0) {
  const lines = open.map((seed) => `  ${seed}: ${OPEN_SEEDS.get(seed)}`);
  process.stdout.write(
    `KNOWN AND OPEN (test/sim/open-seeds.ts), ${open.length} seeds fail:\n${lines.join('\n')}\n`,
  );
}
// A seed for which there was no time says nothing.
const closed = [...OPEN_SEEDS.keys()].filter(
  (seed) => tally.hashes.has(seed) && !tally.failed.includes(seed),
);
if (closed.length > 0) process.stdout.write(`no longer failing, take them out: ${closed.join(' ')}\n`);
if (tally.failed.length > open.length || (options.seeds === 1 && open.length > 0)) {
  process.stdout.write(`${describeFailure(tally)}\n`);
  process.exitCode = 1;
}
