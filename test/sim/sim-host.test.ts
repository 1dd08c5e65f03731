import assert from 'node:assert/strict';
import { test } from 'node:test';
import { below } from '../../mount/host.ts';
import { hostContract } from '../contract/host.ts';
import { createBench } from './bench.ts';
import { FAIR } from './weather.ts';

hostContract('SimHost', async (t) => {
  const { root, newHost } = createBench(t);
  return { host: newHost(), root };
});

test('a killed process never hears of its effects again, and what was under way has landed or not', async (t) => {
  const outcomes = new Set<string>();
  for (let seed = 1; seed <= 40; seed += 1) {
    const bench = createBench(t, seed);
    const host = bench.newHost();
    let heard = false;
    void host.makeDirectory(below(bench.root, 'a', 'b'), 0o755).then(() => {
      heard = true;
    });
    host.timer(1, () => {
      heard = true;
    });
    host.kill();
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(heard, false);
    const depth = ['a', 'b'].map((_, index, names) =>
      bench.kernel.inspect(below(bench.root, ...names.slice(0, index + 1))),
    );
    outcomes.add(depth.map((facts) => (typeof facts === 'string' ? facts : facts.kind)).join());
  }
  assert.deepEqual([...outcomes].sort(), ['absent,absent', 'directory,absent', 'directory,directory']);
});

test('a process that dies after an effect leaves the effect and hears nothing', async (t) => {
  const bench = createBench(t);
  let host = bench.newHost();
  host = bench.newHost(FAIR, (kind, moment) => {
    const dies = kind === 'mount' && moment === 'after';
    if (dies) host.kill();
    return dies;
  });
  const target = below(bench.root, 'm');
  await host.makeDirectory(target, 0o755);
  let heard = false;
  void host.mount({ fsType: 'tmpfs', source: 'x', target, options: [] }).then(() => {
    heard = true;
  });
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(heard, false);
  assert.equal(bench.kernel.mountsAt(target).length, 1);
});

test('a doubtful effect answers that it does not know, and has happened in some seeds only', async (t) => {
  const seen = new Set<string>();
  for (let seed = 1; seed <= 20; seed += 1) {
    const bench = createBench(t, seed);
    const effects = new Map([['makeLink', { refused: 0, doubtful: 1, slow: 0, hung: 0 }]] as const);
    const host = bench.newHost({ ...FAIR, effects });
    const made = await host.makeLink(below(bench.root, 'l'), 'x');
    assert.ok(!made.ok && made.failure.effect === 'unknown');
    const facts = bench.kernel.inspect(below(bench.root, 'l'));
    seen.add(typeof facts === 'string' ? facts : facts.kind);
  }
  assert.deepEqual([...seen].sort(), ['absent', 'symlink']);
});
