import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { afterEach, test } from 'node:test';
import { below } from '../../../../mount/host.ts';
import {
  createDriverRegistry,
  type RunningDriverRegistry,
} from '../../../../plugins/csi/driver/driver-registry.ts';
import type { GrpcServer } from '../../../../plugins/csi/wire/grpc-service.ts';
import { highestVersion } from '../../../../plugins/csi/driver/registration.ts';
import { CAPABILITY, DRIVER, refusing, script, serveDriver, serveRegistrar } from '../scripted-driver.ts';
import { createSocketHost, inRoot, type SocketHost } from '../socket-host.ts';
import { until } from '../../../until.ts';

const UNIMPLEMENTED = 12;
const INTERNAL = 13;

interface World {
  readonly host: SocketHost;
  readonly registry: RunningDriverRegistry;
  readonly changes: string[];
  readonly servers: GrpcServer[];
}

const worlds: World[] = [];

afterEach(async () => {
  for (const { host, registry, servers } of worlds.splice(0)) {
    registry.stop();
    for (const server of servers) await server.close();
    assert.deepEqual([host.watches(), host.timers()], [0, 0], 'stop leaves no watch and no timer');
    host.close();
  }
});

async function start(
  options: { resyncMs?: number; staticSocket?: boolean; before?: (host: SocketHost) => Promise<void> } = {},
) {
  const host = createSocketHost();
  mkdirSync(inRoot(host, 'plugins'), { mode: 0o750 });
  mkdirSync(inRoot(host, 'plugins', 'd'), { mode: 0o750 });
  await options.before?.(host);
  const registry = createDriverRegistry({
    host,
    layout: { root: host.root, plugins: inRoot(host, 'plugins'), registry: inRoot(host, 'plugins_registry') },
    staticSockets: options.staticSocket === true ? [endpointOf(host)] : [],
    resyncMs: options.resyncMs ?? 60_000,
  });
  const changes: string[] = [];
  registry.onChange(({ kind, driver }) => changes.push(`${kind} ${driver}`));
  const world: World = { host, registry, changes, servers: [] };
  worlds.push(world);
  await registry.start();
  return world;
}

const endpointOf = (host: SocketHost) => inRoot(host, 'plugins', 'd', 'csi.sock');
const registration = (host: SocketHost, name = 'd-reg.sock') => inRoot(host, 'plugins_registry', name);

async function driver(
  world: World,
  changes: Parameters<typeof script>[0] = {},
  socket = endpointOf(world.host),
) {
  const server = await serveDriver(world.host, socket, script(changes));
  world.servers.push(server);
  return server;
}

async function registrar(
  world: World,
  says: Partial<Parameters<typeof serveRegistrar>[1]> = {},
  name?: string,
) {
  const server = await serveRegistrar(registration(world.host, name), {
    endpoint: endpointOf(world.host),
    ...says,
  });
  world.servers.push(server);
  return server;
}

async function registered(changes: Parameters<typeof script>[0] = {}) {
  const world = await start();
  const server = await driver(world, changes);
  const reg = await registrar(world);
  await until('registered', () => world.registry.get(DRIVER) !== undefined);
  return { world, server, reg };
}

const reasons = ({ registry }: World) =>
  registry
    .refused()
    .map(({ reason }) => reason)
    .join('\n');

test('A-002, A-011, A-050, A-052, KV-I3: a driver that appears is admitted, and its registrar is told', async () => {
  const { world, reg } = await registered({
    nodeCapabilities: [1, 5, 99],
    controllerCapabilities: [2, 4],
    volumesMax: 12n,
    segments: { 'a/zone': 'z1' },
  });
  assert.deepEqual(reg.verdicts, ['']);
  const { endpoint, life, registeredAtMs, ...rest } = world.registry.get(DRIVER) ?? assert.fail();
  assert.match(life, new RegExp(`^${endpoint.inode} of `));
  assert.deepEqual(endpoint, { path: endpointOf(world.host), inode: lstatSync(endpointOf(world.host)).ino });
  assert.ok(registeredAtMs > 0);
  assert.deepEqual(rest, {
    name: DRIVER,
    registrationSocket: registration(world.host),
    vendorVersion: '1.2.3',
    nodeId: 'node-1',
    volumesMax: 12,
    topology: { 'a/zone': 'z1' },
    nodeCapabilities: new Set([1, 5, 99]),
    controllerCapabilities: new Set([2, 4]),
  });
  assert.deepEqual(world.changes, [`registered ${DRIVER}`]);
  assert.deepEqual(world.registry.refused(), []);
});

