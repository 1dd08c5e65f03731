/** The kinds of volume that this agent has. */
import { createTurns } from '../../mount/process/turns.ts';
import type { Log } from '../../mount/process/log.ts';
import type { Ground } from '../../mount/ground.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import { createMounter } from '../../mount/mounter.ts';
import type { Attachment } from '../../plugins/csi/attach/attachment.ts';
import { createCsiPlugin, type CsiPlugin } from '../../plugins/csi/csi-plugin.ts';
import type { RunningDriverRegistry } from '../../plugins/csi/driver/driver-registry.ts';
import { guardMounts } from '../../plugins/guard/mount-guard.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { PluginRegistry } from '../../plugins/plugin.ts';
import { volumeKinds } from '../../plugins/kinds/kinds.ts';
import { bindSubpaths } from '../../plugins/subpath/subpath-plugin.ts';
import { createRegistry } from '../../plugins/kinds/plugin-registry.ts';
import type { OperationTimes } from '../timing/operation-times.ts';
import type { Config } from '../config/config.ts';
import type { VolumesHere } from './volumes-here.ts';

export interface PluginsParts {
  readonly host: Host;
  readonly config: Config;
  readonly attachment?: Attachment | undefined;
  readonly operationTimes: Pick<OperationTimes, 'timed'>;
  /** hostPath volumes at, below or above one of these are refused, wherever links lead. */
  readonly deniedHostPaths: readonly AbsolutePath[];
  readonly volumesHere: Pick<VolumesHere, 'list'>;
  readonly log: Pick<Log, 'warn'>;
}

/** Every kind of volume, each behind the guard of its mounts. */
export function createPlugins(
  { host, config, attachment, operationTimes, deniedHostPaths, volumesHere, log }: PluginsParts,
  layout: Layout,
  drivers: RunningDriverRegistry,
  ground: Ground,
): {
  readonly plugins: PluginRegistry;
  readonly csi: Pick<CsiPlugin, 'storageHealth' | 'hidden'>;
} {
  const mounter = createMounter(host, layout.root);
  const parallelSockets = new Set(
    config.staticDrivers.filter((one) => one.parallelPublish).map(({ socket }) => socket),
  );
  const csi = createCsiPlugin({
    host,
    layout,
    drivers,
    nodeName: config.nodeName,
    deadlineMs: config.csiDeadlineMs,
    attachment,
    volumesHere: (driver) => volumesHere.list(driver),
    onUndetached: ({ id, driver }, node) =>
      log.warn('volume may still be attached', { volume: id, driver, node, code: 'driver-unimplemented' }),
    forceFields: (driver) => config.drivers.get(driver)?.forceFields ?? false,
    parallelPublish: (driver) => {
      const endpoint = drivers.get(driver)?.endpoint.path;
      return (
        config.drivers.get(driver)?.parallelPublish ??
        (endpoint !== undefined && parallelSockets.has(endpoint))
      );
    },
  });
  const turns = createTurns();
  const plugins = volumeKinds().map(({ create, traits }) => {
    const plugin = create({ host, layout, mounter, csi, deniedHostPaths });
    return operationTimes.timed(
      guardMounts(
        { host, layout, ground, traits },
        bindSubpaths({ host, layout, ground, mounter, traits, turns }, plugin),
      ),
    );
  });
  return { plugins: createRegistry(plugins), csi };
}
