/** Somebody below more directories than a path may name (PATH_MAX), or with a file open there. */
import { type ChildProcess, execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { type AbsolutePath, below } from '../../mount/host.ts';
import { end, holder } from './holding-process.ts';

const DEEPER = `
  const fs = require('node:fs');
  process.chdir(process.argv[1]);
  for (let count = 0; count < 1_100; count += 1) {
    const name = 'deep'.repeat(count < 25 ? 50 : 1);
    fs.mkdirSync(name);
    process.chdir(name);
  }
  if (process.argv[2] === 'file') {
    fs.openSync('file', 'w');
    process.chdir('/');
  }
  console.log('deep');
  setInterval(() => {}, 1e9);
`;

export interface DeepProcess {
  readonly process: ChildProcess;
  /** Ends it, and removes what it has made, which no path leads to. */
  leave(): Promise<void>;
}

export async function deepProcess(
  t: TestContext,
  top: AbsolutePath,
  kind: 'directory' | 'file',
): Promise<DeepProcess> {
  const one = await holder(t, process.execPath, '-e', DEEPER, top, kind);
  return {
    process: one,
    async leave() {
      await end(one);
      const made = readdirSync(top).filter((name) => name.startsWith('deep'));
      execFileSync('rm', ['-rf', ...made.map((name) => below(top, name))]);
    },
  };
}
