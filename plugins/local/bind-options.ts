/** Mount options of a local volume, as a bind of it has them: those of one mount, and of no file system. Pure. */
import { fail, ok, type Result } from '../../mount/failure.ts';
import { MOUNT_FLAGS, type MountFlag } from '../../mount/part-bind.ts';
import type { LocalVolumeSpec } from './local-traits.ts';

/** What a mount has when it is not told otherwise. */
const DEFAULTS: ReadonlySet<string> = new Set(['defaults', 'bind', 'rw', 'suid', 'dev', 'exec']);

/**
 * `spec-invalid` for an option that mount(8) would leave out of a bind without a word: who has written it counts on it.
 * A device has been mounted with all of them.
 */
export function bindFlags(
  spec: Pick<LocalVolumeSpec, 'name' | 'mountOptions'>,
  { readOnly, isDevice }: { readonly readOnly: boolean; readonly isDevice: boolean },
): Result<readonly MountFlag[]> {
  const options = spec.mountOptions.filter((one) => (isDevice ? isFlag(one) : !DEFAULTS.has(one)));
  const wrong = options.find((one) => !isFlag(one));
  if (wrong === undefined) return ok([...new Set([...options.filter(isFlag), ...(readOnly ? RO : [])])]);
  const [name = ''] = wrong.split('=', 1);
  const message =
    `PersistentVolume ${spec.name}: a directory cannot have the mount option "${name.slice(0, 64)}", ` +
    `which is one of file systems; it can have ${MOUNT_FLAGS.join(', ')}`;
  return fail({ code: 'spec-invalid', message, effect: 'none' });
}

const RO: readonly MountFlag[] = ['ro'];

function isFlag(option: string): option is MountFlag {
  return (MOUNT_FLAGS as readonly string[]).includes(option);
}
