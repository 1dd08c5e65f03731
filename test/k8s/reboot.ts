/**
 * The machine of a world is switched off and on: nothing of it runs, nothing is mounted, and the kernel of this
 * (private) mount namespace names another boot.
 */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  detachLoopDevices,
  loopDevicesBelow,
  mountsBelow,
  readMounts,
  runToEnd,
  unmountAll,
} from '../demo/machine.ts';
import type { Program } from '../interop/program.ts';
import type { World } from '../interop/world.ts';
import { until } from '../until.ts';

const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/** What the tests run in it themselves has ended before; what ran there before runs no more. */
export async function reboot(world: Pick<World, 'scratch'>, programs: readonly Program[]): Promise<void> {
  for (const program of programs) await program.end('SIGKILL');
  const devices = loopDevicesBelow(world.scratch);
  await unmountAll([...mountsBelow(world.scratch)].reverse());
  await detachLoopDevices(world.scratch, devices);
  // Brokers of an agent that was killed end a moment after it.
  await until('the machine is off', () => loopDevicesBelow(world.scratch).length === 0);
  const file = join(world.scratch, `boot-${randomUUID()}`);
  writeFileSync(file, `${randomUUID()}\n`);
  await runToEnd('mount', ['--bind', file, BOOT_ID]);
}

/** The boot is the machine's own again. */
export async function endReboots(): Promise<void> {
  for (const { target } of readMounts().entries) if (target === BOOT_ID) await runToEnd('umount', [target]);
}
