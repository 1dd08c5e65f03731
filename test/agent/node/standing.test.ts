/** Whoever attaches for this node asks what stands here from the agent's start on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StandingWatch } from '../../../agent/attachment/standing-watch.ts';
import { parseConfig } from '../../../agent/config/parse-config.ts';
import { createAgent } from '../../../agent/node/agent.ts';
import { NO_TOKENS } from '../../../agent/source/token-source.ts';
import { memorySource } from '../memory-source.ts';
import { createBench } from '../../sim/bench.ts';
import { accept } from '../../plugins/accept.ts';

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

test('what stands can be asked at once, and again later', async (t) => {
  const bench = createBench(t);
  const settings = { root: bench.root, manifests: '/none', selinux: 'off' };
  const reading = parseConfig(settings, {}, 'node-a');
  assert.ok(reading.ok, JSON.stringify(reading));
  const sizes: number[] = [];
  let again = (): void => assert.fail('it was never begun');
  const standing: StandingWatch = {
    begin(actual) {
      again = () => sizes.push(actual().size);
      again();
    },
    look() {},
    diskRead() {},
    standing: () => [],
    wordOf: () => undefined,
    onWord: () => () => {},
  };
  const agent = createAgent({
    host: bench.newHost(),
    sources: [memorySource('memory', {})],
    tokens: NO_TOKENS,
    config: reading.value,
    log: SILENT,
    standing,
  });
  t.after(() => agent.stop(0));
  accept(await agent.start());
  again();
  assert.deepEqual(sizes, [0, 0]);
});
