/** A whole agent, as main composes it, with a driver that does as it is told: real sockets, files and manifests. */
import { IN_PROCESS_PARSER } from './in-process-parser.ts';
import assert from 'node:assert/strict';
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { type Agent, type AgentParts, createAgent } from '../../agent/node/agent.ts';
import { parseConfig } from '../../agent/config/parse-config.ts';
import { createTrustedManifests } from '../../agent/source/manifests/trusted-manifests.ts';
import { NO_TOKENS } from '../../agent/source/token-source.ts';
import { explain } from '../../agent/status/explain.ts';
import { formatMetrics } from '../../agent/metrics/metrics.ts';
import { isSettled } from '../../agent/node/settled.ts';
import { statusOf } from '../../agent/status/status.ts';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import { observeForMetrics } from '../../agent/metrics/metrics-facts.ts';
import { observe } from '../../agent/status/status-facts.ts';
import { fail, ok } from '../../mount/failure.ts';
import { below, type FileEntry, type Host } from '../../mount/host.ts';
import type { RemoteCall, RemoteReply } from '../../mount/remote-call.ts';
import { createMountTable, type MountEntry } from '../../mount/mount-table.ts';
import type { GrpcServer } from '../../plugins/csi/wire/grpc-service.ts';
import { methodName } from '../../plugins/csi/wire/status.ts';
import type { Log, LogFields } from '../../mount/process/log.ts';
import { accept } from '../plugins/csi/answers.ts';
import { type Script, script, serveDriver } from '../plugins/csi/scripted-driver.ts';
import { createSocketHost, HOST_DISK, inRoot, type SocketHost } from '../plugins/csi/socket-host.ts';
import { until } from '../until.ts';

/** The driver that test/agent/manifests.ts writes into PersistentVolumes. */
export const DUTY_DRIVER = 'test.csi.example';

export interface AgentWorld {
  readonly host: SocketHost;
  readonly plan: Script;
  readonly agent: Agent;
  /** Every line logged, as JSON. */
  readonly log: readonly string[];
  /** Replaces the manifests: files that are not named any more are removed. */
  write(files: Readonly<Record<string, string>>): void;
  status(): StatusDocument;
  metrics(): string;
  /** All texts that people can see: log, status, every explanation, metrics. */
  seen(): string;
  /** What the driver was asked since the agent knows it. */
  asked(): readonly string[];
  /** Stops this agent and starts another on the same root, with these settings changed, and beside other parts. */
  restart(settings?: Readonly<Record<string, unknown>>, beside?: Beside): Promise<AgentWorld>;
  /** Another life of the driver, on another inode of its socket. */
  replaceDriver(changes: Partial<Script>): Promise<void>;
}

interface Running {
  readonly agent: Agent;
  readonly host: SocketHost;
  readonly servers: GrpcServer[];
}

const running: Running[] = [];

afterEach(async () => {
  for (const { agent, host, servers } of running.splice(0)) {
    await agent.stop(1_000);
    for (const server of servers) await server.close();
    host.close();
  }
});

const HANDSHAKE: ReadonlySet<string> = new Set([
  'GetPluginInfo',
  'Probe',
  'GetPluginCapabilities',
  'NodeGetInfo',
  'NodeGetCapabilities',
  'ControllerGetCapabilities',
]);

export async function agentWorld(
  files: Readonly<Record<string, string>>,
  changes: Partial<Script> = {},
  settings: Readonly<Record<string, unknown>> = {},
  answers: Answers = {},
  beside: Beside = {},
): Promise<AgentWorld> {
  const host = createSocketHost();
  mkdirSync(inRoot(host, 'manifests'), { mode: 0o750 });
  const plan = script({ name: DUTY_DRIVER, ...changes });
  const servers = [await serveDriver(host, inRoot(host, 'driver', 'csi.sock'), plan)];
  writeFiles(host, files);
  return startAgent({ host, plan, servers, settings, answers, beside });
}

interface AgentWorldParts {
  readonly host: SocketHost;
  readonly plan: Script;
  readonly servers: GrpcServer[];
  readonly settings: Readonly<Record<string, unknown>>;
  readonly answers: Answers;
  readonly beside: Beside;
}

/** What an agent gets its wish from beside its manifests. */
export type Beside = Partial<Pick<AgentParts, 'sources' | 'tokens' | 'attachment'>>;

/** Replies to methods that the scripted driver does not have; they are noted as called. */
export type Answers = Readonly<Record<string, unknown>>;

