/** One driver per pool: two of them would attach one data file twice. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { runTool } from '../../../mount/tool.ts';
import { status } from '../device/status.ts';

export interface PoolLock {
  release(): Promise<void>;
}

/** What a killed driver was about to start has its lock until it is another program. */
const LOCK_WAIT_S = 2;
const LOCK_MS = 10_000;

/**
 * flock(1) locks our own open file and ends; the kernel keeps the lock for as long as this process lives, and lets it
 * go at any death. FAILED_PRECONDITION when another driver has it, and has it for two seconds.
 */
export async function lockPool(directory: string): Promise<PoolLock> {
  const file = await open(join(directory, '.lock'), 'w', 0o600);
  const locked = await runTool({
    tool: 'flock',
    argv: ['--exclusive', '--timeout', String(LOCK_WAIT_S), '3'],
    deadlineMs: LOCK_MS,
    inheritedDescriptors: [file.fd],
  });
  if (locked.ok && locked.value.exitCode === 0) return { release: () => file.close() };
  await file.close();
  const because = locked.ok ? 'another driver serves it' : locked.failure.message;
  throw status('FAILED_PRECONDITION', `pool ${directory}: ${because}`);
}
