/**
 * As much of Google's cloud as its disk driver calls: who the machine is, and disks that are made, attached, resized
 * and deleted. Over HTTP on the loopback, where the driver is pointed to by its own flag and variable. One machine.
 */
import { rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { giveBytes, plugIn, plugOut, tellSize } from './pd-machine.ts';

export const GIB = 1_024 ** 3;
const PROJECT = 'mooring-interop';
export const ZONE = 'country-region1-a';
export const INSTANCE = 'interop-node';

export interface Disk {
  readonly name: string;
  readonly image: string;
  readonly type: string;
  gib: number;
  /** Undefined while it is not attached. */
  attached: { readonly device: string; readonly mode: string } | undefined;
}

export interface Cloud {
  /** Variables the driver needs to find it. */
  readonly environment: readonly string[];
  readonly flags: readonly string[];
  readonly disks: ReadonlyMap<string, Disk>;
  /** What was asked of it that changes something, such as `attachDisk one`, in order. */
  readonly changes: readonly string[];
  handleOf(name: string): string;
  createDisk(name: string, gib?: number): Promise<Disk>;
  /** As an administrator does it, or the controller of another node. */
  resizeDisk(name: string, gib: number): Promise<void>;
  /** What is still attached, and what was in use when it was detached; all of it is taken away. */
  close(): Promise<readonly string[]>;
}

interface Reply {
  readonly status: number;
  readonly body: object;
}

type Fields = Readonly<Record<string, unknown>>;

/** Images are kept in `directory`. */
export async function startCloud(directory: string): Promise<Cloud> {
  const disks = new Map<string, Disk>();
  const changes: string[] = [];
  const complaints: string[] = [];
  let turn: Promise<unknown> = Promise.resolve();

  /** One change at a time. */
  function inTurn<Value>(change: () => Promise<Value>): Promise<Value> {
    const done = turn.then(change);
    turn = done.catch(() => undefined);
    return done;
  }

  async function createDisk(name: string, gib = 1, type = 'pd-standard'): Promise<Disk> {
    const disk: Disk = { name, image: join(directory, `${name}.img`), type, gib, attached: undefined };
    await giveBytes(disk.image, gib * GIB);
    disks.set(name, disk);
    return disk;
  }

  async function resize(disk: Disk, gib: number): Promise<void> {
    disk.gib = gib;
    await giveBytes(disk.image, gib * GIB);
    if (disk.attached !== undefined) await tellSize(disk.attached.device);
  }

  async function detach(disk: Disk): Promise<void> {
    if (disk.attached === undefined) return;
    const user = await plugOut(disk.name, disk.attached.device);
    disk.attached = undefined;
    if (user !== undefined) complaints.push(`disk ${disk.name} was detached while ${user}`);
  }

  async function change(what: string, name: string, body: Fields): Promise<Reply> {
    changes.push(`${what} ${name}`);
    const disk = disks.get(name);
    if (what === 'insert') {
      if (disk !== undefined) return refusal(409, 'alreadyExists', name);
      await createDisk(name, Number(body['sizeGb']), lastOf(body['type']));
      return DONE;
    }
    if (disk === undefined) return refusal(404, 'notFound', name);
    if (what === 'delete') {
      if (disk.attached !== undefined) return refusal(400, 'resourceInUseByAnotherResource', name);
      rmSync(disk.image);
      disks.delete(name);
    }
    if (what === 'resize') await resize(disk, Number(body['sizeGb']));
    if (what === 'attachDisk') {
      if (disk.attached !== undefined) return refusal(400, 'resourceInUseByAnotherResource', name);
      const mode = String(body['mode']);
      disk.attached = { device: await plugIn(name, disk.image, mode === 'READ_ONLY'), mode };
    }
    if (what === 'detachDisk') await detach(disk);
    return DONE;
  }

  function instance(): object {
    const attached = [...disks.values()].flatMap(({ name, attached: at }) =>
      at === undefined ? [] : [{ deviceName: name, mode: at.mode, source: pathOf('disks', name) }],
    );
    return { name: INSTANCE, machineType: `zones/${ZONE}/machineTypes/n1-standard-2`, disks: attached };
  }

  /** Paths of Compute Engine's REST API, behind project and zone. */
  async function answer(method: string, path: string, query: URLSearchParams, body: Fields): Promise<Reply> {
    const [kind = '', name = '', verb = ''] = path.split('/');
    if (kind === 'operations') return DONE;
    if (kind === 'instances' && name !== INSTANCE) return refusal(404, 'notFound', name);
    if (kind === 'instances' && method === 'GET') return { status: 200, body: instance() };
    if (kind === 'instances') {
      const which = verb === 'attachDisk' ? lastOf(body['source']) : (query.get('deviceName') ?? '');
      return inTurn(() => change(verb, which, body));
    }
    if (kind !== 'disks') return refusal(404, 'notFound', path);
    if (method === 'POST' && name === '') return inTurn(() => change('insert', String(body['name']), body));
    if (method !== 'GET') return inTurn(() => change(method === 'DELETE' ? 'delete' : verb, name, body));
    const disk = disks.get(name);
    return disk === undefined ? refusal(404, 'notFound', name) : { status: 200, body: describe(disk) };
  }

  const server = createServer((request, response) => {
    serve(request, response, answer).catch((error: unknown) => {
      complaints.push(`${request.method} ${request.url}: ${String(error)}`);
      response.writeHead(500).end();
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    environment: [`GCE_METADATA_HOST=${host}`, `HOME=${directory}`],
    flags: ['--compute-endpoint', `http://${host}`],
    disks,
    changes,
    handleOf: (name) => pathOf('disks', name),
    createDisk: (name, gib) => inTurn(() => createDisk(name, gib)),
    async resizeDisk(name, gib) {
      const disk = disks.get(name);
      if (disk !== undefined) await inTurn(() => resize(disk, gib));
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
      await turn;
      for (const disk of disks.values()) {
        if (disk.attached === undefined) continue;
        complaints.push(`disk ${disk.name} is attached`);
        await detach(disk);
      }
      return complaints;
    },
  };
}

const DONE: Reply = { status: 200, body: { kind: 'compute#operation', name: 'done', status: 'DONE' } };

function refusal(code: number, reason: string, message: string): Reply {
  return { status: code, body: { error: { code, message, errors: [{ reason, message }] } } };
}

function pathOf(kind: string, name: string): string {
  return `projects/${PROJECT}/zones/${ZONE}/${kind}/${name}`;
}

function lastOf(path: unknown): string {
  return String(path).split('/').at(-1) ?? '';
}

function describe({ name, type, gib, attached }: Disk): object {
  return {
    name,
    // 64-bit numbers are strings in this API.
    sizeGb: `${gib}`,
    status: 'READY',
    type: pathOf('diskTypes', type),
    zone: `zones/${ZONE}`,
    selfLink: pathOf('disks', name),
    users: attached === undefined ? [] : [pathOf('instances', INSTANCE)],
  };
}

const METADATA = '/computeMetadata/v1/';
const FACTS: Readonly<Record<string, string>> = {
  'project/project-id': PROJECT,
  'instance/zone': `projects/1/zones/${ZONE}`,
  'instance/name': INSTANCE,
  'instance/machine-type': 'projects/1/machineTypes/n1-standard-2',
  'universe/universe-domain': 'googleapis.com',
};
/** A token of no worth to anybody: only this server takes it, and it takes any. */
const TOKEN = JSON.stringify({ access_token: 'interop', expires_in: 86_400, token_type: 'Bearer' });
const COMPUTE = new RegExp(`^/compute/[a-z0-9]+/projects/${PROJECT}/zones/${ZONE}/(.*)$`);

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  compute: (method: string, path: string, query: URLSearchParams, body: Fields) => Promise<Reply>,
): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://cloud');
  if (pathname === '/' || pathname.startsWith(METADATA)) {
    const asked = pathname.slice(METADATA.length);
    const fact = asked.endsWith('/token') ? TOKEN : FACTS[asked];
    response.writeHead(fact === undefined && pathname !== '/' ? 404 : 200, { 'Metadata-Flavor': 'Google' });
    response.end(fact);
    return;
  }
  const path = COMPUTE.exec(pathname)?.[1];
  const has = Number(request.headers['content-length'] ?? 0) > 0 || request.headers['transfer-encoding'];
  const body = has ? ((await json(request)) as Fields) : {};
  const reply =
    path === undefined
      ? refusal(404, 'notFound', pathname)
      : await compute(request.method ?? '', path, searchParams, body);
  response.writeHead(reply.status, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify(reply.body));
}
