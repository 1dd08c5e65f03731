/** What the machine itself takes, measured beside everything else, so that claims are ratios. */
import { mkdirSync, rmdirSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { runToEnd } from '../demo/machine.ts';
import { nowMs } from './clock.ts';
import { type Spread, spreadOf } from './statistics.ts';

export interface Baseline {
  /** mount(8) of a bind mount, by the same runTool, one after the other. */
  readonly mount: Spread;
  readonly umount: Spread;
  /** A record of 1 KiB: write, fsync, rename, fsync of the directory. */
  readonly durableWrite: Spread;
}

const RECORD_BYTES = 1_024;

export async function measureBaseline(directory: string, repeats: number): Promise<Baseline> {
  const source = join(directory, 'source');
  const target = join(directory, 'target');
  for (const one of [source, target]) mkdirSync(one, { recursive: true });
  const mount: number[] = [];
  const umount: number[] = [];
  const durableWrite: number[] = [];
  for (let index = 0; index < repeats; index += 1) {
    mount.push(await timed(() => runToEnd('mount', ['--bind', '--', source, target])));
    umount.push(await timed(() => runToEnd('umount', ['--', target])));
    durableWrite.push(await timed(() => writeDurably(directory, index)));
  }
  rmdirSync(target);
  return { mount: spreadOf(mount), umount: spreadOf(umount), durableWrite: spreadOf(durableWrite) };
}

async function timed(act: () => Promise<void>): Promise<number> {
  const startMs = nowMs();
  await act();
  return nowMs() - startMs;
}

async function writeDurably(directory: string, index: number): Promise<void> {
  const temporary = join(directory, `.record-${index}`);
  const file = await open(temporary, 'w', 0o600);
  await file.write(Buffer.alloc(RECORD_BYTES, 'x'));
  await file.sync();
  await file.close();
  await rename(temporary, join(directory, `record-${index % 8}`));
  const folder = await open(directory, 'r');
  await folder.sync();
  await folder.close();
}
