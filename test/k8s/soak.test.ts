/**
 * Hours of a node, in little: pods come and go while others stay, and the API server is killed and started again
 * and again: no mount of who stays is lost, the agent does not grow, and what it watches is what its pods name.
 * `npm run soak` takes half an hour; `SOAK_MINUTES` says how long it takes, and how often the server is started anew.
 */
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { test } from 'node:test';
import { mountsBelow } from '../demo/machine.ts';
import { inWorld, type World } from '../interop/world.ts';
import { until } from '../until.ts';
import { MINUTES } from './attached-world.ts';
import {
  type Cluster,
  clusterObstacle,
  deletePod,
  makeContent,
  makeCsiDriver,
  makeImage,
  makePod,
  makeVolume,
  placeOf,
  sharedCluster,
} from './cluster-world.ts';

const skip = clusterObstacle();
const cluster = sharedCluster();
const MINUTE_MS = 60_000;
/** The gate has as much as shows that it goes on, with few who stay. */
const SOAK_MINUTES = Number(process.env['SOAK_MINUTES'] ?? 0.5);
const RESTART_MINUTES = Math.min(10, SOAK_MINUTES / 3);
const RESIDENTS = SOAK_MINUTES < 10 ? 3 : 10;
const DRIVER = 'soak.example.com';
/** What V8 keeps after a burst is not a leak; one that grows with each pod is more than this in half an hour. */
const GROWTH_MAX = 1.25;
/** Before, the agent is still growing to the size that it has at work. */
const GROWTH_TOLD_MINUTES = 10;

const residentOf = (index: number): string => `stays-${index}`;

function residentMegabytes(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes) / 1_024;
}

interface WatchLine {
  readonly auditID: string;
  readonly stage: string;
  readonly verb: string;
  readonly requestURI: string;
  readonly user: { readonly username: string };
}

/** The names of secrets and config maps that the node watches, by what the server has written down since then. */
function watchedNames({ plane }: Cluster, sinceBytes: number): readonly string[] {
  const open = new Map<string, string>();
  const lines = readFileSync(plane.auditLog).subarray(sinceBytes).toString().split('\n');
  for (const line of lines) {
    if (!line.includes('"verb":"watch"') || !line.endsWith('}')) continue;
    const { auditID, stage, requestURI, user } = JSON.parse(line) as WatchLine;
    if (!user.username.startsWith('system:node:')) continue;
    const named = /\/(secrets|configmaps)\?.*fieldSelector=metadata\.name%3D([^&]+)/.exec(requestURI);
    if (stage === 'ResponseStarted' && named !== null) open.set(auditID, `${named[1]}/${named[2]}`);
    if (stage === 'ResponseComplete' || stage === 'Panic') open.delete(auditID);
  }
  return [...open.values()].sort();
}

async function makeResidents(world: World, { admin }: Cluster): Promise<void> {
  for (let index = 0; index < RESIDENTS; index += 1) {
    const name = residentOf(index);
    await makeContent(admin, 'Secret', name, 'quiet');
    await makeContent(admin, 'ConfigMap', name, 'blue');
    await makeVolume(admin, name, DRIVER, await makeImage(world, name));
    await makePod(admin, name, {
      data: { persistentVolumeClaim: { claimName: name } },
      key: { secret: { secretName: name } },
      settings: { configMap: { name } },
    });
  }
  for (let index = 0; index < RESIDENTS; index += 1) await world.untilReady(residentOf(index));
}

test(`${SOAK_MINUTES} minutes of a node whose API server is started again and again: nothing is lost, nothing grows`, {
  skip,
}, async (t) => {
  const shared = await cluster();
  const { admin, plane } = shared;
  await makeCsiDriver(admin, DRIVER, false);
  await inWorld(async (world) => {
    await world.startLoopfile(world.socketOf(DRIVER), '--name', DRIVER, '--registry', world.registry);
    const agent = await world.startAgent();
    await world.untilRegistered(DRIVER);
    await makeResidents(world, shared);
    const mounted = (): readonly string[] =>
      mountsBelow(world.root)
        .filter(({ target }) => !target.includes('kubernetes.io~empty-dir'))
        .map(({ mountId, target }) => `${mountId} ${target}`);
    const before = mounted();
    const wanted = ['configmaps', 'secrets'].flatMap((kind) =>
      Array.from({ length: RESIDENTS }, (_, index) => `${kind}/${residentOf(index)}`),
    );
    const sizes: number[] = [];
    const beginMs = Date.now();
    let [pods, restarts, sinceBytes] = [0, 0, 0];
    for (; Date.now() - beginMs < SOAK_MINUTES * MINUTE_MS; pods += 1) {
      if ((Date.now() - beginMs) / MINUTE_MS >= (restarts + 1) * RESTART_MINUTES) {
        restarts += 1;
        sinceBytes = statSync(plane.auditLog).size;
        await shared.restartApiServer();
      }
      const name = `comes-${pods}`;
      await makeContent(admin, 'ConfigMap', name, 'red');
      await makePod(admin, name, {
        memory: { emptyDir: { medium: 'Memory' } },
        settings: { configMap: { name } },
      });
      const place = placeOf(await world.untilReady(name), name, 'settings');
      assert.equal(readFileSync(`${place}/word`, 'utf8'), 'red');
      await deletePod(admin, name);
      await world.until(`${name} to be gone`, (status) => !status.pods.some((pod) => pod.name === name));
      await admin.request('DELETE', `/api/v1/namespaces/default/configmaps/${name}`);
      sizes.push(residentMegabytes(agent.pid));
      assert.deepEqual(mounted(), before, `after ${pods} pods`);
    }
    await until(
      'the watches to be those of the pods that stay',
      () => watchedNames(shared, sinceBytes).join() === wanted.sort().join(),
      MINUTES,
    ).catch(() => assert.deepEqual(watchedNames(shared, sinceBytes), wanted));
    const [early, late] = [sizes.slice(0, sizes.length / 2), sizes.slice(sizes.length / 2)].map((half) =>
      Math.max(...half),
    );
    const [first, last] = [Math.round(early ?? 0), Math.round(late ?? 0)];
    t.diagnostic(`${pods} pods, ${restarts} starts of the API server, at most ${first} and then ${last} MB`);
    assert.ok(restarts > 0 && pods > 0);
    const isTold = SOAK_MINUTES >= GROWTH_TOLD_MINUTES;
    assert.ok(
      !isTold || last <= first * GROWTH_MAX,
      `${first} MB in the first half, ${last} MB in the second`,
    );
    for (let index = 0; index < RESIDENTS; index += 1) await deletePod(admin, residentOf(index));
    await world.untilEmpty();
    assert.deepEqual(mountsBelow(world.root), []);
    assert.deepEqual(shared.refusals(), []);
  }, `kubeconfig: ${plane.nodeKubeconfig}`);
});
