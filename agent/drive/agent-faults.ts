/**
 * Mooring itself through the faulty proxy: the real agent sets a volume up, is started again, and takes it down, while
 * calls go wrong. It must converge, and the oracle must find nothing to say about the order of its calls.
 */
import { join } from 'node:path';
import { ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import { createTrustedManifests } from '../source/manifests/trusted-manifests.ts';
import { NO_TOKENS } from '../source/token-source.ts';
import { createParserBroker } from '../../mount/agent-side/parser-broker.ts';
import { createLinuxHost } from '../../mount/agent-side/linux-host.ts';
import { createGrpcRemote } from '../../plugins/csi/wire/grpc.ts';
import { createLayout } from '../../plugins/layout/layout.ts';
import type { PodUid } from '../../plugins/volume.ts';
import type { Log } from '../../mount/process/log.ts';
import { type Agent, createAgent } from '../node/agent.ts';
import { createChildParser } from '../source/manifests/parse/child-parser.ts';
import type { Config } from '../config/config.ts';
import { parseConfig } from '../config/parse-config.ts';
import { createDirectoryWatcher } from '../source/manifests/directory-watcher.ts';
import { isSettled } from '../node/settled.ts';
import { createFaults, type FaultClass } from './fault-class.ts';
import type { Life } from './rig/life.ts';
import type { TestVolume } from './rig/test-volume.ts';
import {
  CLOCK,
  kindOf,
  makeDirectory,
  mountsBelow,
  pause,
  readProbe,
  removeFile,
  replaceFile,
  writeProbe,
} from './rig/machine.ts';
import { CallOracle } from './oracle/oracle.ts';
import { startProxy } from './proxy/proxy.ts';
import type { Notes } from './oracle/verdict.ts';
import { POD_UID, PV, volumeManifest } from './rig/volume-manifest.ts';

export interface AgentDrive {
  readonly life: Life;
  readonly notes: Notes;
  readonly fault: FaultClass;
  readonly remote: Host['call'];
  readonly brokerCommand: readonly string[];
  /** Nothing is waited for any more. */
  readonly interrupted: AbortSignal;
}

const SETTLE_MS_MAX = 60_000;
const LOOK_MS = 25;
const STOP_MS_MAX = 2_500;
const AGENT_CALL_MS = 10_000;
/** What the proxy holds back it lets go of within the deadline. */
const AGENT_LATE_MS = 1_000;
const DRIVER_CALL_MS = 60_000;
const LOG_LINES_MAX = 200;

interface LivingAgent {
  readonly agent: Agent;
  end(): Promise<void>;
}

/**
 * Writes everything it sees to `notes`; the agent and the proxy have ended when it settles. What the agent has left by
 * then is the life's to take down.
 */
export async function driveAgent(drive: AgentDrive): Promise<void> {
  const { life, notes, fault, remote, brokerCommand } = drive;
  const volume = await life.made(notes);
  if (volume === undefined) return;
  const root = join(life.directory, 'root');
  const manifests = join(life.directory, 'manifests');
  for (const directory of [root, manifests]) await makeDirectory(directory);
  const socket = join(life.directory, 'csi.sock');
  const config = configOf(root, manifests, socket, life.directory);
  if (!config.ok) return notes.fail(config.failure.message);
  const oracle = new CallOracle({ canaries: Object.values(life.rig.options.secrets).flatMap(Object.values) });
  const faults = createFaults(fault, life.rig.random);
  const proxy = await startProxy({
    listen: socket,
    driver: life.rig.endpoint,
    remote,
    clock: CLOCK,
    deadlineMs: DRIVER_CALL_MS,
    inject: faults.inject,
    onArrival: (call) => {
      life.noteCall(volume, call);
      return oracle.begin(call);
    },
  });
  const lines: string[] = [];
  const start = () => startAgent(config.value, brokerCommand, lines);
  try {
    await setUpAndDown({ ...drive, volume, root, manifests, start, renew: faults.renew });
  } finally {
    await proxy.close();
    if (oracle.remains().length === 0) life.forgetCalls();
  }
  if (isCutShort(drive)) return;
  for (const text of new Set(oracle.violations.filter(({ level }) => level === 'must').map(textOf)))
    notes.fail(`the agent's calls: ${text}`);
  for (const remains of oracle.remains()) notes.fail(`the driver must believe that ${remains}`);
  notes.expect(faults.injected() > 0, 'no fault was injected');
  if (notes.failures.length > 0) for (const line of lines.slice(-5)) notes.remark(`log: ${line}`);
}

function textOf({ duty, text }: { readonly duty: string; readonly text: string }): string {
  return `${duty} ${text}`;
}

/** By a person, or by the end of the driver, which is told elsewhere: what is missing then is nobody's fault. */
function isCutShort({ life, interrupted }: Pick<AgentDrive, 'life' | 'interrupted'>): boolean {
  return interrupted.aborted || life.rig.driver?.ending() !== undefined;
}

interface Story extends Pick<AgentDrive, 'life' | 'notes' | 'interrupted'> {
  readonly volume: TestVolume;
  readonly root: string;
  readonly manifests: string;
  readonly start: () => Promise<Result<LivingAgent>>;
  readonly renew: () => void;
}

async function setUpAndDown(story: Story): Promise<void> {
  const { life, notes, volume, root, manifests, start, renew } = story;
  const manifest = join(manifests, 'volume.json');
  const target = createLayout(root as AbsolutePath).csiTarget({
    pod: { uid: POD_UID as PodUid },
    specName: PV,
  });
  const first = await start();
  if (!first.ok) return notes.fail(`the agent does not start: ${first.failure.message}`);
  try {
    await replaceFile(manifest, volumeManifest(life.rig.facts.name, volume, life.rig.options));
    if (!(await settles(story, first.value.agent, 'the set-up', 1))) return;
    if (!notes.expect(await isMounted(root, target), 'the agent says it is set up, but nothing is mounted'))
      return;
    const errno = await writeProbe(join(target, 'mooring-drive'), life.rig.runId);
    notes.expect(errno === undefined, `the volume cannot be written: ${errno}`);
  } finally {
    await first.value.end();
  }
  renew();
  const second = await start();
  if (!second.ok) return notes.fail(`the agent does not start again: ${second.failure.message}`);
  try {
    if (!(await settles(story, second.value.agent, 'the restart', 1))) return;
    const read = await readProbe(join(target, 'mooring-drive'));
    notes.expect(read.ok && read.value === life.rig.runId, 'after the restart the data is not there');
    renew();
    await removeFile(manifest);
    if (!(await settles(story, second.value.agent, 'the tear-down', 0))) return;
    const left = await mountsBelow(root);
    notes.expect(left.length === 0, `${left.length} mounts are left after the tear-down`);
    notes.expect((await kindOf(target)) === 'absent', 'the target is left after the tear-down');
  } finally {
    await second.value.end();
  }
}

async function isMounted(root: string, target: string): Promise<boolean> {
  return (await mountsBelow(root)).some((mount) => mount.target === target);
}

function configOf(root: string, manifests: string, socket: string, directory: string): Result<Config> {
  const reading = parseConfig(
    {
      root,
      manifests,
      socket: join(directory, 'agent.sock'),
      static_drivers: [{ socket }],
      allow_private_mount_namespace: true,
      settle_ms: 20,
      csi_deadline_ms: AGENT_CALL_MS,
      late_effect_ms: AGENT_LATE_MS,
      back_off: { first_ms: 50, max_ms: 500 },
    },
    {},
    'mooring-drive',
  );
  if (reading.ok) return ok(reading.value);
  const message = reading.problems.map(({ key, message: right }) => `${key}: ${right}`).join('; ');
  return { ok: false, failure: { code: 'spec-invalid', message, effect: 'none' } };
}

async function startAgent(
  config: Config,
  brokerCommand: readonly string[],
  lines: string[],
): Promise<Result<LivingAgent>> {
  const remote = createGrpcRemote();
  const watcher = createDirectoryWatcher({ timer: CLOCK.timer });
  const host = await createLinuxHost({ remote: remote.call, watch: watcher.watch, brokerCommand });
  const parserBroker = createParserBroker({ command: brokerCommand });
  const parser = createChildParser(parserBroker);
  const log = logTo(lines);
  const sources = [createTrustedManifests({ host, parser, config, log })];
  const agent = createAgent({ host, sources, tokens: NO_TOKENS, config, log });
  const end = async (): Promise<void> => {
    await agent.stop(STOP_MS_MAX);
    remote.close();
    await Promise.all([watcher.close(), parserBroker.close(), host.close()]);
  };
  const started = await agent.start();
  if (started.ok) return ok({ agent, end });
  await end();
  return started;
}

function logTo(lines: string[]): Log {
  const line = (event: string, fields = {}): void => {
    lines.push(`${event} ${JSON.stringify(fields)}`);
    if (lines.length > LOG_LINES_MAX) lines.shift();
  };
  return { debug: () => {}, info: line, warn: line, error: line };
}

/** Waits until so many volumes are there, all as they are wanted, and nothing is being done. */
async function settles(story: Story, agent: Agent, what: string, volumes: number): Promise<boolean> {
  const { notes } = story;
  const untilMs = CLOCK.nowMs() + SETTLE_MS_MAX;
  for (;;) {
    const view = agent.view();
    const { reconciler } = view;
    if (reconciler.desired().volumes.size === volumes && isSettled(view)) return true;
    if (story.interrupted.aborted) notes.skip('interrupted');
    if (isCutShort(story)) return false;
    if (CLOCK.nowMs() > untilMs) {
      const why = reconciler.obstacles().map(({ kind, message }) => `${kind}: ${message}`);
      notes.fail(
        `${what} did not converge within ${SETTLE_MS_MAX / 1_000} s: ${why.join('; ') || 'no reason is known'}`,
      );
      return false;
    }
    await pause(LOOK_MS);
  }
}
