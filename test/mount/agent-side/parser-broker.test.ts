/** The bounds of a text that is parsed, and what becomes of a parser that breaks them. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { DEFAULT_MANIFEST_LIMITS } from '../../../agent/source/manifests/parse/manifest-limits.ts';
import {
  createParserBroker,
  type ParserBroker,
  type ParserBrokerOptions,
} from '../../../mount/agent-side/parser-broker.ts';
import { HOSTILE } from '../../agent/hostile-manifests.ts';
import { podYaml } from '../../agent/manifests.ts';
import { PARSER_COMMAND } from '../../real/broker-command.ts';
import { signalProcess } from '../../signal.ts';

function start(t: TestContext, bounds: Omit<ParserBrokerOptions, 'command'> = {}): ParserBroker {
  const broker = createParserBroker({ command: PARSER_COMMAND, ...bounds });
  t.after(() => broker.close());
  return broker;
}

function request(text: string) {
  const limits = { ...DEFAULT_MANIFEST_LIMITS, linesMax: Number.POSITIVE_INFINITY };
  return { origin: 'a.yaml', bytes: Buffer.from(text), limits };
}

const GOOD = request(podYaml('web'));
const DENSE = request(HOSTILE['tags']?.(1_000_000) ?? '');

test('a text that takes too much of the processor is given up, and the next one is parsed', async (t) => {
  const broker = start(t, { processorMsMax: 100 });
  assert.deepEqual(await broker.parse(DENSE), { kind: 'exhausted', bound: '0.1 s of processor time' });
  assert.equal((await broker.parse(GOOD)).kind, 'parsed');
});

test('a text that takes too much memory is given up, and the next one is parsed', async (t) => {
  const broker = start(t, { heapMbMax: 40 });
  assert.deepEqual(await broker.parse(DENSE), { kind: 'exhausted', bound: '40 MB of memory' });
  assert.equal((await broker.parse(GOOD)).kind, 'parsed');
});

test('that a parser was killed by others says nothing about the text', async (t) => {
  const broker = start(t);
  assert.equal((await broker.parse(GOOD)).kind, 'parsed');
  const [pid] = broker.pids();
  const parsing = broker.parse(DENSE);
  signalProcess(pid, 'SIGKILL');
  assert.deepEqual(await parsing, { kind: 'lost' });
  assert.equal((await broker.parse(GOOD)).kind, 'parsed');
  assert.notDeepEqual(broker.pids(), [pid]);
});

test('a parser that was begun is the one that parses, and another beginning starts none', async (t) => {
  const broker = start(t);
  broker.begin();
  const begun = broker.pids();
  assert.equal(begun.length, 1);
  broker.begin();
  assert.equal((await broker.parse(GOOD)).kind, 'parsed');
  assert.deepEqual(broker.pids(), begun);
});

test('a parser that cannot be started is lost, and so is one after the end', async (t) => {
  const broker = createParserBroker({ command: ['/nowhere/node', 'broker'] });
  assert.deepEqual(await broker.parse(GOOD), { kind: 'lost' });
  await broker.close();
  const ended = start(t);
  await ended.close();
  assert.deepEqual(await ended.parse(GOOD), { kind: 'lost' });
  assert.deepEqual(ended.pids(), []);
});
