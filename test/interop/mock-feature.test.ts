/**
 * Block volumes, inline volumes, expansion and statistics, with the CSI mock driver of the Kubernetes end-to-end tests:
 * what the driver was asked, and what the agent then shows of it.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loopDevicesBelow } from '../demo/machine.ts';
import { assertLegal, ladderCalls, ladderNames, readCalls, untilCalled } from './call-record.ts';
import { goPrograms } from './go-program.ts';
import { csiDriver, documents, pod, podWith, volumeAndClaim } from './manifests.ts';
import { readMetrics } from './metrics.ts';
import { DRIVER, isMounted, startMock, targetOf, UID, VOLUME } from './mock.ts';
import { inWorld } from './world.ts';

const { skip, files } = goPrograms('mock-driver', 'registrar');
const withHands = { files, kind: 'with-hands' } as const;

test('a block volume is a device in the pod, held open, and gone afterwards', { skip }, () =>
  inWorld(async (world) => {
    await world.startAgent();
    const { record, state } = await startMock(world, withHands);
    const block = { ...VOLUME, mode: 'Block' as const };
    const claim = `persistentVolumeClaim: { claimName: ${VOLUME.name} }`;
    world.putManifest(
      'web.yaml',
      documents(volumeAndClaim(block), podWith('web', UID, claim, 'volumeDevices')),
    );
    await world.untilReady('web');
    const link = join(world.pods, UID, 'volumeDevices/kubernetes.io~csi', VOLUME.name);
    assert.ok(lstatSync(link).isSymbolicLink());
    assert.ok(statSync(link).isBlockDevice());
    writeFileSync(link, 'raw bytes', { flag: 'r+', flush: true });
    assert.equal(readFileSync(join(state, '1.img')).subarray(0, 9).toString(), 'raw bytes');
    const publish = ladderCalls(readCalls(record)).at(-1);
    assert.equal(
      publish?.target,
      join(world.root, 'plugins/kubernetes.io/csi/volumeDevices/publish', VOLUME.name, UID),
    );
    assert.equal(
      publish?.staging,
      join(world.root, 'plugins/kubernetes.io/csi/volumeDevices/staging', VOLUME.name),
    );
    world.removeManifest('web.yaml');
    await world.untilEmpty();
    assertLegal(readCalls(record), { attach: false });
    assert.deepEqual(loopDevicesBelow(world.scratch), []);
    assert.ok(!existsSync(join(world.pods, UID)));
  }),
);

test(
  "an inline volume is published without a stage, under the kubelet's handle, and unpublished",
  { skip },
  () =>
    inWorld(async (world) => {
      await world.startAgent();
      const { record, state, witness } = await startMock(world, withHands);
      const inline = 'an inline volume has no stage: CSIDriver says so, which no capability can say';
      witness.excuse({
        duty: 'A-054',
        text: /^csi-[0-9a-f]{64} published while its stage is none/,
        because: inline,
      });
      witness.excuse({ duty: 'A-060', text: /^csi-[0-9a-f]{64} published without staging/, because: inline });
      const object = csiDriver(
        DRIVER,
        'attachRequired: false',
        'podInfoOnMount: true',
        'volumeLifecycleModes: [Ephemeral]',
      );
      const source = `csi: { driver: ${DRIVER}, volumeAttributes: { colour: blue } }`;
      world.putManifest('web.yaml', documents(object, podWith('web', UID, source)));
      await world.untilReady('web');
      assert.ok(isMounted(targetOf(world, UID, 'data')));
      const handle = `csi-${createHash('sha256').update(`${UID}data`).digest('hex')}`;
      const calls = ladderCalls(readCalls(record));
      assert.deepEqual(
        calls.map(({ begin, volume }) => [begin, volume]),
        [['NodePublishVolume', handle]],
      );
      assert.equal(calls[0]?.staging, undefined);
      const context = calls[0]?.volumeContext;
      assert.equal(context?.['csi.storage.k8s.io/ephemeral'], 'true');
      assert.equal(context?.['csi.storage.k8s.io/pod.name'], 'web');
      assert.equal(context?.['csi.storage.k8s.io/pod.uid'], UID);
      assert.equal(context?.['colour'], 'blue');
      assert.ok(existsSync(join(state, handle)));
      world.removeManifest('web.yaml');
      await world.untilEmpty();
      assert.deepEqual(ladderNames(readCalls(record)), ['NodePublishVolume', 'NodeUnpublishVolume']);
      assert.ok(!existsSync(join(state, handle)), 'the driver threw the volume away');
    }),
);

test('a volume that grew in the wish is expanded on the node, where it is published', { skip }, () =>
  inWorld(async (world) => {
    await world.startAgent();
    const { record } = await startMock(world, { ...withHands, flags: ['--expand'] });
    world.putManifest('volume.yaml', volumeAndClaim(VOLUME));
    world.putManifest('web.yaml', pod('web', UID, VOLUME.name));
    await world.untilReady('web');
    world.putManifest('volume.yaml', volumeAndClaim({ ...VOLUME, capacity: '2Gi' }));
    const wanted = 2 * 1_024 ** 3;
    const call = await untilCalled(record, ({ begin }) => begin === 'NodeExpandVolume');
    assert.equal(call.volume, '1');
    assert.equal(call.path, targetOf(world, UID, VOLUME.name));
    assert.equal(call.requiredBytes, wanted);
    const { volumes } = await world.until('the new size to be seen', ({ volumes: [volume] }) => {
      return volume?.size.current === `${wanted}` && volume.expansion.state === 'none';
    });
    assert.equal(volumes[0]?.size.wanted, `${wanted}`);
    world.removeManifest('web.yaml');
    await world.untilEmpty();
    assertLegal(readCalls(record), { attach: false });
  }),
);

/** What the driver says of each volume it is born with: 100 GiB, and neither what is used nor what is left. */
const MOCK_BYTES = `${100 * 1_024 ** 3}`;
const OFTEN = 'statistics_interval_ms: 1000';

test('statistics are asked of the published path, and are in the status and the metrics', { skip }, () =>
  inWorld(async (world) => {
    await world.startAgent();
    const { record } = await startMock(world, { ...withHands, flags: ['--condition'] });
    world.putManifest('web.yaml', documents(volumeAndClaim(VOLUME), pod('web', UID, VOLUME.name)));
    await world.untilReady('web');
    const call = await untilCalled(record, ({ begin }) => begin === 'NodeGetVolumeStats');
    assert.equal(call.path, targetOf(world, UID, VOLUME.name));
    const { volumes } = await world.until('the numbers to be seen', ({ volumes: [volume] }) => {
      return volume?.statistics?.bytes?.total === MOCK_BYTES;
    });
    assert.deepEqual(volumes[0]?.health, [], 'it has a condition, and a normal one');
    const claim = `{namespace="default",persistentvolumeclaim="${VOLUME.name}"}`;
    const lines = (await readMetrics(world.socket)).split('\n');
    assert.ok(lines.includes(`kubelet_volume_stats_capacity_bytes${claim} ${MOCK_BYTES}`), lines.join('\n'));
    assert.ok(lines.includes(`kubelet_volume_stats_health_status_abnormal${claim} 0`), lines.join('\n'));
    world.removeManifest('web.yaml');
    await world.untilEmpty();
    assertLegal(readCalls(record), { attach: false });
    assert.ok(!(await readMetrics(world.socket)).includes('kubelet_volume_stats_capacity_bytes{'));
  }, OFTEN),
);
