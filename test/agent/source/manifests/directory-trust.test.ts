/** AP-12, RS-02: a directory that is not the one it was is unknown until it is back, or somebody says so. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryPath } from '../../../../mount/temporary-file.ts';
import { createDirectoryTrust } from '../../../../agent/source/manifests/directory-trust.ts';
import { fail, type FailureCode, ok, type Result } from '../../../../mount/failure.ts';
import type { DirectoryIdentity } from '../../../../mount/host.ts';
import type { Stake } from '../../../../agent/source/objects-source.ts';
import { createMountTable, type MountEntry } from '../../../../mount/mount-table.ts';
import { value } from '../../../value.ts';
import { path } from '../../manifests.ts';

const DIRECTORY = path('/etc/mooring/manifests');
const NOTE = path('/var/lib/mooring/mooring/source.json');
const OLD: DirectoryIdentity = { mountId: 1, device: '8:1', inode: '12', bornNs: '5' };
const NEW: DirectoryIdentity = { ...OLD, inode: '13', bornNs: '6' };
const COVER: DirectoryIdentity = { mountId: 2, device: '0:40', inode: '1', bornNs: undefined };

function entry(mountId: number, rest: Partial<MountEntry>): MountEntry {
  return {
    mountId,
    parentId: 0,
    device: '8:1',
    root: '/',
    target: path('/'),
    options: ['rw'],
    propagation: [],
    fsType: 'ext4',
    source: '/dev/sda1',
    superOptions: ['rw'],
    ...rest,
  };
}

/** The machine, which outlives an agent. */
function machine() {
  const state = {
    is: OLD as DirectoryIdentity | undefined,
    note: undefined as Uint8Array | undefined,
    bootId: 'one',
    stake: 'something' as Stake,
    unreadable: undefined as FailureCode | undefined,
    full: false,
    /** Somebody's mount lies over where the note is: what is written there goes with it. */
    covered: false,
    lines: [] as string[],
    directory: DIRECTORY,
    /** What a dead agent has left of a note that it was writing. */
    leftover: false,
  };
  const table = createMountTable([
    entry(1, {}),
    entry(2, { device: '0:40', target: DIRECTORY, fsType: 'tmpfs', source: 'tmpfs' }),
  ]);
  const refuse = (code: FailureCode): Result<never> => fail({ code, message: code, effect: 'none' });
  const write = (event: string): void => {
    state.lines.push(event);
  };
  const agent = () =>
    createDirectoryTrust({
      directory: state.directory,
      note: NOTE,
      stake: () => state.stake,
      refuseStranger: async (at) => {
        assert.equal(at, NOTE);
        return state.covered ? refuse('mount-foreign') : ok(undefined);
      },
      log: { debug: write, info: write, warn: write, error: write },
      host: {
        nowMs: () => 7_000,
        bootId: state.bootId,
        identifyDirectory: async () => (state.is === undefined ? refuse('path-missing') : ok(state.is)),
        readMountTable: async () => ok(table),
        readFile: async () => {
          if (state.unreadable !== undefined) return refuse(state.unreadable);
          if (state.covered) return refuse('path-missing');
          return state.note === undefined ? refuse('path-missing') : ok(state.note);
        },
        removeFile: async (path) => {
          assert.equal(path, temporaryPath(NOTE));
          state.leftover = false;
          return ok(undefined);
        },
        writeFile: async (_, content) => {
          if (state.full) return refuse('disk-full');
          if (!state.covered) state.note = content;
          return ok(undefined);
        },
      },
    });
  return { state, agent };
}

const codeOf = (result: Result<unknown>): string => (result.ok ? 'ok' : result.failure.code);

test('another directory, or one mounted over it, is unknown until the old one is back, restarted or not', async () => {
  for (const other of [NEW, COVER]) {
    const { state, agent } = machine();
    const first = agent();
    assert.deepEqual(value(await first.identify()), OLD);
    state.is = other;
    assert.equal(codeOf(await first.identify()), 'directory-replaced');
    const second = agent();
    assert.equal(codeOf(await second.identify()), 'directory-replaced');
    assert.match(JSON.stringify(await second.identify()), /mooring manifests accept/);
    assert.equal(second.replaced()?.sinceMs, 7_000);
    assert.equal(state.lines.filter((line) => line.includes('another one')).length, 2, 'told once in a life');
    state.is = OLD;
    assert.deepEqual([value(await second.identify()), second.replaced()], [OLD, undefined]);
  }
});

test('an operator accepts the directory that was seen and no other, and that is remembered', async () => {
  const { state, agent } = machine();
  const one = agent();
  await one.identify();
  state.is = NEW;
  await one.identify();
  const { sight = '' } = one.replaced() ?? {};
  assert.equal(codeOf(await one.accept('another')), 'reference-missing');
  assert.equal(codeOf(await one.accept(sight)), 'ok');
  assert.deepEqual([value(await one.identify()), one.replaced()], [NEW, undefined]);
  assert.deepEqual(value(await agent().identify()), NEW);
  state.is = OLD;
  assert.equal(codeOf(await agent().identify()), 'directory-replaced', 'the old one is another one now');
});

