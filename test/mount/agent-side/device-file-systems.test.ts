/** What is made of the ends of the tools that make, check and grow file systems. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDeviceFileSystems } from '../../../mount/agent-side/device-file-systems.ts';
import { done, ok } from '../../../mount/failure.ts';
import type { AbsolutePath } from '../../../mount/host.ts';
import type { ToolReport } from '../../../mount/tool.ts';

const DEVICE = '/dev/vdb' as AbsolutePath;

/** Tools that end so, on a device that nobody uses. */
function endingWith(end: Partial<ToolReport>) {
  const report = { exitCode: undefined, signal: undefined, deadlinePassed: false, stdout: '', stderr: '' };
  return createDeviceFileSystems({
    runTool: () => Promise.resolve(ok({ ...report, ...end })),
    proveBlank: () => Promise.resolve(done),
    isDeviceChangeable: () => Promise.resolve(ok(true)),
  });
}

for (const exitCode of [0, 1, 2, 3])
  test(`a file system of which e2fsck says ${exitCode} is good: clean, or made so`, async () => {
    assert.deepEqual(await endingWith({ exitCode }).checkFileSystem(DEVICE, 'ext4'), done);
  });

for (const exitCode of [4, 5, 12])
  test(`a file system of which e2fsck says ${exitCode} has errors left, and needs a person`, async () => {
    const checked = await endingWith({ exitCode }).checkFileSystem(DEVICE, 'ext4');
    assert.ok(!checked.ok);
    const { code, message, blocker } = checked.failure;
    assert.equal(code, 'device-content');
    assert.match(message, /needs a person: run e2fsck \/dev\/vdb/);
    assert.equal(blocker, DEVICE);
  });

const UNFINISHED: readonly Partial<ToolReport>[] = [
  { exitCode: 8, stderr: '/dev/vdb is in use.' },
  { exitCode: 16 },
  { exitCode: 32 },
  { exitCode: 128 },
  { signal: 'SIGKILL' },
];
for (const end of UNFINISHED)
  test(`nobody is sent to the device by an e2fsck that could not check (${end.signal ?? end.exitCode})`, async () => {
    const checked = await endingWith(end).checkFileSystem(DEVICE, 'ext4');
    assert.ok(!checked.ok);
    const { code, message, effect } = checked.failure;
    assert.equal(code, 'mount-failed');
    assert.doesNotMatch(message, /needs a person/);
    assert.match(message, /e2fsck/);
    assert.equal(effect, 'unknown');
  });

/** Each tool ends as it is said, in the order of the calls. */
function endingInTurn(...ends: readonly Partial<ToolReport>[]) {
  const left = [...ends];
  const report = { exitCode: undefined, signal: undefined, deadlinePassed: false, stdout: '', stderr: '' };
  return createDeviceFileSystems({
    runTool: () => Promise.resolve(ok({ ...report, ...left.shift() })),
    proveBlank: () => Promise.resolve(done),
    isDeviceChangeable: () => Promise.resolve(ok(true)),
  });
}

const GROWTHS: readonly [string, readonly Partial<ToolReport>[], string][] = [
  [
    'resize2fs refuses twice, and it is whole',
    [{ exitCode: 1 }, { exitCode: 0 }, { exitCode: 1 }, { exitCode: 0 }],
    'expand-infeasible none',
  ],
  [
    'resize2fs refuses twice, and has broken it',
    [{ exitCode: 1 }, { exitCode: 0 }, { exitCode: 1 }, { exitCode: 4 }],
    'device-content unknown',
  ],
  [
    'resize2fs refuses, and is killed',
    [{ exitCode: 1 }, { exitCode: 0 }, { signal: 'SIGKILL' }],
    'mount-failed unknown',
  ],
  [
    'resize2fs refuses, and takes too long',
    [{ exitCode: 1 }, { exitCode: 0 }, { deadlinePassed: true }],
    'deadline-passed unknown',
  ],
];
for (const [what, ends, expected] of GROWTHS)
  test(`what follows when ${what}`, async () => {
    const grown = await endingInTurn(...ends).growFileSystem({
      device: DEVICE,
      type: 'ext4',
      mountPoint: undefined,
    });
    assert.ok(!grown.ok);
    assert.equal(`${grown.failure.code} ${grown.failure.effect}`, expected);
  });

test('a device is read anew right before it is proven to be blank, and without that nothing is made', async () => {
  for (const exitCode of [0, 1]) {
    const asked: string[] = [];
    const systems = createDeviceFileSystems({
      runTool: ({ tool, argv }) => {
        asked.push([tool, ...argv].join(' '));
        const report = { signal: undefined, deadlinePassed: false, stdout: '', stderr: '' };
        return Promise.resolve(ok({ ...report, exitCode }));
      },
      proveBlank: () => {
        asked.push('proof');
        return Promise.resolve(done);
      },
      isDeviceChangeable: () => Promise.resolve(ok(true)),
    });
    const made = await systems.makeFileSystem(DEVICE, 'ext4');
    const anew = `blockdev --flushbufs ${DEVICE}`;
    assert.deepEqual(asked, exitCode === 0 ? [anew, 'proof', `mkfs.ext4 -q -- ${DEVICE}`] : [anew]);
    const answer = made.ok ? 'ok' : `${made.failure.code} ${made.failure.effect}`;
    assert.equal(answer, exitCode === 0 ? 'ok' : 'input-output none');
  }
});

test('no tool that writes to a device is killed after minutes: of a large one each may take hours', async () => {
  const deadlines = new Map<string, number>();
  const systems = createDeviceFileSystems({
    runTool: ({ tool, deadlineMs }) => {
      deadlines.set(tool, Math.min(deadlineMs, deadlines.get(tool) ?? deadlineMs));
      const report = { signal: undefined, deadlinePassed: false, stdout: '', stderr: '' };
      return Promise.resolve(ok({ ...report, exitCode: tool === 'resize2fs' ? 1 : 0 }));
    },
    proveBlank: () => Promise.resolve(done),
    isDeviceChangeable: () => Promise.resolve(ok(true)),
  });
  const mountPoint = '/mnt' as AbsolutePath;
  for (const type of ['ext4', 'xfs', 'btrfs'] as const) {
    await systems.makeFileSystem(DEVICE, type);
    await systems.checkFileSystem(DEVICE, type);
    await systems.growFileSystem({ device: DEVICE, type, mountPoint });
  }
  const writing = ['mkfs.ext4', 'mkfs.xfs', 'mkfs.btrfs', 'e2fsck', 'resize2fs', 'xfs_growfs', 'btrfs'];
  assert.deepEqual([...deadlines.keys()].filter((tool) => tool !== 'blockdev').sort(), writing.sort());
  for (const tool of writing) assert.equal(deadlines.get(tool), 24 * 3_600_000, tool);
});
