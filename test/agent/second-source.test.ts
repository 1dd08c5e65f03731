/** A source beside the manifests that makes the same objects anew all the time: nothing comes of that. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TokenSource } from '../../agent/source/token-source.ts';
import { NO_TOKENS, tokensJson } from '../../agent/source/token-source.ts';
import { CAPABILITY } from '../plugins/csi/scripted-driver.ts';
import { GrpcStatus } from '../../plugins/csi/wire/grpc-service.ts';
import { agentWorld, DUTY_DRIVER, until, untilSettled } from './duties-world.ts';
import { claimSource, claimYaml, csiDriverYaml, podYaml, secretYaml, volumeYaml } from './manifests.ts';
import { memorySource } from './memory-source.ts';

const SECRETS = ['controllerPublish', 'nodeStage', 'nodePublish', 'nodeExpand'];
const CLUSTER = {
  pods: podYaml('app', { data: claimSource('data') }),
  claims: claimYaml('data'),
  volumes: volumeYaml('pv-data', {
    csi: SECRETS.map((one) => `${one}SecretRef: {namespace: default, name: login}`).join(', '),
  }),
  secrets: secretYaml('login', { word: 'first' }),
};
const CLUSTER_FILES = Object.fromEntries(
  Object.entries(CLUSTER).map(([name, text]) => [`${name}.yaml`, text]),
);
const ATTACHES = { controllerCapabilities: [CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME] };
const READINGS = 20;

const turn = () => new Promise((resolve) => setTimeout(resolve, 5));

test('pods of both sources are set up, and equal objects made anew repeat no call', async () => {
  const server = memorySource('server', CLUSTER);
  const file = { 'web.yaml': podYaml('web') };
  const world = await agentWorld(file, ATTACHES, {}, {}, { sources: [server] });
  await untilSettled(world);
  assert.deepEqual(
    world
      .status()
      .pods.map(({ name }) => name)
      .sort(),
    ['app', 'web'],
  );
  const before = world.asked();
  for (let reading = 0; reading < READINGS; reading += 1) {
    server.say();
    await turn();
  }
  await untilSettled(world);
  assert.deepEqual(world.asked(), before);
  assert.deepEqual(
    before.filter((method) => method.startsWith('Node')),
    ['NodeStageVolume', 'NodePublishVolume'],
  );
});

test('equal secrets made anew end no back-off, another one does', async () => {
  const server = memorySource('server', CLUSTER);
  let refused = 0;
  const world = await agentWorld(
    {},
    {
      ...ATTACHES,
      before: (method) => {
        if (method !== 'NodeStageVolume') return;
        refused += 1;
        throw new GrpcStatus(13, 'no');
      },
    },
    { back_off: { first_ms: 60_000, max_ms: 60_000 } },
    {},
    { sources: [server] },
  );
  const isBackingOff = () =>
    world.agent.view().reconciler.idle() &&
    world.status().volumes.some(({ reason }) => reason?.kind === 'waiting-retry');
  await until('it was refused', () => refused === 1 && isBackingOff());
  for (let reading = 0; reading < READINGS; reading += 1) {
    server.say();
    await turn();
  }
  assert.deepEqual([refused, isBackingOff()], [1, true]);
  server.say({ ...CLUSTER, secrets: secretYaml('login', { word: 'second' }) });
  await until('it is tried again', () => refused === 2);
});

test('nothing is taken down while one of two sources was not read yet', async () => {
  const server = memorySource('server');
  server.say(undefined, { complete: false });
  const world = await agentWorld(CLUSTER_FILES, {}, { vanished_hold_ms: 0 }, {}, { sources: [server] });
  await until('it is published', () => world.asked().includes('NodePublishVolume'));
  world.write({});
  await until('it is gone', () => world.agent.view().desiredObjects.pods.size === 0);
  await turn();
  assert.ok(!world.asked().includes('NodeUnpublishVolume'));
  server.say(undefined, {});
  await until('it is down', () => world.asked().includes('NodeUnstageVolume'));
});

test('tokens that come later set up what waited for them', async () => {
  let isThere = false;
  let tell = (): void => {};
  const json = tokensJson(new Map([['', { token: 't', expirationTimestamp: '2030-01-01T00:00:00Z' }]]));
  const tokens: TokenSource = {
    ...NO_TOKENS,
    tokensFor: (pod, requests) => (isThere ? { kind: 'tokens', json } : NO_TOKENS.tokensFor(pod, requests)),
    onChange: (listener) => {
      tell = listener;
      return () => {};
    },
  };
  const files = {
    'app.yaml': podYaml('app', { data: claimSource('data') }),
    'pv.yaml': `${claimYaml('data')}---\n${volumeYaml('pv-data')}`,
    'driver.yaml': csiDriverYaml(DUTY_DRIVER, '{attachRequired: false, tokenRequests: [{audience: ""}]}'),
  };
  const world = await agentWorld(files, {}, {}, {}, { tokens });
  await until('it waits', () => world.status().pods[0]?.volumes[0]?.reason?.code === 'token-missing');
  isThere = true;
  tell();
  await untilSettled(world);
  assert.ok(world.asked().includes('NodePublishVolume'));
});
