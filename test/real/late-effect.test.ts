/**
 * DR-05, RC-04 on the real kernel: a stage that was given up takes effect after its volume was taken down, with the
 * agent running or killed meanwhile, and is given back through the driver: no mount stays, and no loop device.
 */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { test } from 'node:test';
import { loopDevicesBelow, mountsBelow } from '../demo/machine.ts';
import { inPrivateNamespace } from './namespace.ts';
import { onRealNode, podWith, volumeOf } from './real-node.ts';

const skip = inPrivateNamespace();
const DEADLINE_EXCEEDED = 4;
const RESOURCE_EXHAUSTED = 8;
const STRAGGLERS = 3;

function gate<T>(): readonly [promise: Promise<T>, open: (value: T) => void] {
  let open: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => {
    open = resolve;
  });
  return [promise, open];
}

for (const way of ['found by resync', 'found at the next start'] as const) {
  test(`a stage that takes effect after its volume was unstaged is ${way} and given back`, { skip }, () =>
    onRealNode(async (node) => {
      const stragglers: { release(): void; readonly took: Promise<number> }[] = [];
      node.driver.inject = ({ method }) => {
        if (method !== 'NodeStageVolume') return undefined;
        if (stragglers.length === STRAGGLERS) return { kind: 'refuse', code: RESOURCE_EXHAUSTED };
        const [until, release] = gate<void>();
        const [took, passedOn] = gate<number>();
        stragglers.push({ release, took });
        return { kind: 'straggle', code: DEADLINE_EXCEEDED, until, passedOn };
      };
      node.settings.resync_ms = 1_000;
      // On a busy machine half a minute is over before the next agent runs: then nothing would be known of the volume.
      node.settings.late_effect_ms = 600_000;
      const { yaml, handle } = await node.driver.create('data', '33554432');
      node.put('volume', yaml);
      node.put('pod', podWith('data'));
      await node.startAgent();
      const doubted = await node.until('the stage to be given up', (status) => {
        const isDoubted = volumeOf(status, handle)?.lateEffects[0]?.operation === 'stage';
        return isDoubted && stragglers.length === STRAGGLERS;
      });
      const staging = volumeOf(doubted, handle)?.stagingPath ?? assert.fail('it is staged nowhere');
      node.remove('pod');
      await node.until('the volume to be down', (status) => {
        const volume = volumeOf(status, handle);
        return status.pods.length === 0 && volume?.rungs.staged === 'absent' && volume.running.length === 0;
      });
      assert.deepEqual([mountsBelow(node.root), loopDevicesBelow(node.scratch)], [[], []]);
      if (way === 'found at the next start') await node.killAgent();
      node.driver.newCalls();

      // As drivers do that make what they need; the agent, if it runs, may be tidying up at this moment.
      let code = -1;
      for (const { release, took } of stragglers) {
        if (code === 0) break;
        mkdirSync(staging, { recursive: true, mode: 0o750 });
        release();
        code = await took;
      }
      assert.equal(code, 0);
      if (way === 'found at the next start') {
        assert.deepEqual([mountsBelow(node.root).length, loopDevicesBelow(node.scratch).length], [1, 1]);
        await node.startAgent();
      }
      await node.until('the driver to have it back', (status) => {
        const isGone = mountsBelow(node.root).length + loopDevicesBelow(node.scratch).length === 0;
        return isGone && volumeOf(status, handle)?.running.length === 0;
      });
      assert.deepEqual([...new Set(node.driver.newCalls())], ['NodeUnstageVolume']);

      // A shorter time, so that the end of it comes.
      await node.killAgent();
      node.settings.csi_deadline_ms = 1_000;
      node.settings.late_effect_ms = 1_000;
      await node.startAgent();
      await node.untilEmpty();
      assert.deepEqual([...new Set(node.driver.newCalls())], ['NodeUnstageVolume'], 'once more, seen or not');
    }),
  );
}
