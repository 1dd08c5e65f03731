/** A kubelet that comes while the agent runs: when it is looked for, and when it is believed. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type KubeletWatchParts, watchForKubelet } from '../../../agent/process/kubelet-watch.ts';
import { fail, type Failure, ok } from '../../../mount/failure.ts';
import type { AbsolutePath, PathFacts } from '../../../mount/host.ts';
import { setImmediate as turns } from 'node:timers/promises';

const ROOT = '/root' as AbsolutePath;
const RESOURCES = '/root/pod-resources';
const PLUGINS = '/root/device-plugins';
const FACTS: PathFacts = {
  ...{ kind: 'directory', mode: 0o750, uid: 0, gid: 0, inode: 1, sizeBytes: 0, modifiedMs: 0 },
};
const { failure: KUBELET } = fail({ code: 'kubelet-running', message: 'one runs', effect: 'none' });

class Machine {
  readonly there = new Map<string, PathFacts['kind']>();
  /** The kubelet that the next looks find. */
  kubelet: Failure | undefined;
  looks = 0;
  canInspect = true;
  readonly found: Failure[] = [];
  readonly #watches = new Map<string, { hint: () => void; concerns: (name: string) => boolean }>();
  #pause: (() => void) | undefined;
  readonly #end: () => void;

  constructor(t: TestContext, directories: readonly string[]) {
    for (const path of directories) this.there.set(path, 'directory');
    const host: KubeletWatchParts['host'] = {
      nowMs: () => 0,
      wallMs: () => 0,
      watch: (path, hint, concerns = () => true) => {
        assert.ok(!this.#watches.has(path), `${path} is watched once`);
        this.#watches.set(path, { hint, concerns });
        hint();
        return () => void this.#watches.delete(path);
      },
      timer: (delayMs, fire) => {
        assert.equal(delayMs, 2_000);
        this.#pause = fire;
        return () => (this.#pause = undefined);
      },
      inspect: (path) => {
        const failed = fail({ code: 'deadline-passed', message: 'it hangs', effect: 'none' });
        const facts = { ...FACTS, kind: this.there.get(path) ?? 'absent' };
        return Promise.resolve(this.canInspect ? ok(facts) : failed);
      },
    };
    const look = (): Promise<Failure | undefined> => {
      this.looks += 1;
      return Promise.resolve(this.kubelet);
    };
    this.#end = watchForKubelet({ host, root: ROOT, look, onFound: (one) => this.found.push(one) });
    t.after(() => {
      this.#end();
      assert.deepEqual(this.watched(), []);
      assert.equal(this.#pause, undefined);
    });
  }

  watched(): readonly string[] {
    return [...this.#watches.keys()];
  }

  async happens(directory: string, name: string): Promise<void> {
    const { hint, concerns } = this.#watches.get(directory) ?? assert.fail(`${directory} is watched`);
    if (concerns(name)) hint();
    await turns();
  }

  async twoSecondsPass(): Promise<void> {
    const fire = this.#pause ?? assert.fail('nobody waits');
    this.#pause = undefined;
    fire();
    await turns();
  }

  async end(): Promise<void> {
    this.#end();
    await turns();
  }
}

async function machine(t: TestContext, ...directories: readonly string[]): Promise<Machine> {
  const made = new Machine(t, directories);
  await turns();
  return made;
}

test('one that serves its socket is told when it is still there two seconds later, and once', async (t) => {
  const at = await machine(t, PLUGINS);
  assert.equal(at.looks, 1, 'whoever came before the watch is not missed');
  at.kubelet = KUBELET;
  await at.happens(PLUGINS, 'kubelet.sock');
  assert.deepEqual(at.found, []);
  await at.twoSecondsPass();
  assert.deepEqual(at.found, [KUBELET]);
  assert.deepEqual(at.watched(), [], 'nothing is watched any more');
});

test('one that only begins is let be, and the next one is not', async (t) => {
  const at = await machine(t, RESOURCES);
  at.kubelet = KUBELET;
  await at.happens(RESOURCES, 'kubelet.sock');
  at.kubelet = undefined;
  await at.twoSecondsPass();
  assert.deepEqual(at.found, []);
  at.kubelet = KUBELET;
  await at.happens(RESOURCES, 'kubelet.sock');
  await at.twoSecondsPass();
  assert.deepEqual(at.found, [KUBELET]);
});

test('its directories are watched from when they are there until they are gone, and nothing else', async (t) => {
  const at = await machine(t);
  assert.deepEqual([at.watched(), at.looks], [[ROOT], 0]);
  at.there.set(RESOURCES, 'directory').set(PLUGINS, 'file');
  await at.happens(ROOT, 'pods');
  assert.deepEqual(at.watched(), [ROOT], 'a pod is no reason to ask');
  await at.happens(ROOT, 'pod-resources');
  assert.deepEqual([at.watched(), at.looks], [[ROOT, RESOURCES], 1]);
  at.canInspect = false;
  await at.happens(ROOT, 'pod-resources');
  assert.deepEqual(at.watched(), [ROOT, RESOURCES], 'what cannot be asked about is as it was');
  at.canInspect = true;
  at.there.delete(RESOURCES);
  await at.happens(ROOT, 'pod-resources');
  assert.deepEqual(at.watched(), [ROOT]);
});

test('what happens during a look is looked at after it, in one look', async (t) => {
  const at = await machine(t, PLUGINS);
  at.kubelet = KUBELET;
  await at.happens(PLUGINS, 'kubelet.sock');
  at.kubelet = undefined;
  for (let count = 0; count < 3; count += 1) await at.happens(PLUGINS, 'kubelet.sock');
  assert.equal(at.looks, 2);
  await at.twoSecondsPass();
  assert.equal(at.looks, 4, 'the second of the two, and one for all that happened');
});

test('an agent that ends meanwhile is told nothing', async (t) => {
  const at = await machine(t, PLUGINS);
  at.kubelet = KUBELET;
  await at.happens(PLUGINS, 'kubelet.sock');
  await at.end();
  assert.deepEqual([at.found, at.looks], [[], 2]);
});
