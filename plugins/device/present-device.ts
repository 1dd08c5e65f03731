/** Which disks this machine has now. */
import { ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, below, type DeviceNumber, type Host } from '../../mount/host.ts';

/** A link for each block device, by number, until the device is removed; whoever has it open keeps only its number. */
const PRESENT_DEVICES = below('/' as AbsolutePath, 'sys', 'dev', 'block');

/** Is the one no disk of this machine any more, and the other one? */
export async function isReplaced(
  host: Host,
  old: DeviceNumber | undefined,
  now: DeviceNumber,
): Promise<Result<boolean>> {
  const present = await isPresent(host, now);
  if (!present.ok || !present.value || old === undefined) return present.ok ? ok(false) : present;
  const still = await isPresent(host, old);
  return still.ok ? ok(!still.value) : still;
}

async function isPresent(host: Host, device: DeviceNumber): Promise<Result<boolean>> {
  const facts = await host.inspect(below(PRESENT_DEVICES, device));
  return facts.ok ? ok(facts.value.kind !== 'absent') : facts;
}
