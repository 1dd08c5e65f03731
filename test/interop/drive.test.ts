/**
 * `mooring drive`, the command from its source, on a driver nobody here wrote: it must name the flaws that are known,
 * each by the right duty, and no other; and on the bundled driver with everything it has, which must pass.
 */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { goPrograms } from './go-program.ts';
import { DRIVER } from './mock.ts';
import { AGENT_COMMAND, inWorld, LOOPFILE_COMMAND, NODE, type World } from './world.ts';

const { skip, files } = goPrograms('mock-driver', 'registrar');
const DRIVE_MS = 240_000;
const FAULTS = ['fault-delay', 'fault-lost-reply', 'fault-unreached', 'fault-refused', 'fault-aborted'];

/** What is used of docs' DriveReport. */
interface Report {
  readonly good: boolean;
  readonly verdicts: readonly {
    readonly duty: string;
    readonly verdict: 'pass' | 'fail' | 'skipped' | 'blocked';
    readonly findings: readonly string[];
    readonly remarks: readonly string[];
  }[];
}

/** In a mount namespace of its own; the report, and the exit code that must go with it. */
async function drive(world: World, endpoint: string, flags: readonly string[], driver: readonly string[]) {
  const options = ['--endpoint', `unix://${endpoint}`, '--directory', world.scratch, '--size', '32Mi'];
  const seed = ['--seed', '1', '--output', 'json'];
  const argv = [...AGENT_COMMAND, 'drive', ...options, ...seed, ...flags, '--', ...driver];
  const program = world.start('drive', argv);
  const late = setTimeout(() => void program.end('SIGTERM'), DRIVE_MS);
  const { code } = await program.ended;
  clearTimeout(late);
  const words = program.said();
  assert.ok(words.startsWith('{'), words);
  const report = JSON.parse(words) as Report;
  assert.equal(code, report.good ? 0 : 1);
  return report;
}

function of(report: Report, ...kinds: readonly Report['verdicts'][number]['verdict'][]): readonly string[] {
  return report.verdicts.filter(({ verdict }) => kinds.includes(verdict)).map(({ duty }) => duty);
}

type Flaws = Readonly<Record<string, RegExp>>;

/** Exactly these duties are broken, and each for this reason alone. */
function assertFlaws(report: Report, flaws: Flaws): void {
  assert.deepEqual(of(report, 'fail', 'blocked').toSorted(), Object.keys(flaws).toSorted(), shown(report));
  for (const { duty, findings } of report.verdicts) {
    for (const finding of findings) {
      const known = flaws[duty];
      if (known !== undefined) assert.match(finding, known, duty);
    }
  }
}

function shown({ verdicts }: Report): string {
  return verdicts
    .filter(({ verdict }) => verdict === 'fail' || verdict === 'blocked')
    .map(({ duty, findings }) => `${duty}: ${findings.join('; ')}`)
    .join('\n');
}

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