async function startAgent(parts: AgentWorldParts): Promise<AgentWorld> {
  const { host, plan, servers, settings, answers, beside } = parts;
  const root = inRoot(host, 'state');
  mkdirSync(root, { recursive: true, mode: 0o750 });
  const socket = inRoot(host, 'driver', 'csi.sock');
  const reading = parseConfig(
    {
      root,
      manifests: inRoot(host, 'manifests'),
      socket: inRoot(host, 'agent.sock'),
      static_drivers: [{ socket }],
      settle_ms: 0,
      resync_ms: 1_000,
      back_off: { first_ms: 20, max_ms: 200 },
      ...settings,
    },
    {},
    'node-a',
  );
  assert.ok(reading.ok, JSON.stringify(reading));
  const lines: string[] = [];
  const line =
    (level: string) =>
    (event: string, fields: LogFields = {}) => {
      lines.push(JSON.stringify({ level, event, ...fields }));
    };
  const log: Log = { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') };
  const whole = wholeHost(host, answers);
  const config = reading.value;
  const manifests = createTrustedManifests({ host: whole, parser: IN_PROCESS_PARSER, config, log });
  const agent = createAgent({
    host: whole,
    sources: [manifests, ...(beside.sources ?? [])],
    tokens: beside.tokens ?? NO_TOKENS,
    attachment: beside.attachment,
    config,
    log,
  });
  const life: Running = { agent, host, servers };
  running.push(life);
  accept(await agent.start());
  const status = () => {
    const observer = { nodeName: 'node-a', clock: host, abandonedCalls: () => 0 };
    return statusOf(observe(agent.view(), observer), agent.view().layout, '1');
  };
  const metrics = () => formatMetrics(observeForMetrics(agent.view(), host));
  return {
    host,
    plan,
    agent,
    log: lines,
    write: (files) => writeFiles(host, files),
    status,
    metrics,
    seen: () => {
      const document = status();
      const subjects = [...document.pods.map(({ uid }) => uid), ...document.volumes.map(({ name }) => name)];
      const explanations = subjects.map((subject) => explain(subject, document));
      return [...lines, JSON.stringify(document), JSON.stringify(explanations), metrics()].join('\n');
    },
    asked: () => host.called.filter((method) => !HANDSHAKE.has(method)),
    async restart(more = {}, others = beside) {
      running.splice(running.indexOf(life), 1);
      await agent.stop(1_000);
      return startAgent({ ...parts, settings: { ...settings, ...more }, beside: others });
    },
    async replaceDriver(changes) {
      Object.assign(plan, changes);
      servers.push(await serveDriver(host, socket, plan));
    },
  };
}

function writeFiles(host: SocketHost, files: Readonly<Record<string, string>>): void {
  const directory = inRoot(host, 'manifests');
  for (const name of readdirSync(directory)) if (!(name in files)) rmSync(join(directory, name));
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(directory, `.${name}`), text);
    renameSync(join(directory, `.${name}`), join(directory, name));
  }
}

/** With what the agent needs beside its drivers. */
function wholeHost(host: SocketHost, answers: Answers): Host {
  return {
    ...host,
    async call<Request, Reply>(call: RemoteCall<Request, Reply>): Promise<RemoteReply<Reply>> {
      const method = methodName(call.method.path);
      if (!(method in answers)) return host.call(call);
      host.called.push(method);
      return { kind: 'ok', reply: answers[method] as Reply };
    },
    readMountTable: async () =>
      ok(
        createMountTable(
          [['/', HOST_DISK] as const, ...host.mounts].map(
            ([target, { mountId, device }]): MountEntry => ({
              mountId,
              parentId: HOST_DISK.mountId,
              device,
              root: '/',
              target: target as MountEntry['target'],
              options: ['rw'],
              propagation: ['shared:1'],
              fsType: 'ext4',
              source: `/dev/${device}`,
              superOptions: ['rw'],
            }),
          ),
        ),
      ),
    async readDirectoryFiles(path, { identity }) {
      const there = await host.identifyDirectory(path);
      if (!there.ok) return there;
      if (identity !== undefined && !isDeepStrictEqual(there.value, identity))
        return fail({ code: 'directory-replaced', message: `${path} is another one`, effect: 'none' });
      const entries: FileEntry[] = [];
      for (const name of readdirSync(path)) {
        const file = below(path, name);
        const facts = await host.inspect(file);
        if (!facts.ok) return facts;
        if (facts.value.kind === 'absent') continue;
        const bytes =
          facts.value.kind === 'file' ? await readFile(file).catch(() => 'gone' as const) : undefined;
        // It went between two looks, as files do.
        if (bytes === 'gone') continue;
        entries.push({
          name,
          facts: facts.value,
          content: bytes && ok(new Uint8Array(bytes)),
          stamp: undefined,
        });
      }
      return ok(entries);
    },
  };
}

/** Every file the agent has written below its root, by path. */
export function stateFiles({ host }: AgentWorld): ReadonlyMap<string, string> {
  const root = inRoot(host, 'state');
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' });
  const files = names.filter((name) => lstatSync(join(root, name)).isFile());
  return new Map(files.map((name) => [name, readFileSync(join(root, name), 'utf8')]));
}

/** Waits until everything wanted is there and nothing else is. */
export async function untilSettled(world: AgentWorld): Promise<void> {
  await until('settled', () => isSettled(world.agent.view()));
}

export { until };
