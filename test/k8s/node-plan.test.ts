/** `mooring plan` as a node of a cluster: it only reads, and what it says is what an agent does then. */
import assert from 'node:assert/strict';
import type { PlanDocument } from '../../agent/plan/plan-document.ts';
import { mountsBelow } from '../demo/machine.ts';
import { NODE } from '../interop/world.ts';
import { until } from '../until.ts';
import { attachmentOf, claim, isFree, MINUTES, nodeStatus, withAttacher } from './attached-world.ts';
import { clusterObstacle, deletePod, makePod, sharedCluster } from './cluster-world.ts';
import { ATTACHMENTS } from './test-attacher.ts';

const skip = clusterObstacle();
const here = { cluster: sharedCluster(), skip };
const WAIT = ['--timeout', '60s'] as const;

const volumeOf = (plan: PlanDocument) => plan.volumes.find(({ kind }) => kind === 'csi');

withAttacher(
  here,
  'a plan keeps what is attached and writes nothing; what lost its attachment it would take from its pod: exit code 3',
  'planned.example.com',
  async ({ world, shared, admin, driver, makeDisk }) => {
    const volume = await makeDisk('planned');
    const first = await world.startAgent();
    await world.untilRegistered(driver);
    await makePod(admin, 'planned', claim('planned'));
    await world.untilSettled('planned');
    await first.end('SIGTERM');
    const mounts = mountsBelow(world.root).map(({ mountId }) => mountId);
    const status = JSON.stringify(await nodeStatus(admin));
    const before = shared.requests().length;

    const kept = await world.plan('--adopt', ...WAIT);
    assert.equal(kept.code, 0, JSON.stringify(kept.plan));
    const stands = volumeOf(kept.plan);
    assert.deepEqual([kept.plan.whole, kept.plan.disturbed, kept.plan.refusal], [true, 0, null]);
    assert.deepEqual([stands?.id, stands?.unexplained], [volume, null]);
    assert.ok(stands?.places.every(({ action, listed }) => listed && action !== 'take-down'));
    const asked = shared.requests().slice(before);
    assert.ok(asked.some(({ path }) => path.startsWith('/api/v1/pods')));
    const wrote = asked.filter(({ verb }) => !['get', 'list', 'watch'].includes(verb));
    assert.deepEqual(
      wrote.filter(({ user }) => user === `system:node:${NODE}`),
      [],
      'of the node nothing was written',
    );
    assert.equal(JSON.stringify(await nodeStatus(admin)), status);

    const attachment = (await attachmentOf(admin, driver)) ?? assert.fail('there is an attachment');
    const path = `${ATTACHMENTS}/${attachment.metadata.name}`;
    await admin.request('MERGE', path, { metadata: { finalizers: null } });
    await admin.request('DELETE', path, { preconditions: { uid: attachment.metadata.uid } });
    const lost = await world.plan('--adopt', ...WAIT);
    assert.equal(lost.code, 3, JSON.stringify(lost.plan));
    assert.equal(lost.plan.disturbed, 1);
    const goes = volumeOf(lost.plan);
    assert.deepEqual([goes?.stage, goes?.places.map(({ action }) => action)], ['take-down', ['take-down']]);
    assert.match(goes?.unexplained ?? '', new RegExp(attachment.metadata.name));
    assert.deepEqual(
      mountsBelow(world.root).map(({ mountId }) => mountId),
      mounts,
      'a plan touches nothing',
    );

    await world.startAgent('--adopt');
    await world.until('it is in quarantine, as was planned', ({ volumes }) =>
      volumes.some(({ quarantine }) => /^attachment-/.test(quarantine?.reason ?? '')),
    );
    await until('it is out of quarantine', () => isFree(world, volume), MINUTES);
    await world.untilReady('planned');
    await deletePod(admin, 'planned');
    await world.untilEmpty();
  },
);
