/** The sentences that every kind of volume keeps, for raw block volumes: a crash and a fault at each single effect. */
import { pluginContract, type PluginWorld } from '../../contract/plugin.ts';
import { BLOCK_SPEC, createBlockWorld, type Manner } from './block-world.ts';

function make(manner: Manner): PluginWorld {
  const world = createBlockWorld(manner);
  const { memory, layout } = world;
  const call = world.call();
  const { held, link, published } = layout.blockPublication(call.publication);
  return {
    plugin: () => world.plugin(),
    call,
    describe: world.describe,
    // What the pod's runtime finds behind the link, and what keeps it the same device.
    seen: () =>
      memory
        .describe(layout.root)
        .filter((line) => line.includes(link))
        .concat(memory.devices.holds().map(({ path, device }) => `${path} ${device}`))
        .concat([String(memory.depthAt(held)), String(memory.depthAt(published))]),
    depth: () => memory.depthAt(layout.mountPoint(BLOCK_SPEC, call.publication)),
    effects: memory.effects,
    calls: memory.calls,
    crashAt: memory.crashAt,
    failAt: memory.failAt,
  };
}

for (const manner of ['bind', 'mknod'] as const) {
  pluginContract(`a block volume of a driver that uses ${manner}`, () => make(manner));
}
