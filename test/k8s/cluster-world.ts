/** A real control plane for the tests of one file, and what they put into it. Its processes end with the file. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync, mkdtempSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import type { AdminClient } from '../cluster/admin-client.ts';
import {
  compactHistory,
  type ControlPlane,
  type ControlPlaneOptions,
  prepareControlPlane,
  removeControlPlane,
  restartApiServer,
  restartControllers,
  signalControlPlane,
  startControlPlane,
} from '../cluster/control-plane.ts';
import { runCommand } from '../demo/child-process.ts';
import { LOOPFILE_COMMAND, NODE, type World } from '../interop/world.ts';
import { inPrivateNamespace } from '../real/namespace.ts';
import { until } from '../until.ts';

export interface Cluster {
  readonly plane: ControlPlane;
  readonly admin: AdminClient;
  /** The API server answers nobody any more; its connections stay. */
  silence(isSilent: boolean): void;
  /** Its controllers look at nothing any more. */
  stopControllers(isStopped: boolean): void;
  /** It is killed, and starts again. */
  restartApiServer(): Promise<void>;
  /** Its controllers are killed, and start again. */
  restartControllers(): Promise<void>;
  /** The store forgets what was. */
  compactHistory(): Promise<void>;
  /** What the node was refused, and no rule about reading by what its pods lead to explains: `get /api/v1/…`. */
  refusals(): readonly string[];
  /** All that the node has asked for, in order, with the answers. */
  requests(): readonly AuditedRequest[];
}

export interface AuditedRequest {
  readonly verb: string;
  readonly path: string;
  /** `system:node:<name>`. */
  readonly user: string;
  readonly status: number;
}

/** Call it first in a test file. The reason why its tests are skipped, said loudly, or false. */
export function clusterObstacle(): string | false {
  const obstacle = inPrivateNamespace();
  if (obstacle !== false) return obstacle;
  const lacking = prepareControlPlane();
  if (lacking === undefined) return false;
  process.stderr.write(`\n*** SKIPPED: ${lacking} ***\n\n`);
  return `SKIPPED: ${lacking}`;
}

/** What a control plane may be beside the usual. */
export type ClusterOptions = Pick<
  ControlPlaneOptions,
  'otherNodes' | 'collectsPods' | 'isUncached' | 'isUnthrottled'
>;

/** One control plane for the file, ended after its last test. */
export function sharedCluster(options: ClusterOptions = {}): () => Promise<Cluster> {
  let started: Promise<Cluster> | undefined;
  const directory: string[] = [];
  after(async () => {
    await started?.catch(() => undefined);
    for (const one of directory) await removeControlPlane(one);
  });
  return () => {
    started ??= start(directory, options);
    return started;
  };
}

async function start(directories: string[], options: ClusterOptions): Promise<Cluster> {
  const directory = mkdtempSync(join(realpathSync(tmpdir()), 'mooring-k8s-'));
  directories.push(directory);
  const plane = await startControlPlane({ ...options, directory, nodeName: NODE, isBound: true });
  const { admin } = plane;
  // The controllers make it, and a pod that names it is refused before.
  await until('the service account', async () => {
    return (
      (await admin.tryRequest('GET', '/api/v1/namespaces/default/serviceaccounts/default')).status === 200
    );
  });
  return {
    plane,
    admin,
    stopControllers: (isStopped) =>
      signalControlPlane(directory, 'kube-controller-manager', isStopped ? 'SIGSTOP' : 'SIGCONT'),
    silence: (isSilent) => signalControlPlane(directory, 'kube-apiserver', isSilent ? 'SIGSTOP' : 'SIGCONT'),
    restartApiServer: () => restartApiServer({ directory, plane }),
    restartControllers: () => restartControllers({ directory, plane }),
    compactHistory: () => compactHistory(directory),
    refusals: () => unexpectedRefusals(requestsIn(plane.auditLog)),
    requests: () => requestsIn(plane.auditLog),
  };
}

function requestsIn(auditLog: string): readonly AuditedRequest[] {
  return readFileSync(auditLog, 'utf8')
    .split('\n')
    .filter((line) => line.includes('"system:node:') && line.endsWith('}'))
    .map((line) => {
      const { verb, requestURI, user, responseStatus } = JSON.parse(line) as AuditLine;
      return { verb, path: requestURI, user: user.username, status: responseStatus?.code ?? 0 };
    });
}

interface AuditLine {
  readonly verb: string;
  readonly requestURI: string;
  readonly user: { readonly username: string };
  readonly responseStatus?: { readonly code?: number };
}

/** What a node may read because a pod of it leads there; the name is at the end of the path, or selects. */
const BY_GRAPH =
  /\/(?:persistentvolume(?:claim)?s|volumeattachments|secrets|configmaps)(?:\/[^/?]+$|\?.*=metadata\.name)/;
const ATTACHMENTS_WATCHED = /\/volumeattachments\?.*fieldSelector=metadata\.name/;

/**
 * The authorizer hears of a pod, and of where its claim leads, a moment after the node does, and with the pod goes the
 * right: so what a pod leads to may be refused to whoever reads it, and is answered at another time. Whether
 * attachments may be watched is found out by trying, and a token of a pod is as what it leads to.
 */
