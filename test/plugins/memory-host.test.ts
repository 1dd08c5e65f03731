import assert from 'node:assert/strict';
import { type AbsolutePath, below, type DeviceNumber } from '../../mount/host.ts';
import { deviceContract } from '../contract/device.ts';
import { ownershipContract } from '../contract/ownership.ts';
import { createMemoryHost } from './memory-host.ts';

const root = '/world' as AbsolutePath;

deviceContract('MemoryHost', async () => {
  const host = createMemoryHost();
  host.plant(root, { kind: 'directory' });
  let processes = 6;
  return {
    root,
    newHost: async () => host,
    addDevice: async () => {
      const block = host.devices.add();
      const node = below(root, `node-${block.replace(':', '-')}`);
      host.plant(node, { kind: 'block', block });
      return node;
    },
    replace: async (node) => {
      const disk = await host.identifyDisk(node);
      const device = (disk.ok ? disk.value?.device : undefined) as DeviceNumber;
      host.devices.remove(device);
      return host.devices.add() === device;
    },
    takeAway: async (target) => host.takeAway(target),
    open: async (node) => {
      const found = await host.deviceOf(node);
      const device = (found.ok ? found.value : undefined) as DeviceNumber;
      assert.ok(device !== undefined);
      processes += 1;
      const who = `pid ${processes} (dd)`;
      host.devices.open(device, who);
      return async () => host.devices.close(device, who);
    },
  };
});

ownershipContract('MemoryHost', async () => {
  const host = createMemoryHost();
  host.plant(root, { kind: 'directory' });
  return { host, root };
});
