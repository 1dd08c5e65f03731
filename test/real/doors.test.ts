/**
 * Processes of ours as they are shipped, on the real kernel: whatever signal they get, at whatever moment, and whatever
 * the environment of the agent says, nobody can come in by a debugger, and nothing of their memory is left on the disk.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { test } from 'node:test';
import { type BrokerProcess, startBroker } from '../../mount/agent-side/broker-process.ts';
import type { BrokerKind } from '../../mount/broker/broker-protocol.ts';
import { descendantsOf, untilGone } from '../demo/machine.ts';
import { inPrivateNamespace } from './namespace.ts';
import { isTakenInHand, listeningAt, signalFromTheStart, untilUnprotectedNodeListens } from './open-door.ts';
import { type ShippedAgent, shippedPrograms, startShippedAgent } from './shipped-agent.ts';
import { signalProcess } from '../signal.ts';

const skip = inPrivateNamespace();
const { programs, scratch } = shippedPrograms('doors');
const SIGNALS_AT_START = 200;

/** Everything that an agent can be told; these two no process is asked about. */
const SIGNALS = [...new Set(Object.values(constants.signals)), 34, 50, 64].filter(
  (one) => one !== constants.signals.SIGKILL && one !== constants.signals.SIGSTOP,
);
const STOPPING: ReadonlySet<number> = new Set([
  constants.signals.SIGTSTP,
  constants.signals.SIGTTIN,
  constants.signals.SIGTTOU,
]);

/** Node.js has them in hand: to stop in order, and to tell its own faults from those of others. */
const HANDLED_TO_THE_END: ReadonlySet<number> = new Set([
  constants.signals.SIGTERM,
  constants.signals.SIGINT,
  constants.signals.SIGHUP,
  constants.signals.SIGSEGV,
]);
/** signal(7) */
const NOTHING_BY_DEFAULT: ReadonlySet<number> = new Set([
  constants.signals.SIGCHLD,
  constants.signals.SIGCONT,
  constants.signals.SIGURG,
  constants.signals.SIGWINCH,
  ...STOPPING,
]);

function ends(pid: number, signal: number): boolean {
  if (HANDLED_TO_THE_END.has(signal)) return true;
  return !NOTHING_BY_DEFAULT.has(signal) && !isTakenInHand(pid, signal);
}

function send(pid: number, signal: number): void {
  try {
    signalProcess(pid, signal);
    if (STOPPING.has(signal)) signalProcess(pid, 'SIGCONT');
  } catch {
    // The signal before has ended it.
  }
}

/** Settles with it when it listens or has ended. */
function start(kind: BrokerKind, onStart: (pid: number) => void): Promise<BrokerProcess> {
  const command = [process.execPath, programs.agent, 'broker'];
  return new Promise((resolve) => {
    const settle = (): void => resolve(broker);
    const events = { onReady: settle, onSettled: () => {}, onEnded: settle };
    const broker = startBroker(kind, { command }, events);
    broker.keepAgentAlive(true);
    onStart(broker.pid ?? assert.fail('it did not start'));
  });
}

for (const kind of ['path', 'tool'] as const) {
  test(`a ${kind} broker that is told to open its debugger from its first instruction on does not`, {
    skip,
  }, async () => {
    const broker = await start(kind, (started) => {
      assert.ok(signalFromTheStart(started, 'SIGUSR1', SIGNALS_AT_START), 'it lives');
    });
    const pid = broker.pid ?? assert.fail('it has ended');
    try {
      signalProcess(pid, 'SIGUSR1');
      await untilUnprotectedNodeListens();
      assert.deepEqual(listeningAt(pid), []);
    } finally {
      broker.kill();
      await untilGone([pid]);
    }
  });
}

for (const program of ['agent', 'driver'] as const) {
  test(`the ${program}, too, is deaf from its first instruction on, whatever NODE_OPTIONS says`, {
    skip,
  }, async (t) => {
    const agent = await startShippedAgent({
      t,
      programs,
      scratch,
      environment: { NODE_OPTIONS: '--inspect=127.0.0.1:0' },
      onStart: (started) => {
        if (started.program === program) signalFromTheStart(started.pid, 'SIGUSR1', SIGNALS_AT_START);
      },
    });
    await agent.untilMounted();
    signalProcess(agent.pid(program), 'SIGUSR1');
    await untilUnprotectedNodeListens();
    for (const { pid, command } of processesOf(agent)) assert.deepEqual(listeningAt(pid), [], command);
  });
}

function processesOf(agent: ShippedAgent) {
  return [agent.pid('agent'), agent.pid('driver')].flatMap((pid) => [
    { pid, command: `process ${pid}` },
    ...descendantsOf(pid),
  ]);
}

test('every process of agent and driver gets every signal: nobody listens, and those that ended come again', {
  skip,
}, async (t) => {
  const agent = await startShippedAgent({ t, programs, scratch });
  for (const signal of SIGNALS) {
    await agent.untilMounted();
    const processes = processesOf(agent);
    assert.ok(processes.length >= 3, 'agent, driver, and a broker');
    const ending = (['agent', 'driver'] as const).filter((program) => ends(agent.pid(program), signal));
    for (const { pid } of processes) send(pid, signal);
    for (const program of ending) await agent.ended(program);
    if (signal === constants.signals.SIGUSR1) await untilUnprotectedNodeListens();
    await agent.start();
    for (const { pid, command } of [...processes, ...processesOf(agent)])
      assert.deepEqual(listeningAt(pid), [], `signal ${signal}: ${command}`);
  }
  await agent.untilMounted();
});

const CORE_PATTERN = readFileSync('/proc/sys/kernel/core_pattern', 'utf8').trim();
/** As large as this machine lets cores be; where it lets none, less is shown. */
const CORES_MAX =
  /^Max core file size +\S+ +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? '0';
const LARGE_CORES = ['prlimit', `--core=${CORES_MAX}`, '--'];

function coresIn(...directories: readonly string[]): readonly string[] {
  return directories.flatMap((directory) => readdirSync(directory).filter((name) => name.startsWith('core')));
}

test('SE-20: no process that may hold a secret leaves a core, however large cores may be', {
  skip,
}, async (t) => {
  if (CORES_MAX === '0') t.diagnostic('the limit was 0 before: only the filter is shown');
  const agent = await startShippedAgent({ t, programs, scratch, wrapper: LARGE_CORES });
  for (const name of ['SIGQUIT', 'SIGABRT', 'SIGSEGV'] as const) {
    await agent.untilMounted();
    const processes = processesOf(agent);
    assert.ok(processes.length >= 3, 'agent, driver, and a broker');
    const before = coresIn(agent.directory, '/');
    for (const { pid, command } of processes) {
      const limits = readFileSync(`/proc/${pid}/limits`, 'utf8');
      assert.match(limits, /^Max core file size +0 +0 /m, command);
      // A core that is handed to a program (core_pattern with a bar) is not limited, but holds no memory then.
      assert.match(readFileSync(`/proc/${pid}/coredump_filter`, 'utf8'), /^0+$/m, command);
    }
    for (const { pid } of processes) send(pid, constants.signals[name]);
    for (const program of ['agent', 'driver'] as const) await agent.ended(program);
    if (CORE_PATTERN === 'core') assert.deepEqual(coresIn(agent.directory, '/'), before, name);
    await agent.start();
  }
});
