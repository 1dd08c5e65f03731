/**
 * The bundled driver in a process of its own, behind the recording proxy: an oracle judges every call it receives, and
 * a test may do harm to calls or answer them itself. It registers as a driver does, in `plugins_registry`.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, watch } from 'node:fs';
import { dirname, join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { promisify } from 'node:util';
import { CLOCK } from '../../agent/drive/rig/machine.ts';
import { CallOracle } from '../../agent/drive/oracle/oracle.ts';
import { type ArrivingCall, type Injection, startProxy } from '../../agent/drive/proxy/proxy.ts';
import type { RecordedCall } from '../../agent/drive/oracle/recorded-call.ts';
import type { SocketIdentity } from '../../mount/remote-call.ts';
import { ControllerService } from '../../plugins/csi/wire/generated/csi.ts';
import { RegistrationService } from '../../plugins/csi/wire/generated/pluginregistration.ts';
import { createGrpcRemote, serveGrpc } from '../../plugins/csi/wire/grpc.ts';
import { createRegistrationService } from '../../plugins/loopfile/registration-service.ts';

export const DRIVER = 'loopfile.mooring.dev';
const CALL_MS_MAX = 300_000;
const START_MS_MAX = 300_000;
const NANOSECONDS_PER_MS = 1_000_000;

export interface JudgedDriverOptions {
  /** The bundle of plugins/loopfile/main.ts. */
  readonly program: string;
  readonly scratch: string;
  readonly root: string;
  readonly nodeName: string;
  /** The wish only comes and goes: the same call always has the same arguments. */
  readonly steadyWish?: boolean;
  /** It has to be attached before it is staged. */
  readonly attach?: boolean;
}

export interface JudgedDriver {
  readonly pool: string;
  readonly oracle: CallOracle;
  /** What was answered so far, in the order of the answers. */
  readonly calls: readonly RecordedCall[];
  /** The calls that change something, since the last time it was asked. */
  newCalls(): readonly string[];
  /** Asked at every call; undefined: it passes untouched. */
  inject: (call: ArrivingCall) => Injection | undefined;
  /** Told of every answer before the agent is. */
  answered: (call: RecordedCall) => void;
  /** PersistentVolume and claim as YAML, and the handle. */
  create(
    name: string,
    size: string,
    as?: { readonly mode?: 'Filesystem' | 'Block'; readonly fsType?: 'ext4' | 'xfs' },
  ): Promise<{ readonly yaml: string; readonly handle: string }>;
  /** The controller's part of an expansion. */
  grow(handle: string, bytes: number): Promise<void>;
  /** The agent was killed: its calls that are still open here are nobody's any more. */
  agentIsGone(): void;
  /** Fails when a rule was broken, or when the driver must believe that something is still in use. */
  assertJudged(): void;
  close(): Promise<void>;
}

export async function startJudgedDriver(options: JudgedDriverOptions): Promise<JudgedDriver> {
  const { program, scratch, root, nodeName } = options;
  const pool = join(scratch, 'p');
  const behind = join(scratch, 'd.sock');
  const front = join(root, 'plugins', DRIVER, 'csi.sock');
  const registry = join(root, 'plugins_registry');
  for (const directory of [pool, dirname(front), registry])
    mkdirSync(directory, { recursive: true, mode: 0o750 });
  const argv = [program, '--pool', pool, '--endpoint', `unix://${behind}`, '--node-id', nodeName];
  if (options.attach === true) argv.push('--attach');
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', process.execPath, ...argv], {
    stdio: ['ignore', 'ignore', process.env['SWEEP_LOG'] === '1' ? 'inherit' : 'ignore'],
  });
  await appearance(behind);
  const heldUp = monitorEventLoopDelay();
  heldUp.enable();
  const oracle = new CallOracle({ steadyWish: options.steadyWish ?? false });
  const remote = createGrpcRemote();
  const proxy = await startProxy({
    listen: front,
    driver: behind,
    remote: remote.call,
    clock: CLOCK,
    deadlineMs: CALL_MS_MAX,
    inject: (call) => driver.inject(call),
    onArrival(call) {
      const ended = oracle.begin(call);
      return (answer) => {
        ended(answer);
        driver.answered(answer);
      };
    },
  });
  const registration = await serveGrpc(join(registry, `${DRIVER}-reg.sock`), [
    {
      definition: RegistrationService,
      implementation: createRegistrationService(DRIVER, front, () => undefined),
    },
  ]);
  let told = 0;
  const run = promisify(execFile);

  const driver: JudgedDriver = {
    pool,
    oracle,
    calls: proxy.calls,
    newCalls() {
      const since = proxy.calls.slice(told);
      told = proxy.calls.length;
      return since.filter(({ method }) => CHANGING.test(method)).map(({ method }) => method);
    },
    inject: () => undefined,
    answered: () => undefined,
    async create(name, size, { mode = 'Filesystem', fsType = 'ext4' } = {}) {
      const create = [program, 'create', '--pool', pool, '--name', name, '--size', size, '--fs', fsType];
      const { stdout } = await run(process.execPath, [...create, '--yaml']);
      const handle = /volumeHandle: (\S+)/.exec(stdout)?.[1] ?? assert.fail(stdout);
      // After the access modes of the volume and of the claim alike.
      const yaml = stdout.replaceAll('storageClassName:', `volumeMode: ${mode}\n  storageClassName:`);
      return { yaml, handle };
    },
    async grow(handle, bytes) {
      const reply = await remote.call({
        socket: { path: behind, inode: 0 } as SocketIdentity,
        method: ControllerService.controllerExpandVolume,
        request: {
          volumeId: handle,
          capacityRange: { requiredBytes: BigInt(bytes), limitBytes: 0n },
          secrets: {},
          volumeCapability: undefined,
        },
        deadlineMs: CALL_MS_MAX,
      });
      assert.ok(reply.kind === 'ok', 'message' in reply ? reply.message : reply.kind);
    },
    agentIsGone: () => oracle.forgetOpenCalls(),
    assertJudged() {
      assert.ok(oracle.calls > 0, 'the driver was called');
      // What the specification only advises depends on the length of the scratch directory's name.
      const rules = oracle.violations.filter(({ level }) => level === 'must');
      const broken = rules.map(({ duty, text }) => `${duty} ${text}`);
      // Held up for the length of a question, the judge takes one that was given up for one that is open.
      const judged = `the judge was held up for ${Math.round(heldUp.max / NANOSECONDS_PER_MS)} ms at most`;
      assert.deepEqual([...new Set(broken)], [], `rules of the specification that were broken; ${judged}`);
      assert.deepEqual(oracle.remains(), [], 'what the driver must believe is still in use');
    },
    async close() {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      await Promise.all([proxy.close(), registration.close()]);
      remote.close();
      heldUp.disable();
    },
  };
  return driver;
}

const CHANGING = /^(Node(Stage|Unstage|Publish|Unpublish|Expand)Volume|Controller(Publish|Unpublish)Volume)$/;

/** Settles when there is such a file. */
async function appearance(path: string): Promise<void> {
  const signal = AbortSignal.timeout(START_MS_MAX);
  const watcher = watch(dirname(path));
  try {
    while (!existsSync(path)) await once(watcher, 'change', { signal });
  } finally {
    watcher.close();
  }
}
