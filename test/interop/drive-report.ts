/** `mooring drive` as a process of a world, and what its report says. */
import assert from 'node:assert/strict';
import { AGENT_COMMAND, type World } from './world.ts';

const DRIVE_MS = 900_000;
export const FAULTS = [
  'fault-delay',
  'fault-lost-reply',
  'fault-unreached',
  'fault-refused',
  'fault-aborted',
];

/** What is used of docs' DriveReport. */
export interface Report {
  readonly good: boolean;
  readonly verdicts: readonly {
    readonly duty: string;
    readonly verdict: 'pass' | 'fail' | 'skipped' | 'blocked';
    readonly findings: readonly string[];
    readonly remarks: readonly string[];
  }[];
}

/** In a mount namespace of its own; the report, and the exit code that must go with it. */
export async function drive(
  world: World,
  endpoint: string,
  flags: readonly string[],
  driver: readonly string[],
) {
  const options = ['--endpoint', `unix://${endpoint}`, '--directory', world.scratch, '--size', '32Mi'];
  const seed = ['--seed', '1', '--output', 'json'];
  const argv = [...AGENT_COMMAND, 'drive', ...options, ...seed, ...flags, '--', ...driver];
  const program = world.start('drive', argv);
  const late = setTimeout(() => void program.end('SIGTERM'), DRIVE_MS);
  const { code } = await program.ended;
  clearTimeout(late);
  const words = program.printed();
  assert.ok(words.startsWith('{'), program.said());
  const report = JSON.parse(words) as Report;
  assert.equal(code, report.good ? 0 : 1);
  return report;
}

export function of(
  report: Report,
  ...kinds: readonly Report['verdicts'][number]['verdict'][]
): readonly string[] {
  return report.verdicts.filter(({ verdict }) => kinds.includes(verdict)).map(({ duty }) => duty);
}

export type Flaws = Readonly<Record<string, RegExp>>;

/** Exactly these duties are broken, and each for this reason alone. */
export function assertFlaws(report: Report, flaws: Flaws): void {
  assert.deepEqual(of(report, 'fail', 'blocked').toSorted(), Object.keys(flaws).toSorted(), shown(report));
  for (const { duty, findings } of report.verdicts) {
    for (const finding of findings) {
      const known = flaws[duty];
      if (known !== undefined) assert.match(finding, known, duty);
    }
  }
}

export function shown({ verdicts }: Report): string {
  return verdicts
    .filter(({ verdict }) => verdict === 'fail' || verdict === 'blocked')
    .map(({ duty, findings }) => `${duty}: ${findings.join('; ')}`)
    .join('\n');
}
