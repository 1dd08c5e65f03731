/** When the agent started, as often as it is asked. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observeForMetrics } from '../../../agent/metrics/metrics-facts.ts';
import type { AgentView } from '../../../agent/node/agent-view.ts';

const BEGIN_MS = 5_000.375;
const BEGIN_WALL_MS = Date.UTC(2026, 10, 30, 2, 0, 0);

/** By the clocks of a machine: one tells parts of a millisecond, the other only whole ones. */
function world() {
  let passedMs = 0;
  let setByMs = 0;
  const clock = {
    nowMs: () => BEGIN_MS + passedMs,
    wallMs: () => Math.floor(BEGIN_WALL_MS + 0.75 + passedMs + setByMs),
  };
  const nothing = () => [];
  const view = {
    reconciler: {
      ...{ desired: nothing, actual: nothing, running: nothing, obstacles: nothing },
      passes: () => 0,
    },
    drivers: { list: nothing, sockets: nothing },
    desiredObjects: { reports: [] },
    operationTimes: { text: () => '' },
    ...{ recoveredVolumes: 0, unreadableRecords: [] },
    ...{ startedMs: clock.nowMs(), startedWallMs: clock.wallMs() },
  } as unknown as AgentView;
  return {
    after(ms: number): number {
      passedMs += ms;
      return observeForMetrics(view, clock).startedWallMs;
    },
    setWall(byMs: number): void {
      setByMs += byMs;
    },
  };
}

test('the start is one moment however often it is asked for: one that moves is a restart to who counts', () => {
  const { after } = world();
  const told = Array.from({ length: 1_000 }, (_, index) => after(15_000 + (index % 10) / 7));
  assert.deepEqual([...new Set(told)], [BEGIN_WALL_MS]);
});

test('the start moves once with a clock that is set, as after a boot with a wrong one', () => {
  const { after, setWall } = world();
  setWall(3_600_123);
  const told = Array.from({ length: 100 }, (_, index) => after(15_000 + (index % 10) / 7));
  assert.deepEqual([...new Set(told)], [BEGIN_WALL_MS + 3_600_000]);
});