test('A-025: topology keys and values are what labels are', async () => {
  const segments = {
    zone: 'A.b-c_1',
    'topology.example.com/Rack_1': 'r'.repeat(63),
    [`${'k'.repeat(63)}`]: '',
  };
  const { world } = await registered({ segments });
  assert.deepEqual(world.registry.get(DRIVER)?.topology, segments);
});

test('A-051, A-052: a topology without its capability means nothing, and zero volumes is no limit', async () => {
  const { world } = await registered({ segments: { 'a/zone': 'z1' }, constrained: false });
  const { topology, volumesMax } = world.registry.get(DRIVER) ?? assert.fail();
  assert.deepEqual([topology, volumesMax], [{}, 0]);
});

test('A-008: a driver without a controller service is asked nothing of it', async () => {
  const { world } = await registered();
  assert.equal(world.registry.get(DRIVER)?.controllerCapabilities, undefined);
  assert.ok(!world.host.called.includes('ControllerGetCapabilities'));
});

test('A-008: a driver whose controller service is at another socket than its node service is admitted', async () => {
  const world = await start();
  const before = refusing('ControllerGetCapabilities', UNIMPLEMENTED, 'unknown service csi.v1.Controller');
  await driver(world, { controllerCapabilities: [1], before });
  const reg = await registrar(world);
  await until('a verdict', () => reg.verdicts.length > 0);
  assert.deepEqual(reg.verdicts, ['']);
  await until('registered', () => world.registry.get(DRIVER) !== undefined);
  assert.equal(world.registry.get(DRIVER)?.controllerCapabilities, undefined);
});

test('a driver whose controller service fails is refused', async () => {
  const world = await start();
  await driver(world, {
    controllerCapabilities: [1],
    before: refusing('ControllerGetCapabilities', INTERNAL),
  });
  await registrar(world);
  await until('refused', () => reasons(world) !== '');
  assert.match(reasons(world), /ControllerGetCapabilities/);
});

test('DR-13: sockets that were there before the start are found by the first listing', async () => {
  const servers: GrpcServer[] = [];
  const world = await start({
    before: async (host) => {
      mkdirSync(inRoot(host, 'plugins_registry'), { mode: 0o750 });
      servers.push(await serveDriver(host, endpointOf(host), script()));
      servers.push(await serveRegistrar(registration(host), { endpoint: endpointOf(host) }));
    },
  });
  world.servers.push(...servers);
  await until('registered', () => world.registry.get(DRIVER) !== undefined);
});

test('an empty endpoint means that the registration socket is the driver too', async () => {
  const world = await start();
  const reg = await registrar(world, { endpoint: '' });
  await until('refused', () => reasons(world) !== '');
  assert.match(reasons(world), /UNIMPLEMENTED/);
  assert.equal(reg.verdicts.length > 0, true);
});

test('A-003, DR-19: what is not a real socket of root is refused by name, and never called', async () => {
  const world = await start();
  const { host } = world;
  const real = inRoot(host, 'plugins', 'real.sock');
  world.servers.push(await serveRegistrar(real, { endpoint: endpointOf(host) }));
  writeFileSync(registration(host, 'file.sock'), '');
  symlinkSync(real, registration(host, 'link.sock'));
  execFileSync('mkfifo', [registration(host, 'fifo.sock')]);
  mkdirSync(registration(host, 'directory.sock'));
  host.foreign.add(registration(host, 'foreign.sock'));
  world.servers.push(
    await serveRegistrar(registration(host, 'foreign.sock'), { endpoint: endpointOf(host) }),
  );
  writeFileSync(registration(host, '.hidden.sock'), '');
  await until('all refused', () => world.registry.refused().length === 5);
  const byName = Object.fromEntries(
    world.registry.refused().map(({ socket, reason }) => [socket.split('/').at(-1), reason]),
  );
  assert.match(byName['file.sock'] ?? '', /is a file/);
  assert.match(byName['link.sock'] ?? '', /is a symlink/);
  assert.match(byName['fifo.sock'] ?? '', /is a fifo/);
  assert.match(byName['directory.sock'] ?? '', /is a directory/);
  assert.match(byName['foreign.sock'] ?? '', /uid 1000/);
  assert.deepEqual(host.called, []);
  rmSync(registration(host, 'file.sock'));
  await until('forgotten', () => world.registry.refused().length === 4);
});

