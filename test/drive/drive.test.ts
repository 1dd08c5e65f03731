import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { DUTY_NAMES } from '../../agent/drive/duties.ts';
import { NO_DRIVE_SECRETS } from '../../agent/drive/rig/drive-options.ts';
import { loopDevicesBelow, mountsBelow } from '../demo/machine.ts';
import { cannotRun } from '../plugins/loopfile/world.ts';
import { inPrivateNamespace } from '../real/namespace.ts';
import { programArguments } from '../machine/program.ts';
import { createDriveWorld, type DriveWorld, path, troubles, verdictOf } from './drive-world.ts';
import { until } from '../until.ts';

const skip = inPrivateNamespace() || cannotRun('losetup', 'mkfs.ext4', 'resize2fs');
/** By the bundled driver as it is started here; and `propagation` needs a driver that lives elsewhere. */
const NOT_CLAIMED = ['registration', 'propagation', 'attach', 'health'];
const KILLS = ['restart', 'kill-stage', 'kill-publish', 'kill-unpublish', 'kill-unstage'];
const FAULTS = ['fault-delay', 'fault-lost-reply', 'fault-unreached', 'fault-refused', 'fault-aborted'];

function inWorld(title: string, story: (world: DriveWorld) => Promise<void>): void {
  test(title, { skip, timeout: 600_000 }, async () => {
    const world = createDriveWorld();
    try {
      await story(world);
      assert.deepEqual(mountsBelow(world.directory), []);
      assert.deepEqual(loopDevicesBelow(world.directory), []);
    } finally {
      world.close();
    }
  });
}

async function keepsAll(world: DriveWorld, only: readonly string[]): Promise<void> {
  const report = await world.run(world.loopfile, { only });
  assert.deepEqual(troubles(report), []);
  assert.equal(report.good, true);
  for (const duty of only.filter((one) => !NOT_CLAIMED.includes(one)))
    assert.equal(verdictOf(report, duty), 'pass', duty);
  const volumes = readdirSync(join(world.directory, 'pool')).filter((name) => name.startsWith('vol-'));
  assert.deepEqual(volumes, [], 'every volume was deleted');
}

inWorld('the bundled driver keeps every duty while it lives', async (world) => {
  await keepsAll(
    world,
    DUTY_NAMES.filter((duty) => !KILLS.includes(duty) && !FAULTS.includes(duty)),
  );
});

inWorld('the bundled driver keeps every duty when it is killed', (world) =>
  keepsAll(world, [...KILLS, 'clean-up']),
);

inWorld(
  'a volume that is there already is used, one as file system and another as block device',
  async (world) => {
    const [node = '', ...argv] = world.loopfile;
    const create = (name: string): string => {
      const pool = join(world.directory, 'pool');
      const program = argv.slice(0, argv.indexOf('--pool'));
      const words = ['create', '--pool', pool, '--name', name, '--size', '32Mi'];
      return execFileSync(node, [...program, ...words], { encoding: 'utf8' }).trim();
    };
    const volumeHandles = [create('files'), create('device')];
    const only = ['stage', 'publish', 'expand', 'block', 'restart', 'clean-up'];
    const report = await world.run(world.loopfile, {
      volumeHandles,
      block: true,
      only,
      sizeBytes: 32n * 2n ** 20n,
    });
    assert.deepEqual(troubles(report), []);
    assert.ok(report.verdicts.every(({ kind }) => kind === 'pass'));
  },
);

inWorld('a driver that attaches and registers itself is taken through both', async (world) => {
  const registry = join(world.directory, 'registry');
  mkdirSync(registry, { mode: 0o700 });
  const report = await world.run([...world.loopfile, '--attach', '--registry', registry], {
    registration: path(registry),
    only: ['registration', 'attach', 'publish', 'errors', 'clean-up'],
  });
  assert.deepEqual(troubles(report), []);
  assert.ok(report.verdicts.every(({ kind }) => kind === 'pass'));
});

