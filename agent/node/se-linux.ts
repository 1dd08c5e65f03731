/** Does the kernel of this machine label files for SELinux? */
import { assert } from '../../mount/failure.ts';
import { type AbsolutePath, type Host, parseAbsolutePath } from '../../mount/host.ts';

/** Made by the kernel when SELinux is enabled, enforcing or permissive (selinuxfs). */
const SELINUX_ENFORCE: AbsolutePath | undefined = parseAbsolutePath('/sys/fs/selinux/enforce');

export async function hasSeLinux(host: Pick<Host, 'inspect'>): Promise<boolean> {
  assert(SELINUX_ENFORCE !== undefined, 'the path is one');
  const facts = await host.inspect(SELINUX_ENFORCE);
  return facts.ok && facts.value.kind !== 'absent';
}
