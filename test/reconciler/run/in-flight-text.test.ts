import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reasonSentence } from '../../../agent/status/sentence.ts';
import { stepStatus } from '../../../agent/status/status-step.ts';
import { createCallLanes } from '../../../plugins/csi/call/volume-call-queue.ts';
import type { Step } from '../../../plugins/step.ts';
import type { VolumeId } from '../../../plugins/volume.ts';
import type { VolumeInFlight } from '../../../reconciler/run/volume-operation.ts';
import { tellInFlight } from '../../../reconciler/run/in-flight-text.ts';
import { settled } from '../bench-host.ts';

const EFFECT_MS = 30_000;
const CALL_MS = 120_000;

function inFlight(step: Step, more: Partial<VolumeInFlight> = {}): VolumeInFlight {
  return {
    operation: { kind: 'stage', volume: 'data' as VolumeId },
    lane: 'driver',
    phase: 'running',
    sinceMs: 0,
    begunMs: 5_000,
    step: { ...step, sinceMs: 10_000, signMs: 10_000 },
    progress: undefined,
    setback: undefined,
    ...more,
  };
}

const told = (step: Step, nowMs: number, more: Partial<VolumeInFlight> = {}) =>
  tellInFlight(inFlight(step, more), nowMs, EFFECT_MS);

test('what waits behind another call of the volume is not running, and says behind which and since when', () => {
  const { kind, message, blocker, sinceMs, overdue } = told(
    { kind: 'queued', behind: 'NodePublishVolume of the same volume' },
    1_000_000,
  );
  assert.deepEqual(
    [kind, message, blocker, sinceMs, overdue],
    [
      'waiting-turn',
      'stage waits behind NodePublishVolume of the same volume',
      'NodePublishVolume of the same volume',
      10_000,
      false,
    ],
  );
});

test('what runs has run since its turn came, not since it was planned', () => {
  assert.equal(told({ kind: 'working' }, 20_000).sinceMs, 5_000);
});

test('a step is overdue after twice its deadline: of a call its own, of an effect of ours that of one effect', () => {
  const called: Step = { kind: 'called', rpc: 'NodeStageVolume', deadlineMs: CALL_MS };
  const isOverdue = (step: Step, forMs: number) => told(step, 10_000 + forMs).overdue;
  assert.deepEqual([isOverdue(called, 2 * CALL_MS), isOverdue(called, 2 * CALL_MS + 1)], [false, true]);
  for (const kind of ['working', 'recording'] as const)
    assert.deepEqual(
      [isOverdue({ kind }, 2 * EFFECT_MS), isOverdue({ kind }, 2 * EFFECT_MS + 1)],
      [false, true],
    );
  assert.ok(isOverdue({ kind: 'verifying', rpc: 'NodeStageVolume' }, 2 * EFFECT_MS + 1));
  assert.ok(!isOverdue({ kind: 'working', deadlineMs: 300_000 }, 500_000), 'a removal may take that long');
});

test('a sign of life puts the mark off', () => {
  const step = { kind: 'working', sinceMs: 10_000, signMs: 900_000 } as const;
  assert.equal(told(step, 910_000, { step, progress: '7 entries seen' }).overdue, false);
});

test('the sentence names the step, since when it goes, and that it is overdue', () => {
  const sentence = (step: Step, forMs: number): string => {
    const nowMs = 10_000 + forMs;
    const obstacle = told(step, nowMs);
    assert.ok(obstacle.step !== undefined);
    return reasonSentence(
      {
        kind: obstacle.kind,
        code: obstacle.kind,
        operation: 'stage',
        message: obstacle.message,
        blocker: obstacle.blocker ?? null,
        since: null,
        forMs: nowMs - obstacle.sinceMs,
        nextRetryInMs: null,
        attempts: 0,
        lastFailure: null,
        progress: null,
        step: stepStatus(obstacle.step, obstacle.overdue, nowMs, () => ''),
      },
      'driver',
    );
  };
  assert.equal(
    sentence({ kind: 'called', rpc: 'NodeStageVolume', deadlineMs: CALL_MS }, 20_000),
    'stage has been running for 25s: the driver has not answered NodeStageVolume for 20s, deadline 2m',
  );
  assert.equal(
    sentence({ kind: 'verifying', rpc: 'NodeStageVolume' }, 70_000),
    'stage has been running for 1m15s: ' +
      'the driver has answered NodeStageVolume, and the kernel is being asked for 1m10s; overdue',
  );
  assert.equal(
    sentence({ kind: 'queued', behind: 'NodePublishVolume of the same volume' }, 11_000),
    'stage waits for 11s for its turn: stage waits behind NodePublishVolume of the same volume',
  );
});

test('who waits in the lane of a volume is told whom it waits for, and when that changes', async () => {
  const lanes = createCallLanes();
  const ends: (() => void)[] = [];
  const call = () => new Promise<void>((resolve) => ends.push(resolve));
  const behind: string[] = [];
  const first = lanes.run('v', 'alone', call, { name: 'NodeStageVolume' });
  const second = lanes.run('v', 'alone', call, { name: 'NodePublishVolume' });
  const third = lanes.run('v', 'alone', call, {
    name: 'NodeUnpublishVolume',
    onQueued: (who) => behind.push(who),
  });
  for (const running of [first, second, third]) {
    await settled();
    ends.shift()?.();
    await running;
  }
  assert.deepEqual(behind, [
    'NodeStageVolume of the same volume, and 1 more that wait',
    'NodePublishVolume of the same volume',
  ]);
});
