/** Mounts in memory of many at one time share processes, and each is told what became of its own. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { createMountEffects } from '../../../mount/agent-side/mount-effects.ts';
import type { ToolBroker } from '../../../mount/agent-side/tool-broker.ts';
import { DEADLINES_MS } from '../../../mount/agent-side/host-deadlines.ts';
import { fail, ok } from '../../../mount/failure.ts';
import { type AbsolutePath, below, type MountRequest } from '../../../mount/host.ts';
import type { ToolRequest } from '../../../mount/tool.ts';
import { inPrivateNamespace } from '../../real/namespace.ts';
import { value } from '../../value.ts';
import { realHost, scratchDirectory } from '../scratch.ts';

const skip = inPrivateNamespace();
const NAMES = ['plain', 'with space', 'back\\slash', 'tab\there', '#hash', 'ünï\u00a0', 'last'] as const;

function inMemory(target: AbsolutePath, options: readonly string[] = ['mode=0700']): MountRequest {
  return { fsType: 'tmpfs', source: 'together', target, options, isWalked: true };
}

async function places(t: TestContext) {
  const host = await realHost(t);
  const targets = NAMES.map((name) => below(scratchDirectory(t), name));
  for (const target of targets) value(await host.makeDirectory(target, 0o750));
  return { host, targets };
}

test('those of one moment are all mounted, whatever their paths look like', { skip }, async (t) => {
  const { host, targets } = await places(t);
  for (const mounted of await Promise.all(targets.map((target) => host.mount(inMemory(target)))))
    value(mounted);
  for (const target of targets) {
    const [entry, ...more] = value(await host.readMountTable(target)).at(target);
    assert.equal(entry?.source, 'together', target);
    assert.match(entry?.superOptions.join(',') ?? '', /mode=700/);
    assert.equal(more.length, 0);
    value(await host.unmount(target, { isWalked: true, isMemory: true }));
  }
});

test('one that the kernel refuses is told its own words, and the others stand', { skip }, async (t) => {
  const { host, targets } = await places(t);
  const outcomes = await Promise.all(
    targets.map((target, index) =>
      host.mount(inMemory(target, [index === 3 ? 'no-such-option' : 'mode=0700'])),
    ),
  );
  const refused = outcomes[3];
  assert.ok(refused !== undefined && !refused.ok);
  assert.equal(refused.failure.code, 'mount-failed');
  assert.equal(refused.failure.effect, 'unknown');
  assert.doesNotMatch(refused.failure.message, /plain|last/);
  for (const [index, target] of targets.entries()) {
    assert.equal(value(await host.lookUpMount(target)).mounted, index !== 3, target);
    if (index !== 3) value(await host.unmount(target, { isWalked: true, isMemory: true }));
  }
});

/** Answers tools as `answer` does, a turn of the loop later; what needs a path is never asked. */
function effectsOn(answer: (request: ToolRequest) => Awaited<ReturnType<ToolBroker['run']>>) {
  const asked: ToolRequest[] = [];
  const run: ToolBroker['run'] = async (request) => {
    asked.push(request);
    await new Promise((resolve) => setImmediate(resolve));
    return answer(request);
  };
  const tools: ToolBroker = {
    run,
    runFirst: run,
    abandoned: () => 0,
    pids: () => [],
    close: async () => {},
  };
  const never = () => assert.fail('no path is asked about');
  const brokers = { tools, deviceTools: tools, remoteTools: tools };
  return { asked, effects: createMountEffects(brokers, never, DEADLINES_MS) };
}

const TARGETS = ['/m/a', '/m/b', '/m/c'].map((path) => path as AbsolutePath);
const DONE = ok({ exitCode: 0, signal: undefined, deadlinePassed: false, stdout: '', stderr: '' });

test('the first is not kept waiting; who comes meanwhile shares one process and its table', async () => {
  const { asked, effects } = effectsOn(() => DONE);
  await Promise.all(TARGETS.map((target) => effects.mount(inMemory(target))));
  assert.deepEqual(
    asked.map(({ argv, inputFile }) => ({ argv, inputFile })),
    [
      { argv: ['-t', 'tmpfs', '-o', 'mode=0700', '--', 'together', '/m/a'], inputFile: undefined },
      {
        argv: ['--all', '--fstab', '/proc/self/fd/0'],
        inputFile: 'together /m/b tmpfs mode=0700 0 0\ntogether /m/c tmpfs mode=0700 0 0\n',
      },
    ],
  );
});

test('where no table can be made each has a process of its own', async () => {
  const noTable = fail({ code: 'disk-full', message: 'no room for a file', effect: 'none' });
  const { asked, effects } = effectsOn(({ inputFile }) => (inputFile === undefined ? DONE : noTable));
  const outcomes = await Promise.all(TARGETS.map((target) => effects.mount(inMemory(target))));
  assert.ok(outcomes.every(({ ok: isDone }) => isDone));
  assert.deepEqual(
    asked.filter(({ inputFile }) => inputFile === undefined).map(({ argv }) => argv.at(-1)),
    TARGETS,
  );
});

test('a process that was lost with its broker is not run again: nobody knows what it did', async () => {
  const lost = fail({ code: 'broker-lost', message: 'mount lost its broker', effect: 'unknown' });
  const { asked, effects } = effectsOn(({ inputFile }) => (inputFile === undefined ? DONE : lost));
  const [, second, third] = await Promise.all(TARGETS.map((target) => effects.mount(inMemory(target))));
  assert.ok(second?.ok === false && third?.ok === false);
  assert.equal(second.failure.effect, 'unknown');
  assert.equal(asked.length, 2);
});