test('DR-19: an endpoint outside the plug-in directories is not dialled, and its registrar is told why', async () => {
  const world = await start();
  const outside = inRoot(world.host, 'elsewhere', 'csi.sock');
  mkdirSync(inRoot(world.host, 'elsewhere'), { mode: 0o750 });
  mkdirSync(inRoot(world.host, 'plugins-of-others'), { mode: 0o750 });
  for (const socket of [outside, inRoot(world.host, 'plugins-of-others', 'csi.sock')]) {
    await driver(world, {}, socket);
    const reg = await registrar(world, { endpoint: socket }, `${socket.length}-reg.sock`);
    await until('told', () => reg.verdicts.length > 0);
    assert.match(reg.verdicts[0] ?? '', /is outside the plug-in directories/);
  }
  assert.equal(world.registry.refused()[0]?.code, 'endpoint-unsafe');
  assert.ok(!world.host.called.includes('GetPluginInfo'), 'the driver was never called');
});

test('DR-19: any directory on the way that others could exchange is one too many', async () => {
  const world = await start();
  const { host } = world;
  mkdirSync(inRoot(host, 'plugins', 'd', 'deep'), { mode: 0o750 });
  const socket = inRoot(host, 'plugins', 'd', 'deep', 'csi.sock');
  await driver(world, {}, socket);
  const loosen: readonly (readonly [string, () => void, () => void])[] = [
    ...['.', 'plugins', 'plugins/d', 'plugins/d/deep'].flatMap((name) => {
      const path = name === '.' ? host.root : inRoot(host, ...name.split('/'));
      const modes = [0o770, 0o757, 0o1777].map(
        (mode) =>
          [`${name} ${mode.toString(8)}`, () => chmodSync(path, mode), () => chmodSync(path, 0o750)] as const,
      );
      const foreign = () => void host.foreign.add(path);
      return [...modes, [`${name} of another user`, foreign, () => void host.foreign.delete(path)] as const];
    }),
  ];
  for (const [index, [what, spoil, mend]] of loosen.entries()) {
    spoil();
    const before = host.called.length;
    const reg = await registrar(world, { endpoint: socket }, `${index}-reg.sock`);
    await until(`${what} is refused`, () =>
      world.registry.refused().some(({ code }) => code === 'endpoint-unsafe'),
    );
    assert.ok(!host.called.slice(before).includes('GetPluginInfo'), `${what}: the driver was not called`);
    mend();
    await reg.close();
    rmSync(registration(host, `${index}-reg.sock`), { force: true });
    await until('forgotten', () => world.registry.refused().length === 0);
  }
  await registrar(world, { endpoint: socket });
  await until('registered', () => world.registry.get(DRIVER) !== undefined);
});

test('A-003, INV-19: in a directory that others may write nothing is trusted', async () => {
  const world = await start();
  chmodSync(inRoot(world.host, 'plugins_registry'), 0o770);
  await driver(world);
  await registrar(world);
  await until('refused', () => reasons(world).includes('writable by nobody else'));
  assert.deepEqual(world.host.called, []);
});

test('DR-19: an endpoint that is a link is refused, and the registrar is told why', async () => {
  const world = await start();
  const real = inRoot(world.host, 'plugins', 'd', 'real.sock');
  await driver(world, {}, real);
  symlinkSync(real, endpointOf(world.host));
  const reg = await registrar(world);
  await until('told', () => reg.verdicts.length > 0);
  assert.match(reg.verdicts[0] ?? '', /is a symlink/);
  assert.deepEqual(world.registry.list(), []);
});

