/** Which plugin serves which kind of volume. */
import { assert } from '../../mount/failure.ts';
import type { PluginRegistry, VolumePlugin } from '../plugin.ts';
import { kinds, traitsOf } from './kinds.ts';

/** Total over the kinds: a plugin missing or given twice is a broken invariant, found at start. */
export function createRegistry(plugins: readonly VolumePlugin[]): PluginRegistry {
  const byName = new Map(plugins.map((plugin) => [plugin.name, plugin]));
  assert(byName.size === plugins.length, 'no kind of volume has two plugins');
  for (const { plugin } of kinds()) assert(byName.has(plugin), `${plugin} has a plugin`);
  return {
    of(spec) {
      const plugin = byName.get(traitsOf(spec).plugin);
      assert(plugin !== undefined, `${spec.kind} has a plugin`);
      return plugin;
    },
  };
}
