/** docs/OPERATING.md: "transitions only; a failure that repeats is logged when its code changes". */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GrpcStatus } from '../../plugins/csi/grpc.ts';
import { agentWorld, until } from './duties-world.ts';
import { claimSource, claimYaml, podYaml, volumeYaml } from './manifests.ts';

test('a failure that repeats is logged once, and again when its code changes', {
  // ObstacleBook.replace forgets the last code as soon as the retry runs and nothing is in the way for a moment.
  todo: 'each retry is logged',
}, async () => {
  let attempts = 0;
  const world = await agentWorld(
    {
      'pod.yaml': podYaml('web', { v: claimSource('v') }),
      'v.yaml': claimYaml('v'),
      'pv.yaml': volumeYaml('pv-v'),
    },
    {
      before: (method) => {
        if (method !== 'NodeStageVolume') return;
        attempts += 1;
        throw new GrpcStatus(attempts <= 4 ? 13 : 7, 'no');
      },
    },
  );
  await until('six tries', () => attempts >= 6);
  const lines = world.log.filter((line) => line.includes('"event":"operation failed"'));
  const codes = lines.map((line) => (JSON.parse(line) as { readonly code: string }).code);
  assert.deepEqual(codes, ['driver-failed', 'driver-refused']);
});
