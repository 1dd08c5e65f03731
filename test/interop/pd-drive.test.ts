/** `mooring drive` on a storage driver of the field: its flaws by their duties, and Mooring through every fault. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertFlaws, drive, FAULTS, type Flaws, of } from './drive-report.ts';
import { goPrograms } from './go-program.ts';
import { pdCommand, withCloud } from './pd.ts';
import { asInGooglesCloud } from './pd-machine.ts';
import { inWorld } from './world.ts';

const { skip: obstacle, files } = goPrograms('pd-driver', 'registrar');
const skip = asInGooglesCloud(obstacle);

/** gcp-compute-persistent-disk-csi-driver v1.28.1, pkg/gce-pd-csi-driver: where each is in the source. */
const PD_FLAWS: Flaws = {
  // NodeStageVolume, "TODO(#253): Check volume capability matches for ALREADY_EXISTS": what is mounted is good enough.
  'stage-capability':
    /^a volume staged as a file system was staged again as a block device: OK, expected ALREADY_EXISTS$/,
  // getDevicePath says INTERNAL of a disk that is not there, and NodePublishVolume does not look for it at all.
  errors: /^Node(Stage|Publish|Expand)Volume of an unknown volume: INTERNAL: [\s\S]*, expected NOT_FOUND$/,
  // logGRPC prints whole requests at -v 4 and says why: its own volumes have no secrets.
  secrets: /^the driver prints a secret to its log$/,
};

/** To grow an ext4 that is mounted resize2fs needs CAP_SYS_RESOURCE; for xfs it takes what mount(8) takes. */
const FLAGS = ['--block', '--faults', '--size', '1Gi', '--fs-type', 'xfs'];

test("Google's disk driver: its flaws are named by their duties, and Mooring converges on it", { skip }, () =>
  inWorld((world) =>
    withCloud(world, async (cloud) => {
      const endpoint = join(world.scratch, 'csi.sock');
      const registry = join(world.scratch, 'registry');
      mkdirSync(registry, { mode: 0o750 });
      // It waits for the driver, which `drive` starts.
      world.start('registrar', [files.registrar, '--endpoint', endpoint, '--registry', registry]);
      const flags = ['--registration', registry, ...FLAGS];
      const report = await drive(world, endpoint, flags, pdCommand(files, cloud, endpoint));
      assertFlaws(report, PD_FLAWS);
      assert.deepEqual(of(report, 'skipped').toSorted(), ['health', 'propagation']);
      assert.ok(FAULTS.every((fault) => of(report, 'pass').includes(fault)));
      assert.ok(of(report, 'pass').includes('clean-up'));
      assert.deepEqual([...cloud.disks.keys()], [], 'every disk that was made is deleted');
    }),
  ),
);
