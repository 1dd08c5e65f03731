/** The state at a start is made of records that are ours: never of what lies in somebody else's mount. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rebuildState } from '../../../agent/node/rebuild-state.ts';
import { createGround } from '../../../mount/ground.ts';
import { type Host, parseAbsolutePath } from '../../../mount/host.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import { createRecordStore } from '../../../reconciler/recovery/record-store.ts';
import { createMemoryHost } from '../../plugins/memory-host.ts';
import { value } from '../../value.ts';
import { actual } from '../../reconciler/world.ts';

const root = parseAbsolutePath('/state');
assert.ok(root);
const layout = createLayout(root);
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

async function rebuildOn(host: Host) {
  const ground = createGround(host, layout.root, [layout.pods, layout.plugins]);
  const records = createRecordStore(host, layout, ground);
  return rebuildState({ host, layout, ground, records, log: SILENT });
}

/** A machine of which a volume is recorded. */
async function machine() {
  const host = createMemoryHost();
  host.plant(layout.root, { kind: 'directory' });
  const records = createRecordStore(host, layout);
  value(await records.load());
  value(await records.save(actual('data', { staged: 'present' })));
  return host;
}

test('what was recorded is known after a restart', async () => {
  const { recovered } = value(await rebuildOn(await machine()));
  assert.equal(recovered.size, 1);
});

/** The calls of a start, in order, as often as they were made. */
async function callsOf(host: Host): Promise<number> {
  let calls = 0;
  const count = async (): Promise<void> => {
    calls += 1;
  };
  value(await rebuildOn(beforeCall(host, count)));
  return calls;
}

function beforeCall(host: Host, act: () => Promise<void>): Host {
  return new Proxy(host, {
    get(target, name): unknown {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return async (...given: unknown[]): Promise<unknown> => {
        await act();
        return Reflect.apply(member, target, given);
      };
    },
  });
}

test('a mount over the state root that goes at any moment of a start hides no record', async () => {
  const calls = await callsOf(await machine());
  for (let at = 1; at <= calls + 1; at += 1) {
    const host = await machine();
    host.plantMount(layout.root, 'tmpfs');
    let made = 0;
    const leaving = beforeCall(host, async () => {
      made += 1;
      if (made === at) value(await host.unmount(layout.root));
    });
    const rebuilt = await rebuildOn(leaving);
    const known = rebuilt.ok ? rebuilt.value.recovered.size : rebuilt.failure.code;
    assert.ok(known === 1 || known === 'mount-foreign' || made < at, `gone before call ${at}: ${known}`);
  }
});
