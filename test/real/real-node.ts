/**
 * A node in this (private) namespace: the program as it is shipped, in a process that can be killed, and the bundled
 * driver behind its judge. Nothing of it stays, and what had to be taken away at the end fails the test.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { changeAtAgent } from '../../agent/cli/api-client.ts';
import type { QuarantineChangeDocument } from '../../agent/status/quarantine-document.ts';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import type { VolumeStatus } from '../../agent/status/volume-status.ts';
import type { RecordForm } from '../../reconciler/journal/record-forms.ts';
import type { VolumeRecord } from '../../reconciler/recovery/record.ts';
import { recordsIn } from '../demo/recorded.ts';
import { untilHealthy, waitForStatus } from '../demo/agent-status.ts';
import { type ChildProcess, startProcess } from '../demo/child-process.ts';
import { detachLoopDevices, mountsBelow, readOrNothing, unmountAll } from '../demo/machine.ts';
import { attachedLoopDevices } from '../machine/loop-devices.ts';
import { until } from '../until.ts';
import { bundle } from './bundle.ts';
import { type JudgedDriver, startJudgedDriver } from './judged-driver.ts';

export const NODE = 'real-node';
const DEADLINE_MS = 300_000;
const LOG_LINES_SHOWN = 25;

export interface RealNode {
  readonly scratch: string;
  readonly root: string;
  readonly driver: JudgedDriver;
  readonly settings: {
    republish_interval_ms?: number;
    resync_ms?: number;
    vanished_hold_ms?: number;
    csi_deadline_ms?: number;
    statistics_interval_ms?: number;
    late_effect_ms?: number;
    immutable_mount_points?: boolean;
    record_store?: RecordForm;
  };
  startAgent(): Promise<void>;
  /** The process that is the agent, without its brokers. */
  agentPid(): number;
  /** kill -9, as at any moment. */
  killAgent(): Promise<void>;
  put(name: string, manifest: string): void;
  remove(name: string): void;
  /** The first status for which it holds. */
  until(what: string, holds: (status: StatusDocument) => boolean): Promise<StatusDocument>;
  /** So many volumes of pods, all mounted; nothing under way and nothing in doubt. */
  untilMounted(volumes: number): Promise<StatusDocument>;
  untilEmpty(): Promise<void>;
  /** What was learnt of every volume is on the disk: an agent that is killed from now on does nothing again. */
  untilRecorded(): Promise<void>;
  /** The operator's command. */
  quarantine(volume: string): Promise<QuarantineChangeDocument>;
  /** What the agent said so far. */
  log(): string;
}

/** Runs a test on a node of its own; the driver is judged at the end. */
export async function onRealNode(
  tell: (node: RealNode) => Promise<void>,
  { attach = false }: { readonly attach?: boolean } = {},
): Promise<void> {
  const scratch = mkdtempSync(join(realpathSync(tmpdir()), 'mooring-real-'));
  const root = join(scratch, 'r');
  const manifests = join(scratch, 'm');
  for (const directory of [root, manifests]) mkdirSync(directory, { mode: 0o750 });
  const [agentProgram, program] = await Promise.all([
    bundle(scratch, 'agent/main.ts', 'mooring.mjs'),
    bundle(scratch, 'plugins/loopfile/main.ts', 'driver.mjs'),
  ]);
  const driver = await startJudgedDriver({ program, scratch, root, nodeName: NODE, attach });
  const socket = join(scratch, 'agent.sock');
  const logFile = join(scratch, 'agent.log');
  const { signal } = new AbortController();
  const log = (): string => readOrNothing(logFile) ?? '';
  let agent: ChildProcess | undefined;

  const node: RealNode = {
    scratch,
    root,
    driver,
    settings: {},
    log,
    async startAgent() {
      const config = {
        root,
        manifests,
        socket,
        node_name: NODE,
        back_off: { first_ms: 50, max_ms: 500 },
        // What goes while the agent is dead is to be gone.
        vanished_hold_ms: 0,
        // An agent that is killed with a call open remembers the call for the sum of both.
        csi_deadline_ms: 30_000,
        late_effect_ms: 1_000,
        ...node.settings,
      };
      // JSON is YAML.
      writeFileSync(join(scratch, 'config.yaml'), JSON.stringify(config));
      const flags = ['--config', join(scratch, 'config.yaml'), '--allow-private-mount-namespace'];
      agent = startProcess({ name: 'agent', argv: [agentProgram, 'agent', ...flags], log: logFile });
      await untilHealthy(socket, agent, signal);
    },
    agentPid: () => agent?.pid ?? assert.fail('no agent was started'),
    async killAgent() {
      await agent?.end('SIGKILL');
      driver.agentIsGone();
    },
    put(name, manifest) {
      writeFileSync(join(scratch, 'new.yaml'), manifest);
      renameSync(join(scratch, 'new.yaml'), join(manifests, `${name}.yaml`));
    },
    remove: (name) => rmSync(join(manifests, `${name}.yaml`)),
    until: (what, holds) => waitForStatus(socket, holds, { what, deadlineMs: DEADLINE_MS, signal }),
    untilMounted: (volumes) =>
      node.until(`${volumes} mounted volumes`, ({ pods, volumes: known, summary }) => {
        const states = pods.flatMap((pod) => pod.volumes.map(({ state }) => state));
        const doubts = known.flatMap(({ rungs }) => Object.values(rungs)).filter((one) => one === 'unsure');
        return (
          states.length === volumes &&
          states.every((one) => one === 'mounted') &&
          doubts.length + summary.operationsRunning + summary.operationsQueued === 0
        );
      }),
    async untilEmpty() {
      await node.until('nothing to be left', ({ pods, volumes, summary }) => {
        const running = summary.operationsRunning + summary.operationsQueued;
        return pods.length + volumes.length + running === 0;
      });
    },
    async untilRecorded() {
      await until('no record to be in doubt', () =>
        [...recordsIn(join(root, 'mooring/records')).values()].every((one) => !one.ok || isSure(one.value)),
      );
    },
    async quarantine(volume) {
      const answer = await changeAtAgent<QuarantineChangeDocument>({
        socket,
        path: '/v1/quarantine',
        method: 'POST',
        body: { volume },
        kind: 'QuarantineChange',
        timeoutMs: DEADLINE_MS,
      });
      return answer.kind === 'ok' ? answer.body : assert.fail(answer.message);
    },
  };

  let left: readonly string[] = [];
  try {
    await tell(node);
    driver.assertJudged();
  } catch (error) {
    const ending =
      agent?.running() === false ? `the agent has ended: ${JSON.stringify(await agent.ended)}\n` : '';
    process.stderr.write(`${log().trimEnd().split('\n').slice(-LOG_LINES_SHOWN).join('\n')}\n${ending}`);
    throw error;
  } finally {
    await agent?.end('SIGTERM');
    await driver.close();
    left = await takeAway(scratch);
  }
  assert.deepEqual(left, [], 'left behind');
}

