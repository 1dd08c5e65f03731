import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { openPool } from '../../plugins/loopfile/pool/pool.ts';
import { createVolumeCommand } from '../../plugins/loopfile/volume-command.ts';
import { detachLoopDevices, loopDevicesBelow } from '../demo/machine.ts';
import { cannotRun } from '../plugins/loopfile/world.ts';
import { inPrivateNamespace } from '../real/namespace.ts';
import { DRIVER, type Fault, FAULTS } from './broken-driver.ts';
import { createDriveWorld, troubles } from './drive-world.ts';

const skip = inPrivateNamespace() || cannotRun('losetup', 'mkfs.ext4', 'resize2fs');
/** Duties that are about something else: a planted fault is named by its own duty and not by everything. */
const BYSTANDERS = ['identity', 'node-info', 'volume-context'];

const DEADLINE_MS = 20_000;
const SHORT_DEADLINE_MS = 10_000;

for (const [fault, duty] of Object.entries(FAULTS) as readonly (readonly [Fault, string])[]) {
  test(`a driver with the fault ${fault} is named by ${duty}`, { skip, timeout: 600_000 }, async () => {
    const world = createDriveWorld();
    try {
      const only = [...BYSTANDERS, duty];
      const deadlineMs = fault === 'stats-hang' ? SHORT_DEADLINE_MS : DEADLINE_MS;
      const report = await world.run(world.broken(fault), { only, deadlineMs });
      const named = report.verdicts.filter(({ kind }) => kind === 'fail').map((verdict) => verdict.duty);
      assert.deepEqual(named, [duty], troubles(report).join('\n'));
      assert.equal(report.good, false);
    } finally {
      await detachLoopDevices(world.directory, loopDevicesBelow(world.directory));
      world.close();
    }
  });
}

test('without a fault the wrapper passes what it passes on', { skip, timeout: 600_000 }, async () => {
  const world = createDriveWorld();
  try {
    const only = [...new Set(Object.values(FAULTS))].filter((duty) => duty !== 'attach' && duty !== 'health');
    const report = await world.run(world.broken(''), { only });
    assert.deepEqual(troubles(report), []);
  } finally {
    world.close();
  }
});

test('A-075: a driver that claims health and tells it as it should passes', {
  skip,
  timeout: 600_000,
}, async () => {
  const world = createDriveWorld();
  try {
    const report = await world.run(world.broken('healthy'), { only: ['health'] });
    assert.deepEqual(troubles(report), []);
    assert.deepEqual(report.verdicts[0]?.remarks, ['a fresh volume has health status 1 (PoolFull)']);
  } finally {
    world.close();
  }
});

test('a driver that looks at the form of a handle first is asked with one that it gave out itself', {
  skip,
  timeout: 600_000,
}, async () => {
  const world = createDriveWorld();
  try {
    const report = await world.run(world.broken('strict-handles'), { only: ['errors', 'clean-up'] });
    assert.deepEqual(troubles(report), []);
    const [errors] = report.verdicts;
    assert.equal(errors?.kind, 'pass');
  } finally {
    world.close();
  }
});

test('a node plugin that says CONTROLLER_SERVICE, and whose controller serves another socket, passes', {
  skip,
  timeout: 600_000,
}, async () => {
  const world = createDriveWorld();
  try {
    const pool = await openPool(join(world.directory, 'pool'), undefined);
    const wish = { driver: DRIVER, name: 'given', size: '16Mi', fsType: 'ext4', yaml: false } as const;
    const handle = (await createVolumeCommand(pool, wish)).trim();
    const only = ['identity', 'node-info', 'capabilities', 'attach', 'publish', 'volume-context'];
    const report = await world.run(world.broken('controller-elsewhere'), { only, volumeHandles: [handle] });
    assert.deepEqual(troubles(report), []);
    const findings = report.verdicts.find(({ duty }) => duty === 'attach')?.findings;
    assert.deepEqual(findings, ['the driver claims CONTROLLER_SERVICE and does not serve it at this socket']);
  } finally {
    world.close();
  }
});