const INVALID: readonly (readonly [
  string,
  Partial<Parameters<typeof serveRegistrar>[1]>,
  Parameters<typeof script>[0],
  RegExp,
])[] = [
  ['another type of plugin', { type: 'DevicePlugin' }, {}, /DevicePlugin/],
  ['A-006: a name that is no domain name', { name: '../x' }, {}, /domain notation/],
  ['A-006: a name of 64 characters', { name: 'x'.repeat(64) }, {}, /63 characters/],
  ['A-006: a name that the driver does not own to', { name: 'other.test' }, {}, /says it is/],
  ['KV-I5: only versions of a major above 1', { versions: ['2.0.0', 'x'] }, {}, /major 1/],
  ['KV-I5: no version', { versions: [] }, {}, /major 1/],
  ['an endpoint that is no absolute path', { endpoint: 'csi.sock' }, {}, /absolute path/],
  ['DR-17: an empty node id', {}, { nodeId: '' }, /empty node id/],
  ['A-014: a node id of 257 bytes', {}, { nodeId: 'n'.repeat(257) }, /256/],
  ['A-051: a negative number of volumes', {}, { volumesMax: -1n }, /max_volumes_per_node/],
  [
    'A-025: topology keys alike but for case',
    {},
    { segments: { 'a/zone': '1', 'a/Zone': '2' } },
    /topology keys/,
  ],
  [
    'A-025: a topology value that is no label',
    {},
    { segments: { 'a/rack': 'rack 7, left' } },
    /"rack 7, left"/,
  ],
  ['A-025: a topology value of 64 bytes', {}, { segments: { 'a/rack': 'r'.repeat(64) } }, /"r{64}".*63/],
  ['A-025: a topology key that is no label', {}, { segments: { 'a/b/rack': '7' } }, /"a\/b\/rack"/],
  [
    'A-025: a topology key with a prefix that is no name',
    {},
    { segments: { 'A_b/rack': '7' } },
    /"A_b\/rack"/,
  ],
  ['A-025: a topology key without a name', {}, { segments: { 'a.example/': '7' } }, /"a.example\/"/],
];

for (const [what, says, answers, reason] of INVALID) {
  test(`refused, and the registrar is told: ${what}`, async () => {
    const world = await start();
    await driver(world, answers);
    const reg = await registrar(world, says);
    await until('told', () => reg.verdicts.length > 0);
    assert.match(reg.verdicts[0] ?? '', reason);
    await until('shown', () => reason.test(reasons(world)));
    assert.deepEqual(world.registry.list(), []);
    assert.deepEqual(world.changes, []);
  });
}

test('KV-I5: the highest version with major 1 or lower is picked, by number', () => {
  assert.equal(highestVersion(['1.2.0', '1.10.0', '0.3.0', '2.0.0', 'v1.9', 'junk']), '1.10.0');
  assert.equal(highestVersion(['v0.3.0']), 'v0.3.0');
});

test('A-009: a driver that is not ready yet is held, not refused to its registrar, and taken when it is', async () => {
  const world = await start();
  const plan = script({ ready: false });
  world.servers.push(await serveDriver(world.host, endpointOf(world.host), plan));
  const reg = await registrar(world);
  await until('held', () => /not ready/.test(reasons(world)));
  assert.ok(!world.host.called.includes('NodeGetInfo'));
  plan.ready = undefined;
  await until('registered', () => world.registry.get(DRIVER) !== undefined);
  assert.deepEqual(reg.verdicts, ['']);
});

test('DR-18: a driver whose NodeGetInfo hangs and a registrar that hangs keep no other waiting', async () => {
  const world = await start();
  const hang = () => new Promise<void>(() => {});
  await driver(
    world,
    { name: 'slow.test', before: (method) => (method === 'NodeGetInfo' ? hang() : undefined) },
    inRoot(world.host, 'plugins', 'slow.sock'),
  );
  await registrar(
    world,
    { name: 'slow.test', endpoint: inRoot(world.host, 'plugins', 'slow.sock') },
    'slow.sock',
  );
  await registrar(world, { name: 'mute.test', before: hang }, 'mute.sock');
  await until('slow is asked', () => world.host.called.includes('NodeGetInfo'));
  await driver(world);
  await registrar(world);
  await until('registered', () => world.registry.get(DRIVER) !== undefined);
  assert.deepEqual(
    world.registry.list().map(({ name }) => name),
    [DRIVER],
  );
  await until('the mute one is refused', () => /mute\.sock GetInfo: deadline/.test(reasons(world)));
});