async function takeAway(scratch: string): Promise<readonly string[]> {
  const mounts = mountsBelow(scratch);
  // Loop devices first: those that hold a device keep its bind busy.
  const devices = attachedLoopDevices().filter(({ backingFile }) => backingFile.includes(`${scratch}/`));
  await unmountAll([...mounts].reverse());
  await detachLoopDevices(
    scratch,
    devices.map(({ name }) => `/dev/${name}`),
  );
  // Mount points of a test that failed are protected yet.
  spawnSync('chattr', ['-R', '-f', '-i', scratch]);
  rmSync(scratch, { recursive: true, force: true });
  return [
    ...mounts.map(({ target }) => `mount ${target.slice(scratch.length)}`),
    ...devices.map(({ name, backingFile }) => `/dev/${name} ${backingFile.slice(scratch.length)}`),
  ];
}

/** The one volume of the status that the driver knows by this handle. */
export function volumeOf({ volumes }: StatusDocument, handle: string): VolumeStatus | undefined {
  return volumes.find(({ id }) => id.endsWith(`^${handle}`));
}

/** A pod with one volume of a claim. */
export function podWith(claim: string, mode: 'Filesystem' | 'Block' = 'Filesystem', spec = ''): string {
  const use =
    mode === 'Block'
      ? 'volumeDevices: [{ name: data, devicePath: /dev/data }]'
      : 'volumeMounts: [{ name: data, mountPath: /data }]';
  return `apiVersion: v1
kind: Pod
metadata: { name: web, namespace: default, uid: web-1 }
spec:
${spec}  containers:
    - name: one
      image: none
      ${use}
  volumes:
    - { name: data, persistentVolumeClaim: { claimName: ${claim} } }
`;
}

/** The pod's place of a file system volume. */
export function targetOf({ root }: RealNode, claim: string): string {
  return join(root, 'pods/web-1/volumes/kubernetes.io~csi', claim, 'mount');
}

/** The places of a block volume of the pod, as the kubelet has them. */
export function blockPlacesOf({ root }: RealNode, claim: string) {
  const devices = join(root, 'plugins/kubernetes.io/csi/volumeDevices');
  return {
    link: join(root, 'pods/web-1/volumeDevices/kubernetes.io~csi', claim),
    held: join(devices, claim, 'dev/web-1'),
    published: join(devices, 'publish', claim, 'web-1'),
    data: join(devices, claim, 'data'),
    all: devices,
  };
}

function isSure({ attached, staged, publications }: VolumeRecord): boolean {
  return ![attached, staged, ...publications.map(({ presence }) => presence)].includes('unsure');
}
