/** A real host over a scratch directory that is gone afterwards. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type AbsolutePath, parseAbsolutePath } from '../../mount/host.ts';
import { createLinuxHost, type LinuxHost, type LinuxHostParts } from '../../mount/agent-side/linux-host.ts';
import { BROKER_COMMAND } from '../real/broker-command.ts';
import { endHolders } from './holding-process.ts';

export function scratchDirectory(t: TestContext): AbsolutePath {
  const path = parseAbsolutePath(mkdtempSync(join(tmpdir(), 'mooring-test-')));
  if (path === undefined) throw new Error('the directory for temporary files has an odd name');
  t.after(async () => {
    await endHolders(t);
    unmountBelow(path);
    rmSync(path, { recursive: true, force: true });
  });
  return path;
}

/** A test that failed may have left mounts, and deleting must never go into one. */
function unmountBelow(path: AbsolutePath): void {
  const targets = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '');
  for (const target of targets.reverse()) if (target.startsWith(`${path}/`)) spawnSync('umount', [target]);
}

/** Its brokers end with the test; `watch` and `call` do nothing. */
export async function realHost(t: TestContext, parts: Partial<LinuxHostParts> = {}): Promise<LinuxHost> {
  const host = await createLinuxHost({
    remote: async () => ({ kind: 'broken', because: 'unreachable', message: 'no driver here' }),
    watch: () => () => {},
    brokerCommand: BROKER_COMMAND,
    ...parts,
  });
  t.after(() => host.close());
  return host;
}
