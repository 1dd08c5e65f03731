import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOperationTimes } from '../../../agent/timing/operation-times.ts';
import { done, fail, ok, type Result } from '../../../mount/failure.ts';
import type { VolumePlugin } from '../../../plugins/plugin.ts';
import { csiSpec } from '../../plugins/csi-spec.ts';

const SPEC = csiSpec('a.test', 'handle', 'pv', {});
const NAME = 'storage_operation_duration_seconds';

function world(publish: Result<{ readonly mount: undefined }> = ok({ mount: undefined })) {
  let nowMs = 0;
  const take = async <T>(spanMs: number, answer: T): Promise<T> => {
    nowMs += spanMs;
    return answer;
  };
  const plugin = {
    stage: () => take(300, ok({ stagedMount: undefined })),
    publish: () => take(100, publish),
    unpublish: () => take(700_000, done),
  } as unknown as VolumePlugin;
  const times = createOperationTimes({ nowMs: () => nowMs });
  const timed = times.timed(plugin);
  const act = async (verb: 'stage' | 'publish' | 'unpublish'): Promise<void> =>
    void (await timed[verb]({ spec: SPEC } as never));
  const lines = (part: string) =>
    times
      .text()
      .split('\n')
      .filter((line) => line.startsWith(`${NAME}_${part}`) && !line.startsWith('#'));
  return { act, lines };
}

test('what a mount takes is counted with its stage, once, in the buckets of the kubelet', async () => {
  const { act, lines } = world();
  await act('stage');
  assert.deepEqual(lines('count'), []);
  await act('publish');
  await act('publish');
  const labels =
    'migrated="false",operation_name="volume_mount",status="success",volume_plugin="kubernetes.io/csi:a.test"';
  assert.deepEqual(lines('count'), [`${NAME}_count{${labels}} 2`]);
  assert.deepEqual(lines('sum'), [`${NAME}_sum{${labels}} 0.5`]);
  assert.equal(lines('bucket').length, 14);
  assert.equal(lines('bucket')[0], `${NAME}_bucket{${labels},le="0.1"} 1`);
  assert.equal(lines('bucket')[2], `${NAME}_bucket{${labels},le="0.5"} 2`);
  assert.equal(lines('bucket')[13], `${NAME}_bucket{${labels},le="+Inf"} 2`);
});

test('what takes longer than all bounds is in the last bucket alone', async () => {
  const { act, lines } = world();
  await act('unpublish');
  assert.match(lines('bucket')[12] ?? '', /operation_name="volume_unmount".*le="600"\} 0$/);
  assert.match(lines('bucket')[13] ?? '', /le="\+Inf"\} 1$/);
});

test('a failure is one by its status, and what was not wanted any more is none', async () => {
  const failed = world(fail({ code: 'driver-failed', message: 'no', effect: 'unknown' }));
  await failed.act('publish');
  assert.match(failed.lines('count').join(), /status="fail-unknown".* 1$/);
  const unwanted = world(fail({ code: 'no-longer-wanted', message: 'no', effect: 'none' }));
  await unwanted.act('publish');
  assert.deepEqual(unwanted.lines('count'), []);
});
