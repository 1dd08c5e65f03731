/** A hundred hostile manifests of the largest size beside two hundred good ones, read by the agent as it is shipped. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import { hostileManifests } from '../agent/hostile-manifests.ts';
import { podYaml } from '../agent/manifests.ts';
import { waitForStatus } from '../demo/agent-status.ts';
import { inPrivateNamespace } from './namespace.ts';
import { onRealNode } from './real-node.ts';

const skip = inPrivateNamespace();
const HOSTILE = 100;
const GOOD = 200;
const DEADLINE_MS = 600_000;

test('good manifests are ready while hostile ones of the largest size wait to be read', { skip }, () =>
  onRealNode(async (node) => {
    const { signal } = new AbortController();
    const ready = (pods: number): Promise<StatusDocument> =>
      waitForStatus(join(node.scratch, 'agent.sock'), ({ summary }) => summary.podsReady === pods, {
        what: `${pods} pods`,
        deadlineMs: DEADLINE_MS,
        signal,
      });
    for (const [name, text] of hostileManifests(HOSTILE))
      writeFileSync(join(node.scratch, 'm', `a-${name}`), text);
    const good = Array.from({ length: GOOD }, (_, index) => `good-${index}`);
    for (const name of good.slice(GOOD / 2)) node.put(`z-${name}`, podYaml(name, { tmp: 'emptyDir: {}' }));
    await node.startAgent();
    const first = await ready(GOOD / 2);
    for (const name of good.slice(0, GOOD / 2)) node.put(`z-${name}`, podYaml(name, { tmp: 'emptyDir: {}' }));
    const second = await ready(GOOD);
    for (const { agent, sources } of [first, second]) {
      // Nothing is taken down before all were read once.
      assert.equal(agent.complete, false);
      const waiting = sources.rejected.filter(({ message }) => message === 'it is waiting to be read');
      assert.ok(waiting.length > 0);
      assert.ok(waiting.every(({ origin }) => origin.startsWith('a-')));
      assert.deepEqual(
        sources.unknown.filter((origin) => !origin.startsWith('a-')),
        [],
      );
    }
  }),
);