test('DR-14: a registrar that cannot be told is asked again, and its driver is not used before', async () => {
  const world = await start();
  await driver(world);
  let refusals = 2;
  const reg = await registrar(world, {
    beforeVerdict: () => {
      if (refusals-- > 0) throw new Error('not now');
    },
  });
  await until('refused', () => /NotifyRegistrationStatus/.test(reasons(world)));
  assert.equal(world.registry.get(DRIVER), undefined);
  await until('registered', () => world.registry.get(DRIVER) !== undefined);
  assert.deepEqual(reg.verdicts, ['']);
});

test('a registrar whose socket goes takes its driver with it', async () => {
  const { world, reg } = await registered();
  await reg.close();
  await until('gone', () => world.registry.get(DRIVER) === undefined);
  assert.deepEqual(world.changes, [`registered ${DRIVER}`, `gone ${DRIVER}`]);
  assert.deepEqual(world.registry.refused(), []);
});

test('A-002, A-007, DR-19: a driver that comes back serves within a second, with what it says now', async () => {
  const { world, server, reg } = await registered();
  const before = world.registry.get(DRIVER);
  await server.close();
  world.registry.suspect(DRIVER);
  await until('gone', () => world.registry.get(DRIVER) === undefined);
  await until('shown', () => /csi\.sock does not exist/.test(reasons(world)));
  await new Promise((resolve) => setTimeout(resolve, 300));
  const waited = world.host.waitedMs.length;
  await driver(world, { nodeCapabilities: [] });
  await until('back', () => world.registry.get(DRIVER) !== undefined);
  const sinceThen = world.host.waitedMs.slice(waited);
  assert.ok(sinceThen.reduce((sum, one) => sum + one, 0) < 1_000, `it waited ${sinceThen} ms`);
  assert.notEqual(world.registry.get(DRIVER), before);
  assert.deepEqual(world.registry.get(DRIVER)?.nodeCapabilities, new Set());
  assert.deepEqual(reg.verdicts, [''], 'the registrar has nothing to do with it');
  assert.deepEqual(world.changes, [`registered ${DRIVER}`, `gone ${DRIVER}`, `registered ${DRIVER}`]);
});

test('A-007, DR-19: a socket replaced in one step is a new driver; the old one is not given out', async () => {
  const { world } = await registered();
  const old = world.registry.get(DRIVER);
  let letGo: () => void = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  await driver(world, { before: (method) => (method === 'NodeGetInfo' ? held : undefined) });
  await until(
    'the new one is asked',
    () => world.host.called.filter((name) => name === 'NodeGetInfo').length === 2,
  );
  assert.equal(world.registry.get(DRIVER), undefined);
  assert.deepEqual(world.registry.list(), []);
  letGo();
  await until('replaced', () => world.registry.get(DRIVER) !== undefined);
  assert.notEqual(world.registry.get(DRIVER), old);
  assert.deepEqual(world.changes, [`registered ${DRIVER}`, `replaced ${DRIVER}`]);
});

test('a replaced registration socket is a new handshake', async () => {
  const { world } = await registered();
  const reg = await registrar(world);
  await until('replaced', () => world.changes.length === 2);
  assert.deepEqual(reg.verdicts, ['']);
  assert.deepEqual(world.changes, [`registered ${DRIVER}`, `replaced ${DRIVER}`]);
});