inWorld('Mooring converges through every class of fault, in order', async (world) => {
  const secrets = {
    ...NO_DRIVE_SECRETS,
    stage: { password: 'sesame-open' },
    publish: { token: 'open-sesame' },
  };
  const report = await world.run(world.loopfile, { faults: true, secrets, only: [...FAULTS, 'clean-up'] });
  assert.deepEqual(troubles(report), []);
  for (const duty of FAULTS) assert.equal(verdictOf(report, duty), 'pass', duty);
});

inWorld(
  'what Mooring had set up when the run was interrupted is taken down through the driver',
  async (world) => {
    const interrupt = new AbortController();
    const set = { faults: true, only: ['fault-delay', 'clean-up'] };
    const run = world.run([...world.broken('publish-refused'), '--attach'], set, interrupt.signal);
    await until('Mooring has staged the volume', () => loopDevicesBelow(world.directory).length > 0);
    interrupt.abort();
    const { verdicts } = await run;
    assert.deepEqual(
      verdicts.map(({ duty, kind, findings }) => [duty, kind, findings]),
      [['fault-delay', 'skipped', ['interrupted']]],
    );
    const volumes = readdirSync(join(world.directory, 'pool')).filter((name) => name.startsWith('vol-'));
    assert.deepEqual(volumes, [], 'every volume was deleted');
  },
);

inWorld(
  'a driver that dies while Mooring is driven is said to, and started again for the rest',
  async (world) => {
    const set = { faults: true, only: ['fault-delay', 'fault-aborted', 'clean-up'] };
    const report = await world.run(world.broken('dies-once'), set);
    assert.deepEqual(
      report.verdicts.map(({ duty, kind }) => [duty, kind]),
      [
        ['fault-delay', 'fail'],
        ['fault-aborted', 'pass'],
        ['clean-up', 'pass'],
      ],
      troubles(report).join('\n'),
    );
    assert.match(troubles(report).join(), /the driver's process ended by itself/);
  },
);

/** A driver somebody else started: in the namespace of this test, with a shared directory for its mounts. */
async function startElsewhere(world: DriveWorld) {
  const [command = '', ...argv] = world.loopfile;
  const child = spawn(command, argv, { stdio: 'ignore' });
  await until('the driver listens', () => existsSync(world.socket));
  return async (): Promise<void> => {
    child.kill('SIGTERM');
    await once(child, 'exit');
  };
}

function command(...argv: readonly string[]) {
  return spawnSync(process.execPath, [...programArguments('agent/main.ts'), 'drive', ...argv], {
    encoding: 'utf8',
    timeout: 600_000,
  });
}

inWorld(
  'A-004: mounts of a driver that runs elsewhere are seen through a shared directory',
  async (world) => {
    const stop = await startElsewhere(world);
    const shared = join(world.directory, 'shared');
    mkdirSync(shared, { mode: 0o700 });
    execFileSync('mount', ['--bind', shared, shared]);
    execFileSync('mount', ['--make-shared', shared]);
    try {
      const argv = [
        '--endpoint',
        `unix://${world.socket}`,
        '--directory',
        shared,
        '--size',
        '16Mi',
        '-o',
        'json',
      ];
      const only = ['--only', 'propagation', 'publish', 'unpublish', 'restart', 'clean-up'];
      const { stdout, status, stderr } = command(...argv, ...only);
      const { verdicts, good } = JSON.parse(stdout);
      const kinds = verdicts.map((one: { duty: string; verdict: string }) => `${one.duty} ${one.verdict}`);
      assert.deepEqual(kinds, [
        'propagation pass',
        'publish pass',
        'unpublish pass',
        'restart skipped',
        'clean-up pass',
      ]);
      assert.equal(good, true);
      assert.equal(status, 0, stderr);
    } finally {
      execFileSync('umount', [shared]);
      await stop();
    }
  },
);

inWorld(
  'A-004: without propagation the cause is named, and the driver is not blamed for its mounts',
  async (world) => {
    const stop = await startElsewhere(world);
    const own = join(world.directory, 'own');
    mkdirSync(own, { mode: 0o700 });
    execFileSync('mount', ['--bind', own, own]);
    execFileSync('mount', ['--make-private', own]);
    try {
      const argv = ['--endpoint', `unix://${world.socket}`, '--directory', own, '--size', '16Mi'];
      const { stdout, status } = command(...argv, '--only', 'propagation,publish');
      assert.match(stdout, /propagation +FAIL[\s\S]*--make-rshared/);
      assert.match(stdout, /publish +blocked/);
      assert.equal(status, 1);
    } finally {
      execFileSync('umount', ['--recursive', own]);
      await stop();
    }
  },
);

inWorld('the command ends with 0 for a good driver, and leaves the machine as it was', async (world) => {
  const argv = ['--endpoint', `unix://${world.socket}`, '--directory', world.directory, '--size', '16Mi'];
  const good = command(
    ...argv,
    '--only',
    'identity,publish,kill-publish',
    '--seed',
    '3',
    '--',
    ...world.loopfile,
  );
  assert.equal(good.status, 0, good.stdout + good.stderr);
  assert.match(good.stdout, /kill-publish +pass/);
  assert.match(good.stdout, /3 passed, 0 failed, 0 skipped .*seed 3/);
  const bad = command(...argv, '--only', 'stats', '--', ...world.broken('stats-negative'));
  assert.equal(bad.status, 1);
  assert.match(bad.stdout, /stats +FAIL[\s\S]*negative/);
  const left = readdirSync(world.directory).filter((name) => name.startsWith('mooring-drive'));
  assert.deepEqual(left, []);
});

/** Mount namespaces that the process holds by a descriptor. */
function heldBy(pid: number | undefined): readonly string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).flatMap((name) => {
    try {
      return [readlinkSync(join(folder, name))].filter((link) => link.startsWith('mnt:'));
    } catch {
      return [];
    }
  });
}

