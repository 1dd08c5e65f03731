/** docs/OPERATING.md: "transitions only; a failure that repeats is logged when its code changes". */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GrpcStatus } from '../../plugins/csi/wire/grpc-service.ts';
import { agentWorld, until, untilSettled } from './duties-world.ts';
import { claimSource, claimYaml, podYaml, volumeYaml } from './manifests.ts';

const MANIFESTS = {
  'pod.yaml': podYaml('web', { v: claimSource('v') }),
  'v.yaml': claimYaml('v'),
  'pv.yaml': volumeYaml('pv-v'),
};

test('a failure that repeats is logged once, and again when its code changes', async () => {
  let attempts = 0;
  const world = await agentWorld(MANIFESTS, {
    before: (method) => {
      if (method !== 'NodeStageVolume') return;
      attempts += 1;
      throw new GrpcStatus(attempts <= 4 ? 13 : 7, 'no');
    },
  });
  await until('six tries', () => attempts >= 6);
  const lines = world.log.filter((line) => line.includes('"event":"operation failed"'));
  const codes = lines.map((line) => (JSON.parse(line) as { readonly code: string }).code);
  assert.deepEqual(codes, ['driver-failed', 'driver-refused']);
});

test('a failure that comes back after the operation went well is logged again', async () => {
  let attempts = 0;
  let health: 'well' | 'ill' = 'ill';
  const world = await agentWorld(MANIFESTS, {
    before: (method) => {
      if (method !== 'NodeStageVolume') return;
      attempts += 1;
      if (health === 'ill') throw new GrpcStatus(13, 'no');
    },
  });
  const failures = () => world.log.filter((line) => line.includes('"event":"operation failed"'));
  await until('three tries', () => attempts >= 3);
  assert.equal(failures().length, 1);
  health = 'well';
  await untilSettled(world);
  world.write({});
  await until('it is gone', () => world.status().volumes.length === 0);
  assert.equal(failures().length, 1);
  health = 'ill';
  world.write(MANIFESTS);
  await until('it is told again', () => failures().length === 2);
  const triesThen = attempts;
  await until('three tries more', () => attempts >= triesThen + 3);
  assert.equal(failures().length, 2);
});
