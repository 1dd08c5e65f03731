/** Is the machine such that an agent can work where it was started? */
import { done, fail, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import type { Log } from '../../mount/process/log.ts';
import { createLayout } from '../../plugins/layout/layout.ts';
import type { Config } from '../config/config.ts';
import { checkMountNamespace } from './mount-namespace.ts';

export interface CheckedLaunch {
  readonly config: Pick<Config, 'root' | 'allowPrivateMountNamespace'>;
  readonly log: Log;
  /** readlink of /proc/<process>/ns/mnt. */
  readonly mountNamespace: (process: 'self' | '1') => Result<string>;
}

export async function checkHost(
  { config, log, mountNamespace }: CheckedLaunch,
  host: Pick<Host, 'inspect' | 'readMountTable'>,
): Promise<Result<void>> {
  const answered = await host.inspect(config.root);
  if (!answered.ok) return answered;
  if (answered.value.kind !== 'directory') {
    return fail({
      code: 'path-wrong-kind',
      message: `the root ${config.root} is not a directory`,
      effect: 'none',
    });
  }
  const checked = checkMountNamespace({
    own: mountNamespace('self'),
    first: mountNamespace('1'),
    table: await host.readMountTable(config.root),
    root: config.root,
  });
  if (checked.ok || !config.allowPrivateMountNamespace) return checked;
  log.warn('mounts may stay invisible to pods', { message: checked.failure.message });
  return done;
}

/** A kubelet has worked below this root: `path-missing` where it has left no directory of pods. */
export async function checkKubeletRoot(
  host: Pick<Host, 'inspect'>,
  root: AbsolutePath,
): Promise<Result<void>> {
  const { pods } = createLayout(root);
  const facts = await host.inspect(pods);
  if (!facts.ok) return facts;
  if (facts.value.kind === 'directory') return done;
  const message = `no kubelet has worked below the root ${root}: it has no directory ${pods}; see --root`;
  return fail({ code: 'path-missing', message, effect: 'none', blocker: pods });
}