test('what nothing depends on may be replaced, and the configuration may name another directory', async () => {
  const { state, agent } = machine();
  await agent().identify();
  state.is = NEW;
  state.stake = 'nothing';
  assert.deepEqual(value(await agent().identify()), NEW);
  state.stake = 'something';
  state.directory = path('/srv/manifests');
  state.is = OLD;
  assert.deepEqual(value(await agent().identify()), OLD);
});

test('without a note, as after an upgrade, and with one that is damaged, what is there is taken', async () => {
  const { state, agent } = machine();
  await agent().identify();
  state.note = state.note?.slice(0, 40);
  state.is = NEW;
  assert.deepEqual(value(await agent().identify()), NEW);
  assert.equal(state.lines.length, 1, 'a damaged note is told');
});

test('what an agent that was killed has left of its note goes, once', async () => {
  const { state, agent } = machine();
  const first = agent();
  await first.identify();
  state.leftover = true;
  await first.identify();
  assert.equal(state.leftover, true, 'one look of each life is enough');
  await agent().identify();
  assert.equal(state.leftover, false);
});

test('a note that cannot be read may say anything: the directory is unknown until it can be', async () => {
  const { state, agent } = machine();
  await agent().identify();
  state.unreadable = 'input-output';
  const one = agent();
  assert.equal(codeOf(await one.identify()), 'input-output');
  state.unreadable = undefined;
  assert.equal(codeOf(await one.identify()), 'ok');
});

test('a note that somebody covers is not missing: the directory is unknown until he is gone', async () => {
  const { state, agent } = machine();
  await agent().identify();
  state.covered = true;
  state.is = NEW;
  const one = agent();
  assert.equal(codeOf(await one.identify()), 'mount-foreign');
  state.covered = false;
  assert.equal(codeOf(await one.identify()), 'directory-replaced');
  state.is = OLD;
  assert.equal(codeOf(await one.identify()), 'ok');
});

test('what is noted in the file system of somebody else is not noted', async () => {
  const { state, agent } = machine();
  const one = agent();
  await one.identify();
  state.is = NEW;
  await one.identify();
  state.covered = true;
  assert.equal(codeOf(await one.accept(one.replaced()?.sight ?? '')), 'mount-foreign');
  assert.equal(codeOf(await one.identify()), 'ok', 'accepted by this process');
  state.covered = false;
  assert.equal(codeOf(await one.identify()), 'ok');
  assert.deepEqual(value(await agent().identify()), NEW, 'and by the next one, since he is gone');
});

test('on a full disk the directory is remembered by the process, and written down when there is room', async () => {
  const { state, agent } = machine();
  state.full = true;
  const one = agent();
  assert.equal(codeOf(await one.identify()), 'ok');
  state.is = NEW;
  assert.equal(codeOf(await one.identify()), 'directory-replaced');
  state.is = OLD;
  state.full = false;
  await one.identify();
  state.is = NEW;
  assert.equal(codeOf(await agent().identify()), 'directory-replaced');
});

test('without a note a directory is not read while nothing depends on it: a restart could take another', async () => {
  const { state, agent } = machine();
  state.full = true;
  state.stake = 'unknown';
  const one = agent();
  assert.equal(codeOf(await one.identify()), 'disk-full');
  state.stake = 'nothing';
  assert.equal(codeOf(await one.identify()), 'disk-full', 'the next look says the same');
  state.full = false;
  assert.equal(codeOf(await one.identify()), 'ok');
  state.stake = 'something';
  state.is = NEW;
  assert.equal(codeOf(await agent().identify()), 'directory-replaced');
});

test('what stands already goes on with a directory that cannot be noted, and that is told once', async () => {
  const { state, agent } = machine();
  state.full = true;
  const one = agent();
  for (let look = 0; look < 3; look += 1) assert.equal(codeOf(await one.identify()), 'ok');
  assert.equal(state.lines.filter((line) => line.includes('cannot be noted')).length, 1);
  state.full = false;
  assert.equal(codeOf(await one.identify()), 'ok');
  assert.notEqual(state.note, undefined);
});

test('a directory that is not there is unknown, and no other one', async () => {
  const { state, agent } = machine();
  const one = agent();
  await one.identify();
  state.is = undefined;
  assert.deepEqual([codeOf(await one.identify()), one.replaced()], ['path-missing', undefined]);
});

test('that there is no manifest directory is told with what would be right, and in the log as it begins', async () => {
  const { state, agent } = machine();
  const one = agent();
  for (const is of [undefined, undefined, OLD, undefined]) {
    state.is = is;
    const seen = await one.identify();
    if (is !== undefined) continue;
    const message = `there is no directory ${DIRECTORY}: make it, or correct "manifests" in the configuration`;
    assert.deepEqual([codeOf(seen), !seen.ok && seen.failure.message], ['path-missing', message]);
  }
  const line = 'the manifest directory cannot be looked at';
  assert.deepEqual(state.lines, [line, line]);
});