inWorld('what is ended at last is the namespace of the run, not one that got its number', async (world) => {
  const drive = [...programArguments('agent/main.ts'), 'drive', '--endpoint', `unix://${world.socket}`];
  const words = ['--directory', world.directory, '--only', 'identity', '--', ...world.loopfile];
  const child = spawn(process.execPath, [...drive, ...words], { stdio: 'ignore' });
  const ended = once(child, 'exit');
  const [held] = await until('it holds the namespace', () => {
    const all = heldBy(child.pid);
    return all.length > 0 && all;
  });
  assert.notEqual(held, readlinkSync('/proc/self/ns/mnt'));
  assert.deepEqual(await ended, [0, null]);
});

inWorld(
  'wrong options are all named at once, and secrets are read from a file of the owner alone',
  async (world) => {
    const secrets = join(world.directory, 'secrets.yaml');
    writeFileSync(secrets, 'stage: {password: do-not-tell}\n', { mode: 0o644 });
    const wrong = command(
      '--endpoint',
      'tcp://x',
      '--size',
      'big',
      '--only',
      'stags',
      '--secrets-file',
      secrets,
    );
    assert.equal(wrong.status, 2);
    for (const part of ['--endpoint tcp://x', '--size big', 'did you mean stage?', 'chmod 600'])
      assert.ok(wrong.stderr.includes(part), wrong.stderr);
    assert.ok(!wrong.stderr.includes('do-not-tell'));
  },
);

inWorld('a driver that does not come up is shown with its last words', async (world) => {
  const argv = ['--endpoint', `unix://${world.socket}`, '--directory', world.directory];
  const { status, stderr } = command(...argv, '--', '/bin/sh', '-c', 'echo no licence found >&2; exit 3');
  assert.equal(status, 1);
  assert.match(stderr, /no licence found/);
});
