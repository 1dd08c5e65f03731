/** Whoever reads the agent's standard error is slow, hangs, or is well: real processes, pipes and sockets. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { programArguments } from '../../machine/program.ts';
import { scratchDirectory } from '../../mount/scratch.ts';
import { KINDS, openChannel } from './standard-error-channel.ts';

/** Three times what may be kept. */
const MANY_LINES = 3_000;
/** More than a pipe or a socket takes at once. */
const LAST_LINES = 200;
const KEPT_BYTES_MAX = 1_048_576;
/** What the kernel and the reader's own process hold on the way. */
const ON_THE_WAY_BYTES_MAX = 524_288;

interface Line {
  readonly event: string;
  readonly number?: number;
  readonly lines?: number;
}

function startTalking(t: TestContext, standardError: 'pipe' | number, ...words: 'patient'[]): ChildProcess {
  const program = programArguments('test/agent/process/talking-program.ts');
  const talker = spawn(process.execPath, [...program, ...words], {
    stdio: ['pipe', 'pipe', standardError],
  });
  t.after(() => talker.kill('SIGKILL'));
  return talker;
}

async function say(talker: ChildProcess, lines: number | string): Promise<void> {
  const said = once(talker.stdout as Readable, 'data');
  talker.stdin?.write(`${lines}\n`);
  await said;
}

for (const kind of KINDS) {
  test(`a ${kind} that nobody reads holds up nothing, and what is dropped is counted and told`, async (t) => {
    const channel = openChannel(t, kind);
    const talker = startTalking(t, channel.given);
    const reader = channel.begin(talker);
    await say(talker, MANY_LINES);

    const lines = createInterface(reader)[Symbol.asyncIterator]();
    const numbers: (number | undefined)[] = [];
    let keptBytes = 0;
    let told: Line | undefined;
    while (told === undefined && numbers.length < MANY_LINES) {
      const text = String((await lines.next()).value);
      const line = JSON.parse(text) as Line;
      if (line.event === 'log lines dropped') told = line;
      else numbers.push(line.number);
      keptBytes += text.length + 1;
    }
    assert.deepEqual(numbers, [...numbers.keys()]);
    assert.equal(told?.lines, MANY_LINES - numbers.length);
    assert.ok(keptBytes <= KEPT_BYTES_MAX + ON_THE_WAY_BYTES_MAX, `${keptBytes} bytes were kept`);

    await say(talker, 1);
    assert.equal((JSON.parse(String((await lines.next()).value)) as Line).number, MANY_LINES);
  });

  test(`the last words of one that dies come through a ${kind}, after all that was said before`, async (t) => {
    const channel = openChannel(t, kind);
    const talker = startTalking(t, channel.given, 'patient');
    const reader = channel.begin(talker);
    const ended = once(talker, 'exit');
    await say(talker, `last ${LAST_LINES}`);
    const numbers: (number | undefined)[] = [];
    for await (const text of createInterface(reader)) numbers.push((JSON.parse(text) as Line).number);
    assert.deepEqual(numbers, [...Array(LAST_LINES).keys()]);
    assert.deepEqual(await ended, [1, null]);
  });

  test(`one that dies does not wait for who hangs at the other end of a ${kind}`, async (t) => {
    const channel = openChannel(t, kind);
    const talker = startTalking(t, channel.given);
    channel.begin(talker);
    const ended = once(talker, 'exit');
    talker.stdin?.write(`last ${MANY_LINES}\n`);
    assert.deepEqual(await ended, [1, null]);
  });
}

test('who has gone and comes back to a named pipe is told what is said then', async (t) => {
  const path = join(scratchDirectory(t), 'pipe');
  execFileSync('mkfifo', [path]);
  const listen = (): number => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const first = listen();
  const given = openSync(path, 'w');
  const talker = startTalking(t, given);
  closeSync(given);
  await say(talker, 1);
  closeSync(first);
  await say(talker, 1);
  const second = listen();
  t.after(() => closeSync(second));
  await say(talker, 1);
  const heard = Buffer.alloc(65_536);
  const lines = heard.toString('utf8', 0, readSync(second, heard)).trimEnd().split('\n');
  // The pipe itself has kept the first one.
  assert.deepEqual(
    lines.map((text) => (JSON.parse(text) as Line).number),
    [0, 2],
  );
});

test('a file has all lines, whatever is said last', async (t) => {
  const file = join(scratchDirectory(t), 'log');
  const descriptor = openSync(file, 'w');
  const talker = startTalking(t, descriptor);
  closeSync(descriptor);
  talker.stdin?.write(`last ${MANY_LINES}\n`);
  await once(talker, 'exit');
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  assert.deepEqual(
    lines.map((text) => (JSON.parse(text) as Line).number),
    [...Array(MANY_LINES).keys()],
  );
});
