/**
 * The same volume under the kubelet's own CSI code and under Mooring: what each leaves on the disk, and whether one can
 * take over from the other (docs: the state root has the kubelet's layout, vol_data.json included).
 */
import assert from 'node:assert/strict';
import {
  closeSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../demo/child-process.ts';
import { loopDevicesBelow, mountsBelow } from '../demo/machine.ts';
import { goPrograms } from './go-program.ts';
import { csiDriver, documents, podWith } from './manifests.ts';
import { startRegistrar } from './mock.ts';
import type { Program } from './program.ts';
import { inWorld, LOOPFILE_COMMAND, NODE, type World } from './world.ts';

const { skip, files } = goPrograms('kubelet', 'registrar');

const DRIVER = 'loopfile.mooring.dev';
const NAME = 'data';
const UID = '33333333-3333-4333-8333-333333333333';

interface Guest {
  readonly program: Program;
  /** Rejects with the kubelet's own words. */
  does(verb: 'mount' | 'unmount' | 'map' | 'unmap'): Promise<void>;
}

interface Stage {
  readonly storage: string;
  readonly handle: string;
  readonly target: string;
  readonly mode: 'Filesystem' | 'Block';
}

/**
 * A volume of loopfile; the driver runs and is registered with whoever watches. The witness hears kubelet and Mooring
 * as one orchestrator: what one begins the other may go on with; the same place must get the same arguments of both.
 */
async function prepareVolume(world: World, mode: 'Filesystem' | 'Block' = 'Filesystem'): Promise<Stage> {
  const made = await runCommand([
    ...LOOPFILE_COMMAND,
    'create',
    ...['--pool', world.pool, '--name', NAME, '--size', '64Mi', '--yaml'],
  ]);
  assert.equal(made.code, 0, made.output);
  const handle = /volumeHandle: (\S+)/.exec(made.output)?.[1] ?? '';
  const witness = world.witness(DRIVER);
  await world.startLoopfile(witness.behind);
  await witness.open();
  startRegistrar(world, files.registrar, witness);
  const target = join(world.pods, UID, 'volumes/kubernetes.io~csi', NAME, 'mount');
  const storage =
    mode === 'Block'
      ? made.output.replaceAll('storageClassName:', 'volumeMode: Block\n  storageClassName:')
      : made.output;
  return { storage, handle, target, mode };
}

async function startKubelet(world: World, { handle, mode }: Stage): Promise<Guest> {
  const pairs = { root: world.root, node: NODE, driver: DRIVER, handle, volume: NAME, uid: UID };
  const argv = Object.entries(pairs).flatMap(([key, value]) => [`--${key}`, value]);
  if (mode === 'Block') argv.push('--block');
  const program = world.start('kubelet', [files.kubelet, ...argv]);
  await program.line('registration', (line) => line.includes('"done":"registered"'));
  return {
    program,
    async does(verb) {
      program.write(verb);
      const line = await program.line(verb, (one) => one.includes(`"done":"${verb}"`));
      const { error } = JSON.parse(line) as { readonly error?: string };
      if (error !== undefined) throw new Error(`the kubelet's ${verb}: ${error}`);
    },
  };
}

/** Below the kubelet's part of the state root: directories with modes, vol_data.json, and what is mounted where. */
function layoutOf(world: World): readonly string[] {
  const lines: string[] = [];
  const walk = (path: string): void => {
    const facts = lstatSync(path, { throwIfNoEntry: false });
    if (facts === undefined) return;
    const shown = path.slice(world.root.length);
    const mounted = mountsBelow(path).find(({ target }) => target === path);
    const mode = (facts.mode & 0o7777).toString(8);
    // Which loop device is free is chance.
    const root = mounted?.root.replace(/^\/loop[0-9]+$/, '/loop');
    if (mounted !== undefined) lines.push(`mount ${shown} ${mounted.fsType} of ${root}`);
    else if (facts.isDirectory()) {
      lines.push(`directory ${shown} ${mode}`);
      for (const name of readdirSync(path).sort()) walk(join(path, name));
    } else if (facts.isSymbolicLink()) {
      lines.push(
        `link ${shown} -> ${readlinkSync(path)
          .replace(world.root, '')
          .replace(/loop\d+$/, 'loopN')}`,
      );
    } else lines.push(`file ${shown} ${mode} ${readFileSync(path, 'utf8')}`);
  };
  walk(world.pods);
  walk(join(world.root, 'plugins/kubernetes.io'));
  return lines;
}

function manifest({ storage, mode }: Stage): string {
  const object = csiDriver(DRIVER, 'attachRequired: false', 'podInfoOnMount: false');
  const claim = `persistentVolumeClaim: { claimName: ${NAME} }`;
  const guest = podWith('guest', UID, claim, mode === 'Block' ? 'volumeDevices' : 'volumeMounts');
  return documents(object, storage, guest);
}

test(
  "what Mooring leaves on the disk for a mounted volume is what the kubelet's own code leaves",
  { skip },
  () =>
    inWorld(async (world) => {
      const stage = await prepareVolume(world);
      const guest = await startKubelet(world, stage);
      await guest.does('mount');
      const theirs = layoutOf(world);
      assert.ok(theirs.some((line) => line.startsWith('mount ')));
      await guest.does('unmount');
      await guest.program.end('SIGTERM');
      assert.deepEqual(mountsBelow(world.root), []);

      await world.startAgent();
      await world.untilRegistered(DRIVER);
      world.putManifest('guest.yaml', manifest(stage));
      await world.untilReady('guest');
      assert.deepEqual(layoutOf(world), theirs);
      world.removeManifest('guest.yaml');
      await world.untilEmpty();
      assert.deepEqual(loopDevicesBelow(world.scratch), []);
    }),
);

test(
  'Mooring takes over a volume that the kubelet mounted, without touching it, and takes it down',
  { skip },
  () =>
    inWorld(async (world) => {
      const stage = await prepareVolume(world);
      const guest = await startKubelet(world, stage);
      await guest.does('mount');
      writeFileSync(join(stage.target, 'note'), 'from the kubelet');
      const before = mountsBelow(world.root).map(({ mountId, target }) => `${mountId} ${target}`);
      await guest.program.end('SIGKILL');

      world.putManifest('guest.yaml', manifest(stage));
      await world.startAgent();
      await world.untilReady('guest');
      const after = mountsBelow(world.root).map(({ mountId, target }) => `${mountId} ${target}`);
      assert.deepEqual(after, before, 'the same mounts, not new ones');
      assert.equal(readFileSync(join(stage.target, 'note'), 'utf8'), 'from the kubelet');
      world.removeManifest('guest.yaml');
      await world.untilEmpty();
      assert.deepEqual(mountsBelow(world.root), []);
      assert.deepEqual(loopDevicesBelow(world.scratch), []);
    }),
);

test('the kubelet takes down a volume that Mooring mounted, from what it finds on the disk', { skip }, () =>
  inWorld(async (world) => {
    const stage = await prepareVolume(world);
    world.putManifest('guest.yaml', manifest(stage));
    const agent = await world.startAgent();
    await world.untilReady('guest');
    writeFileSync(join(stage.target, 'note'), 'from Mooring');
    await agent.end('SIGTERM');
    assert.ok(mountsBelow(stage.target).length > 0, 'mounts outlive the agent');

    const guest = await startKubelet(world, stage);
    await guest.does('unmount');
    assert.deepEqual(mountsBelow(world.root), []);
    assert.deepEqual(loopDevicesBelow(world.scratch), []);
  }),
);

const link = (world: World): string => join(world.pods, UID, 'volumeDevices/kubernetes.io~csi', NAME);

test("the kubelet's own code maps a block volume of loopfile, and unmaps it", { skip }, () =>
  inWorld(async (world) => {
    const stage = await prepareVolume(world, 'Block');
    const guest = await startKubelet(world, stage);
    await guest.does('map');
    assert.ok(statSync(link(world)).isBlockDevice());
    writeFileSync(link(world), 'raw bytes', { flag: 'r+', flush: true });
    await guest.does('unmap');
    assert.deepEqual(mountsBelow(world.root), []);
    assert.deepEqual(loopDevicesBelow(world.scratch), []);
  }),
);

test(
  "what Mooring leaves on the disk for a block volume is what the kubelet's own code leaves",
  { skip },
  () =>
    inWorld(async (world) => {
      const stage = await prepareVolume(world, 'Block');
      const guest = await startKubelet(world, stage);
      await guest.does('map');
      const theirs = layoutOf(world);
      const held = loopDevicesBelow(world.scratch).length;
      await guest.does('unmap');
      await guest.program.end('SIGTERM');

      await world.startAgent();
      await world.untilRegistered(DRIVER);
      world.putManifest('guest.yaml', manifest(stage));
      await world.untilReady('guest');
      assert.deepEqual(layoutOf(world), theirs);
      assert.equal(
        loopDevicesBelow(world.scratch).length,
        held,
        'the device is held open as the kubelet holds it',
      );
      world.removeManifest('guest.yaml');
      await world.untilEmpty();
      assert.deepEqual(loopDevicesBelow(world.scratch), []);
    }),
);

test('Mooring takes over a block volume that the kubelet mapped, and takes it down', { skip }, () =>
  inWorld(async (world) => {
    const stage = await prepareVolume(world, 'Block');
    const guest = await startKubelet(world, stage);
    await guest.does('map');
    writeFileSync(link(world), 'from the kubelet', { flag: 'r+', flush: true });
    await guest.program.end('SIGKILL');
    world.putManifest('guest.yaml', manifest(stage));
    await world.startAgent();
    await world.untilReady('guest');
    assert.equal(readDevice(link(world), 16), 'from the kubelet');
    world.removeManifest('guest.yaml');
    await world.untilEmpty();
    assert.deepEqual(mountsBelow(world.root), []);
    assert.deepEqual(loopDevicesBelow(world.scratch), []);
  }),
);

test('the kubelet unmaps a block volume that Mooring mapped, from what it finds on the disk', { skip }, () =>
  inWorld(async (world) => {
    const stage = await prepareVolume(world, 'Block');
    world.putManifest('guest.yaml', manifest(stage));
    const agent = await world.startAgent();
    await world.untilReady('guest');
    await agent.end('SIGTERM');
    const guest = await startKubelet(world, stage);
    await guest.does('unmap');
    assert.deepEqual(mountsBelow(world.root), []);
    assert.deepEqual(loopDevicesBelow(world.scratch), []);
  }),
);

function readDevice(path: string, bytes: number): string {
  const buffer = Buffer.alloc(bytes);
  const descriptor = openSync(path, 'r');
  readSync(descriptor, buffer, 0, bytes, 0);
  closeSync(descriptor);
  return buffer.toString();
}