test('of two drivers whose sockets share a directory the one that is replaced is seen, and only that one', async () => {
  const { world, reg } = await registered();
  const name = 'other.csi.example';
  const endpoint = inRoot(world.host, 'plugins', 'd', 'other.sock');
  await driver(world, { name }, endpoint);
  await registrar(world, { name, endpoint }, 'other-reg.sock');
  await until('both are registered', () => world.registry.list().length === 2);
  const kept = world.registry.get(DRIVER);
  await driver(world, { name, nodeId: 'node-2' }, endpoint);
  await until('replaced', () => world.registry.get(name)?.nodeId === 'node-2');
  rmSync(registration(world.host, 'other-reg.sock'));
  await until('gone', () => world.registry.get(name) === undefined);
  assert.equal(world.registry.get(DRIVER), kept);
  assert.deepEqual(reg.verdicts, ['']);
});

test('A-050, DR-16, DR-17: another node id from the same driver is allowed and shown', async () => {
  const { world } = await registered();
  await driver(world, { nodeId: 'node-2' });
  await until('replaced', () => world.registry.get(DRIVER)?.nodeId === 'node-2');
  assert.match(reasons(world), /node id changed from "node-1" to "node-2"/);
});

test('DR-15: of two registrations the newest serves, and the other takes over when it goes', async () => {
  const { world } = await registered();
  const second = inRoot(world.host, 'plugins', 'd', 'second.sock');
  await driver(world, {}, second);
  const reg = await registrar(world, { endpoint: second }, 'e-reg.sock');
  await until('flipped', () => world.registry.get(DRIVER)?.endpoint.path === second);
  assert.match(reasons(world), /newer registration/);
  await reg.close();
  await until('back', () => world.registry.get(DRIVER)?.endpoint.path === endpointOf(world.host));
  assert.equal(reasons(world), '');
});

test('a failed handshake is tried again by itself, further and further apart', async () => {
  const world = await start();
  const plan = script({ before: refusing('NodeGetInfo', 13) });
  world.servers.push(await serveDriver(world.host, endpointOf(world.host), plan));
  const reg = await registrar(world);
  await until('four tries', () => reg.verdicts.length === 4);
  const tries = world.host.called.filter((name) => name === 'GetInfo').length;
  assert.ok(tries <= 5, `${tries} tries`);
  plan.before = () => undefined;
  await until('registered', () => world.registry.get(DRIVER) !== undefined);
});

test('DR-02: a socket file that nobody serves any more does not stop the driver that takes its place', async () => {
  const world = await start();
  const dead = createServer();
  await new Promise<void>((resolve) => dead.listen(endpointOf(world.host), resolve));
  const reg = await registrar(world);
  dead.close();
  await until('told', () => reg.verdicts.length > 0);
  await driver(world);
  await until('registered', () => world.registry.get(DRIVER) !== undefined);
});

test('without a single hint the slow look finds what changed', async () => {
  const host = createSocketHost();
  const registry = createDriverRegistry({
    host: { ...host, watch: () => () => {} },
    layout: { root: host.root, plugins: inRoot(host, 'plugins'), registry: inRoot(host, 'plugins_registry') },
    staticSockets: [],
    resyncMs: 50,
  });
  const world: World = { host, registry, changes: [], servers: [] };
  worlds.push(world);
  await registry.start();
  await driver(world);
  await registrar(world);
  await until('registered', () => registry.get(DRIVER) !== undefined);
  unlinkSync(registration(host));
  await until('gone', () => registry.get(DRIVER) === undefined);
});

test('an error of the disk while its sockets are looked at takes no driver away', async () => {
  const { world } = await registered();
  const before = world.registry.get(DRIVER);
  for (const path of [registration(world.host), endpointOf(world.host), inRoot(world.host, 'plugins', 'd')]) {
    world.host.unreadable.set(path, 2);
    world.registry.suspect(DRIVER);
    await until('looked at until it was seen again', () => (world.host.unreadable.get(path) ?? 0) < 0);
    assert.equal(world.registry.get(DRIVER), before);
  }
  assert.deepEqual(world.changes, [`registered ${DRIVER}`]);
  assert.deepEqual(world.registry.refused(), []);
});

test('a driver that comes while the disk has errors is admitted when they end, not a minute later', async () => {
  const world = await start();
  await driver(world);
  world.host.unreadable.set(registration(world.host), 2);
  await registrar(world);
  await until('registered', () => world.registry.get(DRIVER) !== undefined);
  assert.deepEqual(world.registry.refused(), []);
});

