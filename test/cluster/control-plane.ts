/**
 * A real Kubernetes control plane on the loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, with
 * the Node authorizer and NodeRestriction, certificates of its own and everything below one directory.
 */
import { spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  openSync,
  closeSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { buildPrograms, programFile } from '../interop/go-program.ts';
import { type AdminClient, createAdminClient } from './admin-client.ts';
import { signalProcess } from '../signal.ts';

export interface ControlPlaneOptions {
  /** Made, and removed by `removeControlPlane`. */
  readonly directory: string;
  /** The node that has an identity, and a Node object. */
  readonly nodeName: string;
  /** Further ones; see `kubeconfigOf`. */
  readonly otherNodes?: readonly string[];
  /** The processes end with this one, however it ends. */
  readonly isBound: boolean;
  /** Pods of nodes that are gone, or out of service, are deleted by a controller. */
  readonly collectsPods?: boolean;
  /** The API server keeps nothing for watches: each one is the store's own, and none is told how far it has come. */
  readonly isUncached?: boolean;
  /** Its controllers ask as fast as they can; else 20 times in a second, which a burst of a node waits for. */
  readonly isUnthrottled?: boolean;
}

export interface ControlPlane {
  readonly server: string;
  readonly nodeName: string;
  readonly adminKubeconfig: string;
  readonly nodeKubeconfig: string;
  /** The identity of a further node. */
  kubeconfigOf(nodeName: string): string;
  readonly admin: AdminClient;
  /** Every request that the API server has answered: one JSON object a line (audit.k8s.io, level Metadata). */
  readonly auditLog: string;
}

/** A process of the control plane, so that no other one is ever ended in its place. */
interface Started {
  readonly name: string;
  readonly pid: number;
  readonly startTicks: string;
  readonly flags: readonly string[];
}

const READY_MS = 300_000;
const LOOK_MS = 100;
const END_MS = 30_000;
const PORT_MIN = 10_000;
/** Where the kernel's own begin below the first: as they begin by default. */
const PORT_END = 32_768;
const CONTROLLERS = [
  'persistentvolume-attach-detach-controller',
  'persistentvolume-binder-controller',
  'persistentvolume-expander-controller',
  'persistentvolume-protection-controller',
  'persistentvolumeclaim-protection-controller',
  'ephemeral-volume-controller',
  'serviceaccount-controller',
  'namespace-controller',
  'root-ca-certificate-publisher-controller',
];
const POD_COLLECTOR = 'pod-garbage-collector-controller';
const AUDIT_POLICY =
  'apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n';

/** Undefined when all is built; else one line that says what has to be installed. Minutes when it was never built. */
export function prepareControlPlane(): string | undefined {
  return buildPrograms(['certificates', 'control-plane']);
}

/** Settles when the API server is ready, the Node is made and the controllers run. Else it rejects. */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { directory, nodeName, otherNodes = [] } = options;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const names = [nodeName, ...otherNodes];
  const made = spawnSync(programFile('certificates'), [directory, ...names], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`certificates: ${made.stderr}`);
  const [etcd = 0, etcdPeer = 0, api = 0] = await freePorts(3);
  const server = `https://127.0.0.1:${api}`;
  const clients = ['admin', 'node', 'kube-controller-manager', 'kube-scheduler'];
  for (const name of [...clients, ...otherNodes.map((one) => `node-${one}`)])
    writeFileSync(join(directory, `${name}.kubeconfig`), kubeconfig(directory, server, name), {
      mode: 0o600,
    });
  writeFileSync(join(directory, 'audit-policy.yaml'), AUDIT_POLICY);
  start(options, 'etcd', etcdFlags(directory, etcd, etcdPeer));
  start(options, 'kube-apiserver', [
    ...apiServerFlags(directory, etcd, api),
    ...(options.isUncached === true ? ['--watch-cache=false'] : []),
  ]);
  const plane = controlPlaneAt(directory, server, nodeName);
  await untilReady(directory, plane.admin);
  start(options, 'kube-controller-manager', [
    ...client(directory, 'kube-controller-manager'),
    `--controllers=${[...CONTROLLERS, ...(options.collectsPods === true ? [POD_COLLECTOR] : [])].join(',')}`,
    ...(options.isUnthrottled === true ? ['--kube-api-qps=2000', '--kube-api-burst=4000'] : []),
    '--use-service-account-credentials',
    `--service-account-private-key-file=${join(directory, 'service-account.key')}`,
    `--root-ca-file=${join(directory, 'authority.crt')}`,
  ]);
  start(options, 'kube-scheduler', client(directory, 'kube-scheduler'));
  for (const name of names) await makeNode(plane.admin, name);
  return plane;
}

