/** The witness can fail: an illegal call among the agent's own makes the case fail, by the name of the duty. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAbsolutePath } from '../../mount/host.ts';
import type { RemoteMethod } from '../../mount/remote-call.ts';
import { NodeService } from '../../plugins/csi/wire/generated/csi.ts';
import { createGrpcRemote } from '../../plugins/csi/wire/grpc.ts';
import { readCalls } from './call-record.ts';
import { goPrograms } from './go-program.ts';
import { documents, pod, volumeAndClaim } from './manifests.ts';
import { isMounted, type Mock, startMock, targetOf, UID, VOLUME } from './mock.ts';
import { inWorld, type World } from './world.ts';
import { signalProcess } from '../signal.ts';

const { skip, files } = goPrograms('mock-driver', 'registrar');
const CALL_MS = 10_000;

/** A call by somebody who is not the agent, answered or not. */
async function plant<Request>(mock: Mock, method: RemoteMethod<Request, unknown>, request: Request) {
  const path = parseAbsolutePath(mock.witness.front);
  assert.ok(path !== undefined);
  const remote = createGrpcRemote();
  try {
    return await remote.call({ socket: { path, inode: 1 }, method, request, deadlineMs: CALL_MS });
  } finally {
    remote.close();
  }
}

/** A whole life of a volume under the agent; `middle` takes the pod away. Rejects as the case would fail. */
function life(middle: (world: World, mock: Mock) => Promise<void>): Promise<void> {
  return inWorld(async (world) => {
    await world.startAgent();
    const mock = await startMock(world, { files, kind: 'with-hands' });
    world.putManifest('web.yaml', documents(volumeAndClaim(VOLUME), pod('web', UID, VOLUME.name)));
    await world.untilReady('web');
    assert.ok(isMounted(targetOf(world, UID, VOLUME.name)));
    await middle(world, mock);
    await world.untilEmpty();
  });
}

test('a volume that is unstaged while it is published fails the case, by A-058', { skip }, () =>
  assert.rejects(
    life(async (world, mock) => {
      const stagingTargetPath = readCalls(mock.record).find(
        ({ begin }) => begin === 'NodeStageVolume',
      )?.staging;
      const request = { volumeId: VOLUME.handle, stagingTargetPath: stagingTargetPath ?? '' };
      assert.equal((await plant(mock, NodeService.nodeUnstageVolume, request)).kind, 'ok');
      world.removeManifest('web.yaml');
    }),
    /against the rules[\s\S]*A-058 1 unstaged while its publication at \S+ is yes/,
  ),
);

test(
  'a look at a volume beside a call of the agent that is still open fails the case, by A-076',
  { skip },
  () =>
    assert.rejects(
      life(async (world, mock) => {
        signalProcess(mock.driver.pid, 'SIGSTOP');
        const unpublish = mock.witness.arrival('NodeUnpublishVolume');
        world.removeManifest('web.yaml');
        await unpublish;
        const look = mock.witness.arrival('NodeGetVolumeStats');
        const volumePath = targetOf(world, UID, VOLUME.name);
        const request = { volumeId: VOLUME.handle, volumePath, stagingTargetPath: '' };
        const planted = plant(mock, NodeService.nodeGetVolumeStats, request);
        await look;
        signalProcess(mock.driver.pid, 'SIGCONT');
        await planted;
      }),
      /against the rules[\s\S]*A-076 NodeGetVolumeStats while NodeUnpublishVolume of 1 is open/,
    ),
);
