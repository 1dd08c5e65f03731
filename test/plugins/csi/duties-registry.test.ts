/** Duties of an orchestrator (docs/CSI.md) towards drivers that come, go and misbehave. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { afterEach, test } from 'node:test';
import { parseConfig } from '../../../agent/config/parse-config.ts';
import {
  createDriverRegistry,
  type RunningDriverRegistry,
} from '../../../plugins/csi/driver/driver-registry.ts';
import type { GrpcServer } from '../../../plugins/csi/wire/grpc-service.ts';
import { DRIVER, refusing, type Script, script, serveDriver, serveRegistrar } from './scripted-driver.ts';
import { type SecretData, Sensitive } from '../../../plugins/secret/sensitive.ts';
import { createSocketHost, inRoot, type SocketHost } from './socket-host.ts';
import { until } from '../../until.ts';

interface World {
  readonly host: SocketHost;
  readonly registry: RunningDriverRegistry;
  readonly servers: GrpcServer[];
}

const worlds: World[] = [];

afterEach(async () => {
  for (const { host, registry, servers } of worlds.splice(0)) {
    registry.stop();
    for (const server of servers) await server.close();
    host.close();
  }
});

async function start(
  secretsGiven?: (driver?: string) => readonly SecretData[],
  mayHoldOthers = false,
): Promise<World> {
  const host = createSocketHost();
  mkdirSync(inRoot(host, 'plugins'), { mode: 0o750 });
  const registry = createDriverRegistry({
    host,
    layout: { root: host.root, plugins: inRoot(host, 'plugins'), registry: inRoot(host, 'plugins_registry') },
    staticSockets: [],
    resyncMs: 60_000,
    hidden: (name) => ({ secrets: secretsGiven?.(name) ?? [], mayHoldOthers }),
  });
  const world: World = { host, registry, servers: [] };
  worlds.push(world);
  await registry.start();
  return world;
}

const endpointOf = ({ host }: World) => inRoot(host, 'plugins', 'csi.sock');
const registration = ({ host }: World) => inRoot(host, 'plugins_registry', 'd-reg.sock');

async function driver(world: World, changes: Partial<Script> = {}): Promise<Script> {
  const plan = script(changes);
  world.servers.push(await serveDriver(world.host, endpointOf(world), plan));
  return plan;
}

async function registrar(world: World, endpoint: string = endpointOf(world)) {
  const server = await serveRegistrar(registration(world), { endpoint });
  world.servers.push(server);
  return server;
}

const reasons = ({ registry }: World) =>
  registry
    .refused()
    .map(({ reason }) => reason)
    .join('\n');

for (const endpoint of ['tcp://127.0.0.1:9000', '127.0.0.1:9000', 'dns:///driver']) {
  test(`A-001: a driver that announces ${endpoint} is refused, and told so`, async () => {
    const world = await start();
    const reg = await registrar(world, endpoint);
    await until('told', () => reg.verdicts.length > 0);
    assert.match(reg.verdicts[0] ?? '', /not an absolute path/);
    assert.deepEqual(world.registry.list(), []);
  });

  test(`A-001: ${endpoint} cannot be configured as a socket`, () => {
    const reading = parseConfig({ static_drivers: [{ socket: endpoint }] }, {}, 'n');
    assert.ok(!reading.ok);
    assert.match(JSON.stringify(reading.problems), /static_drivers\[0\]\.socket/);
  });
}

test('A-003: the registry is open to nobody else; what does not belong there is named, never removed', async () => {
  const world = await start();
  assert.equal(statSync(inRoot(world.host, 'plugins_registry')).mode & 0o777, 0o750);
  const file = inRoot(world.host, 'plugins_registry', 'notes.txt');
  const link = inRoot(world.host, 'plugins_registry', 'link.sock');
  const neighbour = inRoot(world.host, 'plugins', 'notes.txt');
  writeFileSync(file, 'precious');
  writeFileSync(neighbour, 'precious');
  symlinkSync(file, link);
  await driver(world);
  await registrar(world);
  await until('registered', () => world.registry.get(DRIVER) !== undefined);
  await until('named', () => world.registry.refused().length === 2);
  assert.match(reasons(world), /notes\.txt is a file/);
  for (const one of [file, link, neighbour]) assert.ok(existsSync(one));
});

test('A-009: a Probe that fails keeps the driver out with its reason, and it is taken when it is well', async () => {
  const world = await start();
  const plan = await driver(world, { before: refusing('Probe', 9, 'the mount helper is not installed') });
  await registrar(world);
  await until('kept out', () => /Probe: FAILED_PRECONDITION: the mount helper/.test(reasons(world)));
  assert.deepEqual(world.registry.list(), []);
  assert.ok(world.host.called.every((method) => !method.startsWith('Node')));
  plan.before = () => undefined;
  await until('registered', () => world.registry.get(DRIVER) !== undefined);
  assert.equal(reasons(world), '');
});

test('A-011: numbers of later and of earlier versions of CSI are no reason to refuse a driver', async () => {
  const world = await start();
  await driver(world, { nodeCapabilities: [0, 1, 4, 99], controllerCapabilities: [2, 11, 77] });
  await registrar(world);
  await until('registered', () => world.registry.get(DRIVER) !== undefined);
  const { nodeCapabilities, controllerCapabilities } = world.registry.get(DRIVER) ?? assert.fail();
  assert.deepEqual([...nodeCapabilities], [0, 1, 4, 99]);
  assert.deepEqual([...(controllerCapabilities ?? [])], [2, 11, 77]);
});

test('A-038: no registrar is told a secret that its driver was given, nor anybody else', async () => {
  const world = await start(() => [new Sensitive({ word: 's3cret-c4nary' })]);
  await driver(world, { before: refusing('NodeGetInfo', 13, 'the session of s3cret-c4nary is stale') });
  const reg = await registrar(world);
  const verdict = await until('told', () => reg.verdicts[0]);
  assert.match(verdict, /NodeGetInfo: INTERNAL: the session of \[redacted\] is stale$/);
  assert.match(
    await until('refused', () => reasons(world) || undefined),
    /the session of \[redacted\] is stale$/,
  );
});

test('A-038: what a driver says that may know secrets of an earlier life is told by its status alone', async () => {
  const world = await start(() => [], true);
  await driver(world, { before: refusing('NodeGetInfo', 13, 'the session of s3cret-c4nary is stale') });
  const reg = await registrar(world);
  const verdict = await until('told', () => reg.verdicts[0]);
  assert.match(verdict, /NodeGetInfo: INTERNAL: \(not shown: /);
  const reason = await until('refused', () => reasons(world) || undefined);
  for (const text of [verdict, reason]) assert.doesNotMatch(text, /c4nary/);
});

/** More than are looked for in one text. */
const MANY = [
  new Sensitive(Object.fromEntries(Array.from({ length: 1_100 }, (_, at) => [at, `t0ken-c4nary-${at}`]))),
];