/** The one that was started there, by this process or another one; undefined when there is none. */
export function controlPlaneIn(directory: string): ControlPlane | undefined {
  if (runningIn(directory).length === 0) return undefined;
  const { server, nodeName } = JSON.parse(readFileSync(join(directory, 'cluster.json'), 'utf8')) as {
    server: string;
    nodeName: string;
  };
  return controlPlaneAt(directory, server, nodeName);
}

/** Ends what was started there, and removes the directory. The answer: how many processes were ended. */
export async function removeControlPlane(directory: string): Promise<number> {
  const running = runningIn(directory);
  // The API server before the store that it writes to.
  for (const one of [...running].reverse()) await end(one);
  rmSync(directory, { recursive: true, force: true });
  return running.length;
}

/** Stops one of its processes, or lets it go on. */
export function signalControlPlane(directory: string, name: string, signal: 'SIGSTOP' | 'SIGCONT'): void {
  for (const one of runningIn(directory)) if (one.name === name) signalProcess(one.pid, signal);
}

/** As when its machine fails, and another one takes its place. Settles when it is ready again. */
export async function restartApiServer(restarting: Restarting): Promise<void> {
  await restart(restarting, 'kube-apiserver');
  await untilReady(restarting.directory, restarting.plane.admin);
}

/** The same of its controllers. Settles when they have begun to start: they are never told to be ready. */
export function restartControllers(restarting: Restarting): Promise<void> {
  return restart(restarting, 'kube-controller-manager');
}

async function restart({ directory, plane }: Restarting, which: string): Promise<void> {
  const before = runningIn(directory).find(({ name }) => name === which);
  if (before === undefined) throw new Error(`no ${which} runs there`);
  signalProcess(before.pid, 'SIGKILL');
  while (isRunning(before)) await pause(LOOK_MS / 2);
  start({ directory, nodeName: plane.nodeName, isBound: true }, before.name, before.flags);
}

export interface Restarting {
  readonly directory: string;
  readonly plane: ControlPlane;
}

/** History before this moment is gone: who watches from an earlier version has to read all anew. */
export async function compactHistory(directory: string): Promise<void> {
  const etcd = runningIn(directory).find(({ name }) => name === 'etcd');
  const url = etcd?.flags.find((flag) => flag.startsWith('--listen-client-urls='))?.split('=')[1] ?? '';
  const store = createAdminClient(url, directory, 'etcd-client');
  // Over HTTP the store takes bytes as base64, and this is the least key.
  const { header } = await store.request('POST', '/v3/kv/range', { key: 'AA==', limit: 1 });
  const { revision } = header as { readonly revision: string };
  const { status } = await store.tryRequest('POST', '/v3/kv/compaction', { revision, physical: true });
  // 400: nothing has happened since the last time.
  if (status !== 200 && status !== 400) throw new Error(`the store does not forget: ${status}`);
}

function controlPlaneAt(directory: string, server: string, nodeName: string): ControlPlane {
  writeFileSync(join(directory, 'cluster.json'), JSON.stringify({ server, nodeName }));
  return {
    server,
    nodeName,
    adminKubeconfig: join(directory, 'admin.kubeconfig'),
    nodeKubeconfig: join(directory, 'node.kubeconfig'),
    kubeconfigOf: (name) => join(directory, `node-${name}.kubeconfig`),
    admin: createAdminClient(server, directory),
    auditLog: join(directory, 'audit.log'),
  };
}

