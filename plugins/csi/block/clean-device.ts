/** Is nobody left on this machine who could still write to a device? For a volume in quarantine (CSI pull 477). */
import { printable } from '../../../mount/text/printable.ts';
import { done, fail, type Result } from '../../../mount/failure.ts';
import type { DeviceNumber, Host } from '../../../mount/host.ts';

const BLOCKER_BYTES_MAX = 512;

/** As VolumePlugin.verifyClean. What could not be looked at is that failure, never an answer. */
export async function verifyClean(
  host: Pick<Host, 'findDeviceUsers'>,
  devices: readonly DeviceNumber[],
): Promise<Result<void>> {
  for (const device of devices) {
    const users = await host.findDeviceUsers(device);
    if (!users.ok) return users;
    if (users.value.length === 0) continue;
    const blocker = printable(users.value.join(', '), BLOCKER_BYTES_MAX);
    const message = `device ${device} is still used on this node: ${blocker}`;
    return fail({ code: 'device-in-use', message, effect: 'none', blocker });
  }
  return done;
}
