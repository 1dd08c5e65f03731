import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { truncateSync, writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { fail, ok, type Result } from '../../../mount/failure.ts';
import { type AbsolutePath, below, type Clock, type DeviceNumber } from '../../../mount/host.ts';
import { createDeviceHold } from '../../../mount/agent-side/device-hold.ts';
import { createToolBroker } from '../../../mount/agent-side/tool-broker.ts';
import { detacherOf } from '../../machine/loop-devices.ts';
import { BROKER_COMMAND } from '../../real/broker-command.ts';
import { inPrivateProcesses } from '../../real/namespace.ts';
import { value } from '../../value.ts';
import { scratchDirectory } from '../scratch.ts';

const skip = inPrivateProcesses();
const IMAGE_BYTES = 1_048_576;

/** The name of a loop device that shows it: `loop3`. */
function attach(t: TestContext, image: AbsolutePath): string {
  writeFileSync(image, '');
  truncateSync(image, IMAGE_BYTES);
  const device = execFileSync('losetup', ['--find', '--show', '--', image], { encoding: 'utf8' }).trim();
  t.after(detacherOf(device));
  return device.slice('/dev/'.length);
}

function fileOf(name: string): string {
  return spawnSync('cat', [`/sys/block/${name}/loop/backing_file`], { encoding: 'utf8' }).stdout.trim();
}

const NO_WAIT: Clock = {
  nowMs: () => 0,
  wallMs: () => 0,
  timer(_delayMs, fire) {
    setImmediate(fire);
    return () => {};
  },
};

test('a loop device that was given to somebody else since the look is left to him', { skip }, async (t) => {
  const root = scratchDirectory(t);
  const [ours, theirs] = [below(root, 'ours'), below(root, 'theirs')];
  const held = attach(t, ours);
  const other = attach(t, theirs);
  const tools = createToolBroker({ command: BROKER_COMMAND });
  t.after(() => tools.close());
  const looks = [[other, held], [other], []];
  const { releaseDevice } = createDeviceHold({
    runTool: (request) => tools.run(request),
    deadlineMs: 60_000,
    clock: NO_WAIT,
    nodeOf: async () => ok(undefined),
    loopsOf: async () => ok(looks.shift() ?? []),
  });
  value(await releaseDevice(ours));
  assert.deepEqual([fileOf(held), fileOf(other)], ['', theirs]);
  assert.deepEqual(looks, [], 'each look was made');
});

/** A machine on which somebody detaches the first `stolen` loop devices that are made. */
function machineOfThieves(stolen: number) {
  const node = { device: '8:0' as DeviceNumber, fileSystem: '0:6', inode: '42' };
  let made = 0;
  const hold = createDeviceHold({
    async runTool({ argv }) {
      if (argv.includes('--find')) made += 1;
      const stdout = argv.includes('--list') ? `${node.fileSystem} ${node.inode}` : '';
      return ok({ exitCode: 0, signal: undefined, deadlinePassed: false, stdout, stderr: '' });
    },
    deadlineMs: 60_000,
    clock: NO_WAIT,
    nodeOf: async () => ok(node),
    loopsOf: async () => ok(made > stolen ? ['loop3'] : []),
  });
  return { ...hold, made: () => made };
}

test('a hold that somebody ends as soon as it is made is made once more, and not for ever', async () => {
  const path = '/held' as AbsolutePath;
  const twice = machineOfThieves(2);
  value(await twice.holdDevice(path));
  assert.equal(twice.made(), 3);
  const always = machineOfThieves(Number.POSITIVE_INFINITY);
  const refused = await always.holdDevice(path);
  assert.deepEqual(refused.ok ? 'ok' : [refused.failure.code, refused.failure.effect], [
    'input-output',
    'unknown',
  ]);
  assert.equal(always.made(), 3);
});

test('what could not be looked at once a hold was made is not said to be held by nothing', async () => {
  const looks = [ok([])];
  const unseen: Result<never> = fail({ code: 'broker-lost', message: 'no broker', effect: 'none' });
  const { holdDevice } = createDeviceHold({
    runTool: async () =>
      ok({ exitCode: 0, signal: undefined, deadlinePassed: false, stdout: '', stderr: '' }),
    deadlineMs: 60_000,
    clock: NO_WAIT,
    nodeOf: async () => ok({ device: '8:0' as DeviceNumber, fileSystem: '0:6', inode: '42' }),
    loopsOf: async () => looks.shift() ?? unseen,
  });
  const refused = await holdDevice('/held' as AbsolutePath);
  assert.deepEqual(refused.ok ? 'ok' : [refused.failure.code, refused.failure.effect], [
    'broker-lost',
    'unknown',
  ]);
});