function etcdFlags(directory: string, port: number, peerPort: number): readonly string[] {
  const peer = `http://127.0.0.1:${peerPort}`;
  return [
    `--data-dir=${join(directory, 'etcd')}`,
    `--listen-client-urls=https://127.0.0.1:${port}`,
    `--advertise-client-urls=https://127.0.0.1:${port}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    `--cert-file=${join(directory, 'etcd.crt')}`,
    `--key-file=${join(directory, 'etcd.key')}`,
    `--trusted-ca-file=${join(directory, 'authority.crt')}`,
    '--client-cert-auth',
    '--unsafe-no-fsync',
    '--log-level=warn',
  ];
}

function apiServerFlags(directory: string, etcdPort: number, port: number): readonly string[] {
  const file = (name: string): string => join(directory, name);
  return [
    `--etcd-servers=https://127.0.0.1:${etcdPort}`,
    `--etcd-cafile=${file('authority.crt')}`,
    `--etcd-certfile=${file('etcd-client.crt')}`,
    `--etcd-keyfile=${file('etcd-client.key')}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    `--tls-cert-file=${file('kube-apiserver.crt')}`,
    `--tls-private-key-file=${file('kube-apiserver.key')}`,
    `--client-ca-file=${file('authority.crt')}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    // A pod without a service account that exists is one object less for each test.
    '--disable-admission-plugins=ServiceAccount',
    `--service-account-key-file=${file('service-account.key')}`,
    `--service-account-signing-key-file=${file('service-account.key')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    '--service-cluster-ip-range=10.0.0.0/24',
    '--endpoint-reconciler-type=none',
    '--allow-privileged',
    `--audit-policy-file=${file('audit-policy.yaml')}`,
    `--audit-log-path=${file('audit.log')}`,
  ];
}

function client(directory: string, name: string): readonly string[] {
  return [`--kubeconfig=${join(directory, `${name}.kubeconfig`)}`, '--leader-elect=false', '--secure-port=0'];
}

function kubeconfig(directory: string, server: string, name: string): string {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'cluster', cluster: { server, 'certificate-authority': join(directory, 'authority.crt') } },
    ],
    users: [
      {
        name,
        user: {
          'client-certificate': join(directory, `${name}.crt`),
          'client-key': join(directory, `${name}.key`),
        },
      },
    ],
    contexts: [{ name: 'default', context: { cluster: 'cluster', user: name } }],
    'current-context': 'default',
  };
  // JSON is YAML.
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

function start({ directory, isBound }: ControlPlaneOptions, name: string, flags: readonly string[]): void {
  const log = openSync(join(directory, `${name}.log`), 'a');
  const argv = [programFile('control-plane'), name, ...flags];
  const bound = isBound ? ['setpriv', '--pdeathsig', 'KILL', '--', ...argv] : argv;
  const [command = '', ...rest] = bound;
  const child = spawn(command, rest, { stdio: ['ignore', log, log], detached: true, cwd: directory });
  closeSync(log);
  child.on('error', () => undefined);
  child.unref();
  const { pid } = child;
  if (pid === undefined) throw new Error(`${name} was not started: ${command} cannot be run`);
  const all = [...processesIn(directory), { name, pid, startTicks: startTicks(pid) ?? '', flags }];
  writeFileSync(join(directory, 'processes.json'), JSON.stringify(all));
}

async function untilReady(directory: string, admin: AdminClient): Promise<void> {
  const endMs = performance.now() + READY_MS;
  for (;;) {
    const { status } = await admin.tryRequest('GET', '/readyz');
    if (status === 200) return;
    const running = new Set(runningIn(directory).map(({ name }) => name));
    const isGone = !running.has('etcd') || !running.has('kube-apiserver');
    if (isGone || performance.now() > endMs)
      throw new Error(`the API server is not ready:\n${lastWords(directory)}`);
    await pause(LOOK_MS);
  }
}

function lastWords(directory: string): string {
  return ['etcd', 'kube-apiserver']
    .map((name) => {
      const file = join(directory, `${name}.log`);
      const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n').slice(-8) : [];
      return [`${name}.log:`, ...lines].join('\n  ');
    })
    .join('\n');
}

/** Ready, and with no taint: nobody here renews a lease, and the controller that would notice does not run. */
export async function makeNode(admin: AdminClient, nodeName: string): Promise<void> {
  const path = '/api/v1/nodes';
  const labels = { 'kubernetes.io/hostname': nodeName };
  await admin.request('POST', path, { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName, labels } });
  const allocatable = { cpu: '8', memory: '16Gi', pods: '110', 'ephemeral-storage': '100Gi' };
  await admin.request('MERGE', `${path}/${nodeName}/status`, {
    status: { allocatable, capacity: allocatable, conditions: [{ type: 'Ready', status: 'True' }] },
  });
  await admin.request('MERGE', `${path}/${nodeName}`, { spec: { taints: null } });
}

/**
 * Below those that the kernel takes by itself for whoever connects: a server that is started again finds its port free,
 * though nobody had it for a while.
 */
async function freePorts(count: number): Promise<readonly number[]> {
  const [first = 0] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s+/).map(Number);
  const end = first > PORT_MIN ? first : PORT_END;
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(PORT_MIN, end);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

function processesIn(directory: string): readonly Started[] {
  const file = join(directory, 'processes.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as readonly Started[]) : [];
}

function runningIn(directory: string): readonly Started[] {
  return processesIn(directory).filter((one) => isRunning(one));
}

function isRunning({ pid, startTicks: since }: Started): boolean {
  return since !== '' && startTicks(pid) === since;
}

/** proc_pid_stat(5), field 22: with the pid it names one process of this boot. Undefined when it has ended. */
function startTicks(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // Killed, its first thread is a zombie while others still have its sockets open.
    const hasEnded = fields[0] === 'Z' && readdirSync(`/proc/${pid}/task`).length <= 1;
    return hasEnded ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

async function end(one: Started): Promise<void> {
  const endMs = performance.now() + END_MS;
  signalProcess(one.pid, 'SIGTERM');
  while (isRunning(one)) {
    await pause(LOOK_MS / 2);
    if (performance.now() > endMs && isRunning(one)) signalProcess(one.pid, 'SIGKILL');
  }
}
