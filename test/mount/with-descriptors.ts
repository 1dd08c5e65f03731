/** A process that has few descriptors left. */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';

const LIMIT = '256';

/** Runs `act` with so many of them free; those of this process are free again afterwards. */
export async function withDescriptors<T>(left: number, act: () => Promise<T>): Promise<T> {
  const own = `--pid=${process.pid}`;
  const limit = (soft: string): void => void execFileSync('prlimit', [own, `--nofile=${soft}:`]);
  const before = execFileSync('prlimit', [own, '--nofile', '--output=SOFT', '--noheadings']);
  limit(LIMIT);
  const taken: number[] = [];
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'));
  } catch {
    // There is none left.
  }
  for (const descriptor of taken.splice(0, left)) closeSync(descriptor);
  try {
    return await act();
  } finally {
    for (const descriptor of taken) closeSync(descriptor);
    limit(before.toString().trim());
  }
}