/** Takes each connection and ends it. */
async function silence(world: World): Promise<void> {
  const server = createServer((connection) => connection.destroy());
  await new Promise<void>((resolve) => server.listen(endpointOf(world), resolve));
  chmodSync(endpointOf(world), 0o600);
  world.servers.push({ close: async () => void server.close() });
}

test('A-038: that nobody answers is told on a node of many tokens, too', async () => {
  const world = await start(() => MANY);
  await silence(world);
  const reg = await registrar(world);
  assert.match(
    await until('told', () => reg.verdicts[0]),
    new RegExp(`^${DRIVER} GetPluginInfo: unreachable: [^[]+$`),
  );
});

test('A-038: the tokens of other drivers hide nothing of what a driver says that is known by its name', async () => {
  const own = [new Sensitive({ word: 's3cret-c4nary' })];
  const world = await start((name) => (name === DRIVER ? own : MANY));
  await driver(world, { before: refusing('NodeGetInfo', 13, 'the session of s3cret-c4nary is stale') });
  const reg = await registrar(world);
  const verdict = await until('told', () => reg.verdicts[0]);
  assert.match(verdict, /NodeGetInfo: INTERNAL: the session of \[redacted\] is stale$/);
});

test('A-038: of a driver that has not yet said its name itself no secret of any is told', async () => {
  const others = [new Sensitive({ word: 's3cret-c4nary' })];
  const world = await start((name) => (name === undefined ? others : []));
  await driver(world, { before: refusing('GetPluginInfo', 13, 'the session of s3cret-c4nary is stale') });
  const reg = await registrar(world);
  const verdict = await until('told', () => reg.verdicts[0]);
  assert.match(verdict, /GetPluginInfo: INTERNAL: the session of \[redacted\] is stale$/);
});
