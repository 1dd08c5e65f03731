/**
 * plugins_registry, from both sides, with the code of the kubelet: its plugin manager and its example plugin. Where a
 * driver announces itself there is no witness: it would announce its own socket all the same. No volume is driven here.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import { goPrograms } from './go-program.ts';
import { startRegistrar } from './mock.ts';
import { NODE, inWorld, type World } from './world.ts';

const { skip, files } = goPrograms('kubelet', 'example-plugin', 'registrar');
const LOOPFILE = 'loopfile.mooring.dev';

test("loopfile registers itself with the kubelet's own plugin manager and CSI plugin", { skip }, () =>
  inWorld(async (world) => {
    const guest = world.start('kubelet', [
      files.kubelet,
      '--root',
      world.root,
      '--node',
      NODE,
      '--driver',
      LOOPFILE,
    ]);
    const driver = await world.startLoopfile(world.socketOf(LOOPFILE), '--registry', world.registry);
    const line = await guest.line('registration', (one) => one.includes('"done":"registered"'));
    assert.deepEqual(JSON.parse(line), { done: 'registered', subject: LOOPFILE });
    assert.ok(driver.running());
  }),
);

function startStranger(world: World, name: string, kind: string) {
  const socket = join(world.registry, `${name}-reg.sock`);
  return world.start(name, [files['example-plugin'], '--name', name, '--type', kind, '--socket', socket]);
}

test("the kubelet's example plugin, which is no CSI driver, is refused by name and told so", { skip }, () =>
  inWorld(async (world) => {
    await world.startAgent();
    const stranger = startStranger(world, 'stranger.example', 'DRAPlugin');
    const told = await stranger.line('verdict', (line) => line.includes('Notify registration status'));
    assert.doesNotMatch(told, /plugin_registered:true/);
    assert.match(told, /DRAPlugin/);
    const status = await world.until('the refusal to be named', ({ drivers }) =>
      drivers.some(({ state, socket }) => state === 'refused' && socket.includes('stranger.example')),
    );
    assert.equal(status.summary.driversRegistered, 0);
  }),
);

function verdicts(drivers: StatusDocument['drivers']): string {
  return drivers
    .map(({ state, socket, reason }) => `${state} ${socket}: ${JSON.stringify(reason)}`)
    .join('\n');
}

test(
  'a registrar that never answers its verdict and serves no CSI keeps no other driver waiting',
  { skip },
  () =>
    inWorld(async (world) => {
      await world.startAgent();
      const stranger = startStranger(world, 'silent.example', 'CSIPlugin');
      await stranger.line('verdict', (line) => line.includes('Notify registration status'));
      await world.startLoopfile(world.socketOf(LOOPFILE), '--registry', world.registry);
      // The kubelet gives a verdict 5 s; one that hangs must not add its own to somebody else's.
      const { drivers } = await world.untilRegistered(LOOPFILE);
      // Before, it may be refused because nobody listened at its socket yet.
      assert.doesNotMatch(verdicts(drivers), /UNIMPLEMENTED/, 'nobody waited for the verdict to run out');
      await world.until('the refusal to be named', (status) =>
        /silent\.example.*UNIMPLEMENTED/.test(verdicts(status.drivers)),
      );
      assert.ok(stranger.running());
    }),
);

test("a registrar on the kubelet's published code is accepted, and ends when it is refused", { skip }, () =>
  inWorld(async (world) => {
    await world.startAgent();
    const witness = world.witness(LOOPFILE);
    await world.startLoopfile(witness.behind);
    await witness.open();
    const argv = [files.registrar, '--endpoint', witness.front, '--registry', world.registry];
    const refused = world.start('registrar-2', [...argv, '--versions', '2.0.0']);
    assert.match(await refused.line('refusal', (line) => line.startsWith('{')), /"registered":false/);
    assert.equal((await refused.ended).code, 1);
    const accepted = startRegistrar(world, files.registrar, witness);
    assert.match(await accepted.line('verdict', (line) => line.startsWith('{')), /"registered":true/);
    await world.untilRegistered(LOOPFILE);
    assert.ok(accepted.running());
  }),
);
