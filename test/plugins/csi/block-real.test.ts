/** Block volumes on the real kernel: device nodes, binds of them, and the loop device that holds one open. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { type AbsolutePath, parseAbsolutePath } from '../../../mount/host.ts';
import type { RemoteCall, RemoteReply } from '../../../mount/remote-call.ts';
import { createLinuxHost } from '../../../mount/agent-side/linux-host.ts';
import { createCsiPlugin } from '../../../plugins/csi/csi-plugin.ts';
import type { NodePublishVolumeRequest } from '../../../plugins/csi/wire/generated/csi.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import { BROKER_COMMAND } from '../../real/broker-command.ts';
import { inPrivateNamespace } from '../../real/namespace.ts';
import { accept, refuse } from './answers.ts';
import { BLOCK_SPEC, createBlockWorld, INSTANCE, type Manner } from './block-world.ts';

const skip = inPrivateNamespace() || withoutLoop();

function withoutLoop(): string | false {
  try {
    execFileSync('losetup', ['--find'], { stdio: 'pipe' });
    return false;
  } catch {
    process.stderr.write('\n*** SKIPPED: block volumes on the real kernel: no loop devices here ***\n\n');
    return 'no loop devices';
  }
}

function losetup(...argv: readonly string[]): string {
  return execFileSync('losetup', argv, { encoding: 'utf8' }).trim();
}

async function realWorld(t: TestContext, manner: Manner) {
  const root = mkdtempSync(join(tmpdir(), 'mooring-block-')) as AbsolutePath;
  const image = join(root, 'image');
  const descriptor = openSync(image, 'w');
  ftruncateSync(descriptor, 1_048_576);
  closeSync(descriptor);
  const disk = losetup('--find', '--show', image);
  const state = { disk };
  const host = await createLinuxHost({
    remote: async <Request, Reply>(call: RemoteCall<Request, Reply>): Promise<RemoteReply<Reply>> => {
      drive(manner, state.disk, call.method.path, call.request as Partial<NodePublishVolumeRequest>);
      return { kind: 'ok', reply: {} as Reply };
    },
    watch: () => () => {},
    brokerCommand: BROKER_COMMAND,
  });
  const top = parseAbsolutePath(join(root, 'state')) ?? assert.fail();
  const layout = createLayout(top);
  mkdirSync(layout.pods, { recursive: true, mode: 0o750 });
  const plugin = createCsiPlugin({
    host,
    layout,
    nodeName: 'node-a',
    drivers: { get: () => INSTANCE, suspect: () => undefined },
    parallelPublish: () => false,
  });
  const call = createBlockWorld().call();
  const places = layout.blockPublication(call.publication);
  t.after(async () => {
    await host.releaseDevice(places.held);
    await host.close();
    losetup('--detach', disk);
    for (const path of [places.held, places.published])
      if (existsSync(path)) execFileSync('sh', ['-c', `umount ${path} 2>/dev/null || true`]);
    rmSync(root, { recursive: true, force: true });
  });
  return { host, layout, plugin, call, places, state };
}

/** A driver that makes the device at the target in one of the two ways drivers do. */
function drive(
  manner: Manner,
  disk: string,
  path: string,
  { targetPath = '' }: Partial<NodePublishVolumeRequest>,
) {
  if (path.endsWith('/NodePublishVolume') && !existsSync(targetPath)) {
    if (manner === 'mknod') execFileSync('cp', ['--archive', disk, targetPath]);
    else execFileSync('sh', ['-c', `: > ${targetPath} && mount --bind ${disk} ${targetPath}`]);
  }
  if (path.endsWith('/NodeUnpublishVolume') && existsSync(targetPath)) {
    if (manner === 'bind') execFileSync('umount', [targetPath]);
    rmSync(targetPath);
  }
}

function leftBelow(directory: string): readonly string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map(({ name }) => name);
}

for (const manner of ['bind', 'mknod'] as const) {
  test(`KV-D3, KV-D5: a device published by ${manner} is the pod's, held open, and gone without a trace`, {
    skip,
  }, async (t) => {
    const { host, layout, plugin, call, places, state } = await realWorld(t, manner);
    accept(await plugin.stage(call));
    const first = accept(await plugin.publish(call));
    assert.deepEqual(accept(await plugin.publish(call)), first, 'again is the same mount');
    const device = accept(await host.deviceOf(state.disk as AbsolutePath));
    assert.equal(first.mount?.blockDevice, device);
    assert.equal(readlinkSync(places.link), places.published);
    assert.equal(lstatSync(places.held).rdev, lstatSync(state.disk).rdev);
    const holding = losetup('--list', '--noheadings', '--raw', '--output', 'NAME,BACK-FILE')
      .split('\n')
      .filter((line) => line.endsWith(` ${places.held}`));
    assert.equal(holding.length, 1);
    accept(await plugin.unpublish(call));
    accept(await plugin.unstage(call));
    assert.deepEqual([...leftBelow(layout.blockDevices), ...leftBelow(layout.pods)], []);
    assert.deepEqual(readdirSync(layout.pods), []);
    assert.deepEqual(readdirSync(layout.blockDevices).sort(), ['publish', 'staging']);
    assert.ok(!losetup('--list', '--noheadings', '--raw', '--output', 'BACK-FILE').includes(places.held));
    accept(await plugin.unpublish(call));
  });
}

test('k/k#34437: a target that became another device is not given to the pod', { skip }, async (t) => {
  const { plugin, call, places, state, layout } = await realWorld(t, 'mknod');
  accept(await plugin.publish(call));
  const image = join(layout.root, 'other');
  const descriptor = openSync(image, 'w');
  ftruncateSync(descriptor, 1_048_576);
  closeSync(descriptor);
  const other = losetup('--find', '--show', image);
  t.after(() => losetup('--detach', other));
  state.disk = other;
  rmSync(places.published);
  assert.deepEqual(refuse(await plugin.publish(call)), { code: 'device-changed', effect: 'unknown' });
  assert.ok(!existsSync(places.link));
  accept(await plugin.unpublish(call));
  const again = accept(await plugin.publish(call));
  assert.ok(again.mount?.blockDevice?.endsWith(`:${other.replace(/\D+/, '')}`));
  accept(await plugin.unpublish({ ...call, spec: BLOCK_SPEC }));
});