function unexpectedRefusals(all: readonly AuditedRequest[]): readonly string[] {
  const isAnswered = (one: AuditedRequest): boolean => one.status < 300 || one.status === 404;
  const answered = new Set(all.filter(isAnswered).map(({ path }) => objectOf(path)));
  const isExpected = ({ verb, path }: AuditedRequest): boolean => {
    if (ATTACHMENTS_WATCHED.test(path)) return verb === 'list' || verb === 'watch';
    if (verb === 'create') return /\/serviceaccounts\/[^/]+\/token$/.test(path);
    const isRead = verb === 'get' || verb === 'list' || verb === 'watch';
    return isRead && BY_GRAPH.test(path) && answered.has(objectOf(path));
  };
  return all
    .filter((one) => one.status === 403 && !isExpected(one))
    .map(({ verb, path }) => `${verb} ${path}`);
}

/** Its path, by whichever way it is read. */
function objectOf(path: string): string {
  const { pathname, searchParams } = new URL(path, 'https://server');
  const selected = /^metadata\.name=(.+)$/.exec(searchParams.get('fieldSelector') ?? '')?.[1];
  return selected === undefined ? pathname : `${pathname}/${selected}`;
}

const CORE = '/api/v1/namespaces/default';

/** A pod that is bound to the node; its volumes by name, each mounted. */
export async function makePod(
  admin: AdminClient,
  name: string,
  volumes: Readonly<Record<string, object>>,
  nodeName = NODE,
): Promise<void> {
  const names = Object.keys(volumes);
  const volumeMounts = names.map((one) => ({ name: one, mountPath: `/${one}` }));
  await admin.request('POST', `${CORE}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      nodeName,
      serviceAccountName: 'default',
      containers: [{ name: 'c', image: 'none', volumeMounts }],
      volumes: names.map((one) => ({ name: one, ...volumes[one] })),
    },
  });
}

/** As whoever runs its containers, once they have stopped. */
export async function deletePod(admin: AdminClient, name: string): Promise<void> {
  await admin.request('DELETE', `${CORE}/pods/${name}`, { gracePeriodSeconds: 0 });
}

export async function makeContent(
  admin: AdminClient,
  kind: 'Secret' | 'ConfigMap',
  name: string,
  text: string,
): Promise<void> {
  const path = `${CORE}/${kind === 'Secret' ? 'secrets' : 'configmaps'}`;
  const field = kind === 'Secret' ? 'stringData' : 'data';
  const object = { apiVersion: 'v1', kind, metadata: { name }, [field]: { word: text } };
  const there = await admin.tryRequest('GET', `${path}/${name}`);
  if (there.status === 200) await admin.request('PUT', `${path}/${name}`, object);
  else await admin.request('POST', path, object);
}

/** A disk of the loop-file driver, of 64 MiB. The answer: its handle. */
export async function makeImage(world: Pick<World, 'pool'>, name: string): Promise<string> {
  const own = ['create', '--pool', world.pool, '--name', name, '--size', '64Mi', '--yaml'];
  const made = await runCommand([...LOOPFILE_COMMAND, ...own]);
  assert.equal(made.code, 0, made.output);
  return /volumeHandle: (\S+)/.exec(made.output)?.[1] ?? assert.fail(made.output);
}

/** Where a pod has a volume; without a name, the only one that it has. */
export function placeOf(status: StatusDocument, pod: string, volume?: string): string {
  const volumes = status.pods.find(({ name }) => name === pod)?.volumes ?? [];
  const found = volumes.find(({ name }) => volume === undefined || name === volume);
  return found?.path ?? assert.fail(`${pod} has no volume ${volume ?? ''}`);
}

/**
 * A volume with a claim of the same name, bound by the real binder when it settles: the attach/detach controller that
 * meets a pod whose claim is not bound yet looks at that pod again after three minutes.
 */
export async function makeVolume(
  admin: AdminClient,
  name: string,
  driver: string,
  handle: string,
): Promise<void> {
  const spec = { capacity: { storage: '64Mi' }, accessModes: ['ReadWriteOnce'], storageClassName: '' };
  await admin.request('POST', '/api/v1/persistentvolumes', {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: {
      ...spec,
      csi: { driver, volumeHandle: handle, fsType: 'ext4' },
      claimRef: { namespace: 'default', name },
    },
  });
  await admin.request('POST', `${CORE}/persistentvolumeclaims`, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName: '',
      volumeName: name,
      resources: { requests: { storage: '64Mi' } },
    },
  });
  await until(`claim ${name} is bound`, async () => {
    const found = (await admin.request('GET', `${CORE}/persistentvolumeclaims/${name}`)) as {
      readonly status?: { readonly phase?: string };
    };
    return found.status?.phase === 'Bound';
  });
}

export async function makeCsiDriver(
  admin: AdminClient,
  name: string,
  attachRequired: boolean,
): Promise<void> {
  await admin.request('POST', '/apis/storage.k8s.io/v1/csidrivers', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name },
    spec: { attachRequired },
  });
}

/** A service account that may see and change the config maps of its namespace alone; its token is in this file. */
export async function makeTokenKubeconfigIn(directory: string, { admin }: Cluster): Promise<string> {
  const rbac = 'rbac.authorization.k8s.io';
  const names = `/apis/${rbac}/v1/namespaces/default`;
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch', 'patch'] }];
  await admin.tryRequest('POST', `${names}/roles`, { metadata: { name: 'maps' }, rules });
  await admin.tryRequest('POST', `${names}/rolebindings`, {
    metadata: { name: 'maps' },
    roleRef: { apiGroup: rbac, kind: 'Role', name: 'maps' },
    subjects: [{ kind: 'ServiceAccount', name: 'default', namespace: 'default' }],
  });
  const path = `${CORE}/serviceaccounts/default/token`;
  const answer = (await admin.request('POST', path, { spec: {} })) as {
    readonly status: { readonly token: string };
  };
  const file = join(directory, 'token');
  writeFileSync(file, answer.status.token, { mode: 0o600 });
  return file;
}
