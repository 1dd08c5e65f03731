/** What a node with no other rights than a node's asks for: what it may, and no more often than it has to. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { mountsBelow } from '../demo/machine.ts';
import { until } from '../until.ts';
import { attachmentOf, claim, inUse, MINUTES, withAttacher } from './attached-world.ts';
import {
  type AuditedRequest,
  clusterObstacle,
  deletePod,
  makeContent,
  makePod,
  placeOf,
  sharedCluster,
} from './cluster-world.ts';
import { ATTACHMENTS, attachmentsIn } from './test-attacher.ts';

const skip = clusterObstacle();
const here = { cluster: sharedCluster(), skip };
/** `K8S_PODS=250` makes 1,000 mounts of it, four pods to a claim; the gate has fewer. */
const CLAIMS = Math.ceil(Number(process.env['K8S_PODS'] ?? 16) / 4);
const CANARY = 'canary-9c1e55';

const CLAIM_READ = /^\/api\/v1\/namespaces\/default\/persistentvolumeclaims\/([^/?]+)$/;

function countOf(all: readonly AuditedRequest[], verb: string, path: RegExp): number {
  return all.filter((one) => one.verb === verb && path.test(one.path)).length;
}

withAttacher(
  here,
  'many pods at once: nothing is asked that a node may not, and a claim is read at most once for each pod of it',
  'many.example.com',
  async ({ world, shared, admin, driver, makeDisk }) => {
    const claims = Array.from({ length: CLAIMS }, (_, index) => `many-${index}`);
    for (const one of claims) await makeDisk(one);
    await world.startAgent();
    await world.untilRegistered(driver);
    const pods = claims.flatMap((one) => [1, 2, 3, 4].map((number) => `${one}-${number}`));
    await Promise.all(pods.map((pod) => makePod(admin, pod, claim(pod.replace(/-\d+$/, '')))));
    for (const pod of pods) await world.untilReady(pod);
    const up = shared.requests();
    await Promise.all(pods.map((pod) => deletePod(admin, pod)));
    await world.untilEmpty();
    await until('all are detached', async () => (await attachmentsIn(admin)).length === 0, MINUTES);
    assert.deepEqual(mountsBelow(world.root), []);
    assert.deepEqual(await inUse(admin), []);
    assert.deepEqual(shared.refusals(), []);

    const refused = up.filter(({ status }) => status === 403);
    const answered = up.filter(({ status }) => status === 200);
    const reads = countOf(answered, 'get', CLAIM_READ);
    const reports = countOf(up, 'patch', /\/nodes\/[^/]+\/status$/);
    const attachments = countOf(answered, 'get', /\/volumeattachments\//);
    process.stderr.write(
      `# ${pods.length} mounts: ${reads} reads of claims, ${attachments} of attachments, ${reports} reports, ` +
        `${refused.length} refused of ${up.length} requests: ` +
        `${[...new Set(refused.map(({ verb, path }) => `${verb} ${path.replace(/[^/]*$/, '')}`))].join(', ')}\n`,
    );
    // One read, begun after they were seen, is good for several pods.
    assert.ok(reads >= CLAIMS && reads <= pods.length, `${reads} reads of claims`);
    assert.ok(reports <= 2 + CLAIMS, `${reports} reports of what is in use`);
  },
);

withAttacher(
  here,
  'what a pod is given in secret is in no event, log or status of what it waits for; its token is asked for once',
  'secret.example.com',
  async ({ world, shared, admin, attacher, driver, makeDisk }) => {
    attacher.wait(true);
    await makeDisk('secret');
    await makeContent(admin, 'Secret', 'password', CANARY);
    await world.startAgent();
    await world.untilRegistered(driver);
    const sources = [{ serviceAccountToken: { path: 'token', expirationSeconds: 3_600 } }];
    await makePod(admin, 'secret', {
      ...claim('secret'),
      password: { secret: { secretName: 'password' } },
      access: { projected: { sources } },
    });
    const both = await world.until('the secret is there', ({ pods }) =>
      ['password', 'access'].every((volume) =>
        pods.some(({ volumes }) => volumes.some(({ name, state }) => name === volume && state === 'mounted')),
      ),
    );
    assert.equal(readFileSync(join(placeOf(both, 'secret', 'password'), 'word'), 'utf8'), CANARY);
    const token = readFileSync(join(placeOf(both, 'secret', 'access'), 'token'), 'utf8');
    const { name, uid } =
      (await attachmentOf(admin, driver))?.metadata ?? assert.fail('it is to be attached');
    const message = 'login failed for user storage';
    await admin.request('MERGE', `${ATTACHMENTS}/${name}/status`, {
      metadata: { uid },
      status: { attached: false, attachError: { time: new Date().toISOString(), message } },
    });
    const waiting = await world.until('it is told why', ({ pods }) =>
      /login failed for/.test(JSON.stringify(pods)),
    );
    const events = '/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dsecret';
    await until(
      'an event of it',
      async () => /WaitingForAttachment/.test(JSON.stringify(await admin.request('GET', events))),
      MINUTES,
    );
    const told = JSON.stringify([waiting, await admin.request('GET', events)]);
    const log = readFileSync(world.logOf('agent'), 'utf8');
    for (const secret of [CANARY, token]) {
      assert.ok(!told.includes(secret), 'it is in the status or in an event');
      assert.ok(!log.includes(secret), 'it is in the log');
    }
    attacher.wait(false);
    await world.untilReady('secret');
    const tokens = shared
      .requests()
      .filter(({ verb, path, status }) => verb === 'create' && path.endsWith('/token') && status === 201);
    assert.equal(tokens.length, 1);
    const body = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as {
      readonly 'kubernetes.io': { readonly pod: { readonly name: string } };
    };
    assert.equal(body['kubernetes.io'].pod.name, 'secret');
    await deletePod(admin, 'secret');
    await world.untilEmpty();
    await until('it is detached', async () => (await attachmentOf(admin, driver)) === undefined, MINUTES);
    assert.deepEqual(shared.refusals(), []);
  },
);