test('a driver that comes while the registry cannot be read is found when it can, not a minute later', async () => {
  const world = await start();
  await driver(world);
  world.host.unreadable.set(inRoot(world.host, 'plugins_registry'), 3);
  await registrar(world);
  await until('registered', () => world.registry.get(DRIVER) !== undefined);
  assert.deepEqual(world.registry.refused(), []);
});

test('A-002: a driver named in the configuration needs no registrar, and is awaited when it is not there', async () => {
  const world = await start({ staticSocket: true });
  await until('shown', () => /does not exist/.test(reasons(world)));
  const server = await driver(world, {
    controllerCapabilities: [CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME],
  });
  await until('registered', () => world.registry.get(DRIVER) !== undefined);
  assert.equal(world.registry.get(DRIVER)?.registrationSocket, undefined);
  assert.deepEqual(world.registry.refused(), []);
  await server.close();
  await until('gone', () => world.registry.get(DRIVER) === undefined);
  await driver(world);
  await until('back', () => world.registry.get(DRIVER) !== undefined);
  assert.deepEqual(world.changes, [`registered ${DRIVER}`, `gone ${DRIVER}`, `registered ${DRIVER}`]);
});

test('DR-25: two hundred sockets one after the other are as many drivers, each looked at for itself', async () => {
  const world = await start();
  for (let index = 0; index < 200; index += 1) {
    // Half of them have a directory of their own, as on a node; the others share one.
    const directory =
      index % 2 === 0 ? inRoot(world.host, 'plugins', 'd') : inRoot(world.host, 'plugins', String(index));
    mkdirSync(directory, { recursive: true, mode: 0o750 });
    const socket = below(directory, `${index}.sock`);
    await driver(world, { name: `d${index}.test` }, socket);
    await registrar(world, { name: `d${index}.test`, endpoint: socket }, `${index}-reg.sock`);
    await until(`driver ${index} is registered`, () => world.registry.get(`d${index}.test`) !== undefined);
  }
  const looks = world.host.looks();
  assert.ok(looks < 200 * LOOKS_PER_DRIVER_MAX, `${looks} looks at files and directories`);
});

/** With what a busy machine adds: some 16 for each driver; when each hint was one for all they were 2,700. */
const LOOKS_PER_DRIVER_MAX = 60;
const TOO_MANY = 300;

test('more entries in the registry than are looked at hide neither a known driver nor an older one', async () => {
  const { world } = await registered();
  for (let index = 0; index < TOO_MANY; index += 1)
    writeFileSync(registration(world.host, `a-file-${index}`), '');
  await until('it is told', () => /entries, and \d+ of them are not looked at/.test(reasons(world)));
  assert.ok(world.registry.get(DRIVER));
  const other = 'other.csi.example';
  await driver(world, { name: other }, inRoot(world.host, 'plugins', 'd', 'other.sock'));
  await registrar(
    world,
    { name: other, endpoint: inRoot(world.host, 'plugins', 'd', 'other.sock') },
    'z-other-reg.sock',
  );
  await until('a socket comes before files', () => world.registry.get(other) !== undefined);
});

test('after a restart the oldest sockets of too many are looked at first', async (t) => {
  const servers: GrpcServer[] = [];
  // Listens and never answers; whoever is connected does not keep this process.
  const junk = createServer((socket) => socket.unref()).unref();
  t.after(async () => {
    junk.close();
    for (const server of servers) await server.close();
  });
  const world = await start({
    before: async (host) => {
      mkdirSync(inRoot(host, 'plugins_registry'), { mode: 0o750 });
      junk.listen(inRoot(host, 'plugins', 'd', 'junk.sock'));
      await new Promise((resolve) => junk.once('listening', resolve));
      for (let index = 0; index < TOO_MANY; index += 1)
        linkSync(inRoot(host, 'plugins', 'd', 'junk.sock'), registration(host, `a-${index}.sock`));
      servers.push(await serveDriver(host, endpointOf(host), script({})));
      servers.push(await serveRegistrar(registration(host), { endpoint: endpointOf(host) }));
      utimesSync(registration(host), 1, 1);
    },
  });
  await until('registered', () => world.registry.get(DRIVER) !== undefined);
});
