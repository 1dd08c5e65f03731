/**
 * `mooring drive`, the command from its source, on a driver nobody here wrote: it must name the flaws that are known,
 * each by the right duty, and no other; and on the bundled driver with everything it has, which must pass.
 */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertFlaws, drive, FAULTS, type Flaws, of, type Report, shown } from './drive-report.ts';
import { goPrograms } from './go-program.ts';
import { DRIVER } from './mock.ts';
import { inWorld, LOOPFILE_COMMAND, NODE, type World } from './world.ts';

const { skip, files } = goPrograms('mock-driver', 'registrar');
/** Its book is in memory: a driver that was started again knows no volume but the three it is born with. */
const FORGETS = /(, after the driver was killed in the middle of it|after a restart): NOT_FOUND/;
/** k8s.io/kubernetes v1.36.2, test/e2e/storage/drivers/csi-test/mock/service: where each is in the source. */
const MOCK_FLAWS: Flaws = {
  // It keeps its book of stages and publications in the volume_context that it gives out.
  'volume-context': /^CreateVolume again gave another context$/,
  // NodePublishVolume never looks at staging_target_path.
  errors: /^NodePublishVolume without staging_target_path: OK, expected FAILED_PRECONDITION$/,
  restart: FORGETS,
  'kill-stage': FORGETS,
  'kill-publish': FORGETS,
  'kill-unpublish': FORGETS,
  'kill-unstage': FORGETS,
};
const MOCK_FLAGS = ['--attach', '--expand', '--condition'];
const MOCK_SKIPPED = ['propagation'];

async function driveMock(
  world: World,
  driveFlags: readonly string[],
  mockFlags: readonly string[],
): Promise<Report> {
  const endpoint = join(world.scratch, 'csi.sock');
  // It waits for the driver, which `drive` starts.
  world.start('registrar', [files.registrar, '--endpoint', endpoint, '--registry', world.registry]);
  const driver = [files['mock-driver'], '--endpoint', `unix://${endpoint}`, '--name', DRIVER];
  const registration = ['--registration', world.registry];
  return drive(world, endpoint, [...registration, ...driveFlags], [...driver, ...MOCK_FLAGS, ...mockFlags]);
}

test(
  'the mock driver with hands: its flaws are named by their duties, and Mooring converges on it',
  { skip },
  () =>
    inWorld(async (world) => {
      const report = await driveMock(world, ['--faults'], ['--state', join(world.scratch, 'state')]);
      assertFlaws(report, {
        ...MOCK_FLAWS,
        // It takes every target for a directory, and says INTERNAL of the file that a block volume is published as.
        block: /^NodePublishVolume as block again: INTERNAL: .*: not a directory$/,
        // What it mounted before it was killed it has forgotten, and answers NOT_FOUND when it is to go.
        'clean-up':
          /^(restart|kill-publish|kill-unpublish): (still mounted at pod-1\/mount|pod-1\/mount is left)$/,
      });
      assert.deepEqual(of(report, 'skipped'), MOCK_SKIPPED);
      assert.ok(FAULTS.every((fault) => of(report, 'pass').includes(fault)));
    }),
);

test('the mock driver as it comes: that it mounts nothing is named wherever a mount is due', { skip }, () =>
  inWorld(async (world) => {
    const report = await driveMock(world, [], []);
    const nothing = /said OK, but nothing is mounted at the target$/;
    assertFlaws(report, {
      ...MOCK_FLAWS,
      restart: new RegExp(`${FORGETS.source}|${nothing.source}`),
      publish: nothing,
      'read-only': nothing,
      concurrency: nothing,
      unpublish: /^published again after it was unpublished, but not mounted$/,
      block: /^published as block, but the target is no block device \(directory\)$/,
      'clean-up': /^(restart|kill-publish|kill-unpublish): pod-1\/mount is left$/,
    });
    assert.deepEqual(of(report, 'skipped'), MOCK_SKIPPED);
  }),
);

test(
  'the bundled driver, killed and started again, and Mooring on it through every fault: all pass',
  { skip },
  () =>
    inWorld(async (world) => {
      const endpoint = join(world.scratch, 'csi.sock');
      const registry = join(world.scratch, 'registry');
      mkdirSync(registry, { mode: 0o750 });
      const own = ['--pool', world.pool, '--endpoint', `unix://${endpoint}`, '--node-id', NODE, '--attach'];
      const driver = [...LOOPFILE_COMMAND, ...own, '--registry', registry];
      const flags = ['--registration', registry, '--block', '--faults'];
      const report = await drive(world, endpoint, flags, [process.execPath, ...driver]);
      assert.equal(report.good, true, shown(report));
      assert.deepEqual(of(report, 'skipped').toSorted(), ['health', 'propagation']);
      assert.ok(FAULTS.every((fault) => of(report, 'pass').includes(fault)));
    }),
);
