/** Somebody who is not root starts the agent, or asks for its plan. */
import assert from 'node:assert/strict';
import { chmodSync } from 'node:fs';
import { test } from 'node:test';
import { parseConfig } from '../../../agent/config/parse-config.ts';
import { makeStateDirectory } from '../../../agent/process/process-facts.ts';
import { runAgent } from '../../../agent/process/run-agent.ts';
import { runPlan } from '../../../agent/process/run-plan.ts';
import { below } from '../../../mount/host.ts';
import { takeInstanceLock } from '../../../mount/process/instance-lock.ts';
import { scratchDirectory } from '../../mount/scratch.ts';
import { value } from '../../value.ts';

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const skip = isRoot ? false : 'SKIPPED: only root can become somebody else';

test('he is told to be root', { skip }, async (t) => {
  const scratch = scratchDirectory(t);
  const root = below(scratch, 'root');
  const own = below(root, 'mooring');
  value(makeStateDirectory(own));
  chmodSync(scratch, 0o755);
  value(await takeInstanceLock(below(own, 'agent.lock'))).release();
  const reading = parseConfig({ root, manifests: below(scratch, 'manifests') }, {}, 'n');
  assert.ok(reading.ok);
  const launch = {
    ...{ config: reading.value, warnings: [], brokerCommand: [], watchdogMs: undefined, takesOver: false },
    ...{ runtime: process.versions.node, patienceMs: 1, makeStateDirectory },
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    mountNamespace: () => assert.fail('nothing is begun'),
    loadParse: () => assert.fail('nothing is read'),
  };
  t.after(() => process.seteuid?.(0));
  process.seteuid?.(NOBODY);
  const outcomes = [await runAgent(launch), await runPlan(launch)];
  process.seteuid?.(0);
  for (const outcome of outcomes) {
    assert.ok(outcome.kind === 'refused');
    assert.equal(outcome.failure.code, 'permission-denied');
    assert.match(outcome.failure.message, /: EACCES; run it as root$/);
  }
});
