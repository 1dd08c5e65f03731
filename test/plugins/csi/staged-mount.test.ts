/** One look at what is staged tells whether it is the one, and whether it serves; and who is asked when. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FailureCode, ok, type Result } from '../../../mount/failure.ts';
import type { AbsolutePath, FileSystemProbe, MountIdentity, MountLookup } from '../../../mount/host.ts';
import type { PublicationCall } from '../../../plugins/plugin.ts';
import { createStagedMount } from '../../../plugins/csi/staged-mount.ts';
import { csiSpec } from '../csi-spec.ts';

const PATH = '/staging' as AbsolutePath;
const STAGED = { mountId: 30, device: '7:1' };
const ALIVE: FileSystemProbe = { kind: 'alive', readOnly: false, device: '7:1' };

function world() {
  const asked: string[] = [];
  const host = {
    timeMs: 0,
    mount: { mounted: true, ...STAGED } as MountLookup,
    probe: ALIVE,
    nowMs: () => host.timeMs,
    lookUpMount: async () => {
      asked.push('lookUpMount');
      return ok(host.mount);
    },
    probeFileSystem: async () => {
      asked.push('probeFileSystem');
      return ok(host.probe);
    },
  };
  return { host, asked, staged: createStagedMount(host) };
}

function callOf(stagedMount: MountIdentity | undefined, refresh = false, stage = true) {
  const facts = { needs: { attach: false, stage, expand: false }, publishContext: undefined };
  const call = { spec: csiSpec('driver.example', 'data', 'pv'), facts: { ...facts, stagedMount }, refresh };
  return call as unknown as PublicationCall;
}

const codeOf = (result: Result<unknown>): FailureCode | undefined =>
  result.ok ? undefined : result.failure.code;
const publish = ({ staged }: ReturnType<typeof world>, call = callOf(STAGED)) =>
  staged.looksFor(call, PATH).first().then(codeOf);

test('of volumes whose driver said OK and mounted nothing the newest are remembered, and no more', () => {
  const { staged } = world();
  const ids = Array.from({ length: 5_000 }, (_, n) => csiSpec('driver.example', `data-${n}`, 'pv').id);
  for (const id of ids) staged.noteMissed(id);
  for (const id of ids.slice(-1_000, -500)) staged.noteMissed(id);
  const remembered = ids.filter((id) => staged.isMissed(id));
  assert.ok(remembered.length <= 4_096, `${remembered.length}`);
  assert.deepEqual(remembered.slice(-1_000), ids.slice(-1_000));
});

test('what was staged long ago is asked once, by a question that others never wait for', async () => {
  const one = world();
  assert.equal(await publish(one), undefined);
  const answers: readonly [FileSystemProbe, FailureCode][] = [
    [{ kind: 'unmounted' }, 'staged-not-mounted'],
    [{ ...ALIVE, device: '7:2' }, 'device-changed'],
    [{ ...ALIVE, readOnly: true }, 'file-system-dead'],
    [{ kind: 'dead', cause: 'emergency-read-only' }, 'file-system-dead'],
    [{ kind: 'silent' }, 'deadline-passed'],
  ];
  for (const [probe, code] of answers) {
    one.host.probe = probe;
    assert.equal(await publish(one), code);
  }
  assert.deepEqual(new Set(one.asked), new Set(['probeFileSystem']));
  assert.equal(one.asked.length, 1 + answers.length);
});

test('DR-11: what stands staged and is dead is told though its driver stages no more (seed 61778562)', async () => {
  const one = world();
  const publishPast = () => publish(one, callOf(STAGED, false, false));
  assert.equal(await publishPast(), undefined);
  one.host.probe = { ...ALIVE, readOnly: true };
  assert.equal(await publishPast(), 'file-system-dead');
  // The driver does not publish from it: whether it is there at all is nothing to this publish.
  one.host.probe = { kind: 'unmounted' };
  assert.equal(await publishPast(), undefined);
});

test('DR-11: what was staged just now is asked without a broker of its own, and may be dead all the same', async () => {
  const one = world();
  const made = { mount: STAGED, wasThere: false };
  assert.ok(one.staged.isMade(callOf(undefined), PATH, made).ok);
  assert.equal(await publish(one), undefined);
  assert.deepEqual(one.asked, ['lookUpMount']);
  one.staged.isMade(callOf(undefined), PATH, made);
  one.host.mount = { mounted: true, ...STAGED, death: 'emergency-read-only' };
  assert.equal(await publish(one), 'file-system-dead');
});

test('MT-06: read-only counts as dead where it was written before, and not where it is new', () => {
  const { staged } = world();
  const mount = { ...STAGED, readOnly: true as const };
  const isMade = (known: MountIdentity | undefined, wasThere: boolean) => {
    const made = staged.isMade(callOf(known), PATH, { mount, wasThere });
    return made.ok ? undefined : [made.failure.code, made.failure.effect];
  };
  assert.equal(isMade(mount, true), undefined);
  assert.equal(isMade(undefined, false), undefined);
  assert.deepEqual(isMade(undefined, true), ['file-system-dead', 'unknown']);
  assert.deepEqual(isMade(STAGED, false), ['file-system-dead', 'unknown']);
});

test('who waited in line looks again when a call before failed, or when the look is old', async () => {
  const one = world();
  const looks = one.staged.looksFor(callOf(STAGED), PATH);
  await looks.first();
  assert.equal(codeOf(await looks.again(false)), undefined);
  assert.deepEqual(one.asked.splice(0), ['probeFileSystem']);
  one.host.probe = { kind: 'unmounted' };
  assert.equal(codeOf(await looks.again(true)), 'staged-not-mounted');
  assert.deepEqual(one.asked.splice(0), ['probeFileSystem']);
  one.host.timeMs = 1_001;
  one.host.probe = { kind: 'dead', cause: 'input-output' };
  assert.equal(codeOf(await looks.again(false)), 'file-system-dead');
  assert.deepEqual(one.asked, ['probeFileSystem']);
});

test('a refresh takes nothing from a pod: only which one it is counts, and that it answers', async () => {
  const one = world();
  one.host.probe = { kind: 'dead', cause: 'input-output' };
  one.host.mount = { mounted: true, ...STAGED, death: 'input-output', readOnly: true };
  assert.equal(await publish(one, callOf(STAGED, true)), undefined);
  one.host.mount = { mounted: true, ...STAGED, device: '7:9' };
  assert.equal(await publish(one, callOf(STAGED, true)), 'device-changed');
  one.host.probe = { ...ALIVE, readOnly: true };
  assert.equal(await publish(one, callOf(STAGED, true)), undefined);
  one.host.probe = { kind: 'silent' };
  assert.equal(await publish(one, callOf(STAGED, true)), 'deadline-passed');
});
