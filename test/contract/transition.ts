/** The sentences about `Host.perform`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { below } from '../../mount/host.ts';
import { value } from '../value.ts';
import type { HostWorld, MakeHostWorld } from './host.ts';
import { countUp, furnish, makeAll, makeFirst } from './transitions.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

export function transitionContract(name: string, make: MakeHostWorld): void {
  const sentence = (words: string, check: (world: HostWorld) => Promise<void>): void => {
    test(`${name}: ${words}`, async (t) => check(await make(t)));
  };
  sentence('a transition does what its steps do, and tells all it saw', async ({ host, root }) => {
    const path = below(root, 'a');
    const { names, facts, content, ...rest } = value(
      await host.perform(furnish, { path, content: bytes('one') }),
    );
    assert.deepEqual(names, ['file', 'link']);
    assert.deepEqual([...(content ?? [])], [...bytes('one')]);
    assert.deepEqual(rest, { link: 'file', nothing: undefined });
    assert.deepEqual(facts.get('file'), value(await host.inspect(below(path, 'file'))));
    assert.equal(facts.get('file')?.mode, 0o640);
    assert.equal(value(await host.readLink(below(path, 'link'))), 'file');
    assert.deepEqual([...value(await host.listDirectory(path, 10))].sort(), ['file', 'link']);
  });
  sentence('a transition stops at the first failure and says how far it came', async ({ host, root }) => {
    const path = below(root, 'a');
    value(await host.makeDirectory(path, 0o750));
    value(await host.writeFile(below(path, 'y'), bytes('kept'), { mode: 0o640, durable: false }));
    const stopped = await host.perform(makeAll, { path, names: ['x', 'y', 'z'] });
    const { ok, failure } = stopped as { ok: boolean; failure: { code: string; message: string } };
    assert.deepEqual([ok, failure.code, failure.message], [false, 'path-wrong-kind', 'after 1']);
    assert.deepEqual([...value(await host.listDirectory(path, 10))].sort(), ['x', 'y']);
  });
  sentence('a failure of a step is an answer that the transition may go on from', async ({ host, root }) => {
    const path = below(root, 'a');
    value(await host.makeDirectory(path, 0o750));
    for (const one of ['x', 'y'])
      value(await host.writeFile(below(path, one), bytes('kept'), { mode: 0o640, durable: false }));
    assert.equal(value(await host.perform(makeFirst, { path, names: ['x', 'y', 'z', 'w'] })), 'z');
    assert.equal(value(await host.perform(makeFirst, { path, names: ['x', 'y'] })), undefined);
    assert.deepEqual([...value(await host.listDirectory(path, 10))].sort(), ['x', 'y', 'z']);
  });
  sentence('a transition follows no link', async ({ host, root }) => {
    const outside = below(root, 'outside');
    value(await host.makeDirectory(outside, 0o750));
    value(await host.makeLink(below(root, 'link'), outside));
    const led = await host.perform(makeAll, { path: below(root, 'link'), names: ['x'] });
    assert.equal(led.ok ? 'ok' : led.failure.code, 'path-unsafe');
    assert.deepEqual(value(await host.listDirectory(outside, 10)), []);
  });
}

/** The part of the contract for hosts that have many calls under way. */
export function transitionTurnsContract(name: string, make: MakeHostWorld): void {
  test(`${name}: transitions about one path go one after the other, each whole`, async (t) => {
    const { host, root } = await make(t);
    const others = below(root, 'other');
    value(await host.makeDirectory(others, 0o750));
    const places = [root, others, root, root, others, root, root, others];
    const counted = await Promise.all(places.map((path) => host.perform(countUp, { path })));
    assert.deepEqual(
      counted.map(value).sort((a, b) => a - b),
      [1, 1, 2, 2, 3, 3, 4, 5],
    );
  });
}
