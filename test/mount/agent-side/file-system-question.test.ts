/** Who is asked about a file system, how long, and what is said when nobody answers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFileSystemQuestion } from '../../../mount/agent-side/file-system-question.ts';
import { ok, type Result } from '../../../mount/failure.ts';
import type { AbsolutePath, FileSystemProbe } from '../../../mount/host.ts';
import { handClock } from '../../kubernetes/api/hand-clock.ts';

const DEADLINE_MS = 20_000;
const TURN_MS = 120_000;
const PLACE = '/place' as AbsolutePath;
const ALIVE: FileSystemProbe = { kind: 'alive', readOnly: false, device: '7:0' };

interface Asked {
  readonly begin: () => void;
  readonly answer: (answer: Result<FileSystemProbe>) => void;
}

function world(mountIdOf: () => Promise<Result<number | undefined>> = async () => ok(1)) {
  const clock = handClock();
  const asked: Asked[] = [];
  const question = createFileSystemQuestion({
    ...{ clock, mountIdOf, deadlineMs: DEADLINE_MS, turnMs: TURN_MS },
    ask: (_, begin) => new Promise((answer) => void asked.push({ begin, answer })),
  });
  /** What it was told so far, for each who asked. */
  const told: (Result<FileSystemProbe> | undefined)[] = [];
  const probe = (): void => {
    const index = told.push(undefined) - 1;
    void question(PLACE).then((answer) => {
      told[index] = answer;
    });
  };
  return { clock, asked, told, probe };
}

const wordOf = (answer: Result<FileSystemProbe> | undefined): string | undefined =>
  answer === undefined || answer.ok ? answer?.value.kind : answer.failure.code;

test('who waits for a broker behind others that hang is not silent: its time begins with its turn', async () => {
  const { clock, asked, told, probe } = world();
  probe();
  await clock.go(DEADLINE_MS * 3);
  assert.deepEqual(told, [undefined]);
  asked[0]?.begin();
  await clock.go(DEADLINE_MS - 1);
  assert.deepEqual(told, [undefined]);
  asked[0]?.answer(ok(ALIVE));
  await clock.go(1);
  assert.deepEqual(told, [ok(ALIVE)]);
});

test('a file system that does not answer in its time is silent, for whoever asks while it is asked', async () => {
  const { clock, asked, told, probe } = world();
  probe();
  asked[0]?.begin();
  await clock.go(DEADLINE_MS / 2);
  probe();
  await clock.go(DEADLINE_MS / 2 + 1);
  assert.deepEqual(told.map(wordOf), ['silent', undefined]);
  await clock.go(DEADLINE_MS / 2);
  assert.deepEqual(told.map(wordOf), ['silent', 'silent']);
  assert.equal(asked.length, 1);
  // Once it has answered it is asked anew.
  asked[0]?.answer(ok(ALIVE));
  await clock.go(1);
  probe();
  assert.equal(asked.length, 2);
  asked[1]?.answer(ok(ALIVE));
  await clock.go(1);
  assert.equal(wordOf(told[2]), 'alive');
});

test('who gets no turn at all is told so, and nothing is said of the file system', async () => {
  const { clock, told, probe } = world();
  probe();
  await clock.go(TURN_MS + 1);
  const [answer] = told;
  assert.ok(answer?.ok === false, 'it is no answer');
  assert.deepEqual([answer.failure.code, answer.failure.effect], ['deadline-passed', 'none']);
  assert.match(answer.failure.message, /nobody could look at \/place/);
});

test('what is mounted in the place of a file system that is silent is asked by itself', async () => {
  let mountId = 1;
  const { clock, asked, told, probe } = world(async () => ok(mountId));
  probe();
  asked[0]?.begin();
  await clock.go(DEADLINE_MS + 1);
  probe();
  await clock.go(1);
  assert.deepEqual([told.map(wordOf), asked.length], [['silent', undefined], 1]);
  mountId = 2;
  probe();
  await clock.go(1);
  assert.equal(asked.length, 2);
  asked[1]?.begin();
  asked[1]?.answer(ok(ALIVE));
  await clock.go(1);
  assert.deepEqual(told.map(wordOf), ['silent', 'alive', 'alive']);
  // What the old one says in the end is no answer about the new one.
  probe();
  asked[0]?.answer(ok({ kind: 'dead', cause: 'daemon-gone' }));
  await clock.go(1);
  assert.deepEqual([wordOf(told[3]), asked.length], [undefined, 3]);
});

test('where the mount of a silent file system cannot be looked at either, it is tried once', async () => {
  let looks = 0;
  const { clock, asked, told, probe } = world(() => {
    looks += 1;
    return new Promise(() => {});
  });
  probe();
  asked[0]?.begin();
  for (let more = 0; more < 3; more += 1) {
    await clock.go(DEADLINE_MS + 1);
    probe();
  }
  await clock.go(DEADLINE_MS + 1);
  assert.deepEqual(told.map(wordOf), ['silent', 'silent', 'silent', 'silent']);
  assert.deepEqual([asked.length, looks], [1, 1]);
});
