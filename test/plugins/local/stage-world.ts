/** The stages of disks on the real machine, below a directory of the test's own. */
import { mkdirSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { type AbsolutePath, below } from '../../../mount/host.ts';
import { createMounter } from '../../../mount/mounter.ts';
import { DeviceStage } from '../../../plugins/local/device-stage.ts';
import { realHost } from '../../mount/scratch.ts';
import { callOf } from '../local-world.ts';
import { localVolume } from './local-world.ts';

/** `volume`: of no wanted type, to be staged where nothing is yet. */
export async function stageWorld(t: TestContext, scratch: AbsolutePath) {
  const root = below(scratch, 'root');
  mkdirSync(root);
  const host = await realHost(t);
  const stage = new DeviceStage({ host, layout: { root }, mounter: createMounter(host, root) });
  const [target, intent] = [below(root, 'mounts', 'data'), below(root, 'formats', 'data')];
  const volume = { title: 'the disk', fsType: '', mountOptions: [], target, intent };
  return { root, host, stage, volume, call: callOf(localVolume()) };
}
