import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fail } from '../../../mount/failure.ts';
import { type AbsolutePath, below, parentOf } from '../../../mount/host.ts';
import type {
  NodePublishVolumeRequest,
  NodeStageVolumeRequest,
  NodeUnstageVolumeRequest,
} from '../../../plugins/csi/wire/generated/csi.ts';
import { accept, refuse } from './answers.ts';
import { BLOCK_SPEC, type BlockWorld, createBlockWorld } from './block-world.ts';

const methods = ({ called }: BlockWorld): string[] => called.map(({ method }) => method);
const requests = <T>({ called }: BlockWorld, method: string): T[] =>
  called.filter((one) => one.method === method).map(({ request }) => request as T);
const status = (code: number) => ({ kind: 'status', status: code, message: 'no' }) as const;
const places = (world: BlockWorld, pod = 'a') => world.layout.blockPublication(world.call(pod).publication);
const stagingOf = ({ layout }: BlockWorld) => layout.stagingPath(BLOCK_SPEC);

test('KV-D1, KV-D2, A-016, A-055, A-061: a block volume is staged and published as a device', async () => {
  const world = createBlockWorld();
  const { published, data } = places(world);
  let found: readonly string[] = [];
  world.answer = (method) => {
    if (method === 'NodePublishVolume') found = world.memory.describe(world.layout.blockDevices);
    return undefined;
  };
  const fsGroup = { gid: 2000, changePolicy: 'Always' } as const;
  accept(await world.plugin().stage(world.call('a', { fsGroup })));
  const published1 = accept(await world.plugin().publish(world.call('a', { fsGroup })));
  const volumeCapability = { accessType: { $case: 'block', value: {} }, accessMode: { mode: 5 } };
  const [stage] = requests<NodeStageVolumeRequest>(world, 'NodeStageVolume');
  assert.deepEqual([stage?.stagingTargetPath, stage?.volumeCapability], [stagingOf(world), volumeCapability]);
  const [publish] = requests<NodePublishVolumeRequest>(world, 'NodePublishVolume');
  assert.deepEqual(
    [publish?.stagingTargetPath, publish?.targetPath, publish?.volumeCapability],
    [stagingOf(world), published, volumeCapability],
  );
  const at = (path: string) => found.find((line) => line.startsWith(`${path} `));
  assert.match(at(stagingOf(world)) ?? '', /directory 750/);
  assert.equal(at(published), undefined, 'the target is the driver’s to make');
  assert.match(at(published.replace(/\/a$/, '')) ?? '', /directory 750/);
  assert.deepEqual(JSON.parse(world.memory.read(below(data, 'vol_data.json')) ?? ''), {
    attachmentID: 'csi-4664c5918eb61d4ff6f8bdac3fd8d7674b32f6db520db6eb749489e487e1396c',
    driverName: BLOCK_SPEC.driver,
    nodeName: 'node-a',
    specVolID: 'pv-raw',
    volumeHandle: 'raw-1',
  });
  assert.equal(published1.mount?.blockDevice, world.disk.device);
});

test('DR-07, MT-08: on a full disk a device is published again as long as its paper says what it is', async () => {
  const world = createBlockWorld();
  accept(await world.plugin().stage(world.call()));
  const { mount } = accept(await world.plugin().publish(world.call()));
  world.memory.failNext('writeFile', 'disk-full');
  accept(await world.plugin().publish(world.call('a', { mount, refresh: true })));
  assert.deepEqual(methods(world), ['NodeStageVolume', 'NodePublishVolume', 'NodePublishVolume']);
});

test('KV-D3, KV-D5: a device is bound, held, linked into the pod; that goes before the driver is told', async () => {
  const world = createBlockWorld();
  const { published, held, link } = places(world);
  accept(await world.plugin().publish(world.call()));
  assert.deepEqual(accept(await world.host.deviceOf(held)), world.disk.device);
  assert.equal(accept(await world.host.readLink(link)), published);
  assert.deepEqual(
    world.memory.devices.holds().map(({ path, device }) => [path, device]),
    [[held, world.disk.device]],
  );
  let left: readonly string[] = [];
  world.answer = (method) => {
    if (method === 'NodeUnpublishVolume') left = world.describe();
    return undefined;
  };
  accept(await world.plugin().unpublish(world.call()));
  assert.ok(left.every((line) => !line.startsWith('held:') && !line.includes(link)));
  assert.equal(left.find((line) => line.startsWith(held))?.replace(held, ''), ' file 640 ""');
  assert.ok(left.some((line) => line.startsWith(published)));
});

test('a place keeps its mark until the driver lets go of it: what it does late is found without a record', async () => {
  const world = createBlockWorld();
  const { held } = places(world);
  world.answer = () => status(10);
  assert.equal(refuse(await world.plugin().publish(world.call())).effect, 'unknown');
  assert.equal(refuse(await world.plugin().unpublish(world.call())).code, 'driver-busy');
  const isMarked = () => world.describe().some((line) => line.startsWith(`${held} `));
  assert.ok(isMarked());
  world.answer = () => undefined;
  accept(await world.plugin().unpublish(world.call()));
  assert.ok(!isMarked());
});

test('A-059, A-058: two pods have one device each to themselves; what they share goes with the last', async () => {
  const world = createBlockWorld();
  const before = world.describe();
  const plugin = world.plugin();
  accept(await plugin.stage(world.call()));
  for (const pod of ['a', 'b']) accept(await plugin.publish(world.call(pod)));
  accept(await plugin.unpublish(world.call('a')));
  assert.ok(world.memory.read(below(places(world).data, 'vol_data.json')));
  assert.equal(accept(await world.host.deviceOf(places(world, 'b').held)), world.disk.device);
  accept(await plugin.unpublish(world.call('b')));
  assert.ok(world.memory.read(below(places(world).data, 'vol_data.json')), 'still staged');
  accept(await plugin.unstage(world.call()));
  assert.deepEqual(world.describe(), before);
});

test('one pod’s place coming down takes nothing from another that is just being made', async () => {
  const world = createBlockWorld();
  const before = world.describe();
  const plugin = world.plugin({ parallel: true });
  const { inspect } = world.host;
  // The last look before the papers go takes its time; the other begins at every step before it.
  world.host.inspect = async (path) => {
    const facts = await inspect(path);
    for (let turns = 0; path === stagingOf(world) && turns < 300; turns += 1) await null;
    return facts;
  };
  for (let round = 0; round < 60; round += 1) {
    accept(await plugin.publish(world.call('a')));
    const down = plugin.unpublish(world.call('a'));
    const steps = world.memory.calls() + round;
    while (world.memory.calls() < steps && (await isPending(down))) await null;
    const up = plugin.publish(world.call('b'));
    accept(await down);
    accept(await up);
    assert.ok(world.memory.read(below(places(world).data, 'vol_data.json')), `round ${round}`);
    accept(await plugin.unpublish(world.call('b')));
    assert.deepEqual(world.describe(), before);
  }
});

test('A-061, DR-03: OK for a target that is a file, a directory or nothing is not a device', async () => {
  for (const kind of ['file', 'directory', undefined] as const) {
    const world = createBlockWorld();
    const { published } = places(world);
    const before = world.describe();
    world.answer = (method) => {
      if (method !== 'NodePublishVolume') return undefined;
      if (kind !== undefined) world.memory.plant(published, { kind });
      return { kind: 'ok', reply: {} };
    };
    assert.deepEqual(refuse(await world.plugin().publish(world.call())), {
      code: 'published-not-a-device',
      effect: 'unknown',
    });
    world.answer = () => ({ kind: 'ok', reply: {} });
    accept(await world.plugin().unpublish(world.call()));
    assert.deepEqual(world.describe(), before, kind);
  }
});

test('k/k#34437: another device at the target than the pod was given is named, and the pod’s is left', async () => {
  const world = createBlockWorld('mknod');
  const before = world.describe();
  const first = world.disk.device;
  const { published, held, link } = places(world);
  accept(await world.plugin().publish(world.call()));
  world.newDisk();
  await world.memory.removeFile(published);
  const again = await world.plugin().publish(world.call());
  assert.deepEqual(refuse(again), { code: 'device-changed', effect: 'unknown' });
  assert.equal(accept(await world.host.deviceOf(held)), first);
  assert.equal(
    accept(await world.host.inspect(link)).kind,
    'absent',
    'who starts now gets none, not another',
  );
  assert.deepEqual(
    world.memory.devices.holds().map(({ device }) => device),
    [first],
    'its number is given to nobody else while the pod may have it',
  );
  accept(await world.plugin().unpublish(world.call()));
  accept(await world.plugin().publish(world.call()));
  accept(await world.plugin().unpublish(world.call()));
  assert.deepEqual(world.describe(), before);
});

test('k/k#34437: a node that nobody holds is of another boot, whatever its driver says of it', async () => {
  const world = createBlockWorld('mknod');
  const { published } = places(world);
  const another = world.memory.devices.add();
  world.memory.plant(published, { kind: 'block', block: another });
  world.answer = (method) => (method === 'NodePublishVolume' ? { kind: 'ok', reply: {} } : undefined);
  assert.equal(refuse(await world.plugin().publish(world.call())).code, 'published-not-a-device');
  world.memory.plant(published, { kind: 'block', block: another });
  world.answer = () => undefined;
  const { mount } = accept(await world.plugin().publish(world.call()));
  assert.equal(mount?.blockDevice, world.disk.device);
  assert.equal(accept(await world.host.deviceOf(published)), world.disk.device);
});

test('a device that cannot be held was never the pod’s: the next one may be another', async () => {
  const world = createBlockWorld('mknod');
  const { published, held } = places(world);
  world.memory.failNext('holdDevice', 'input-output');
  const first = await world.plugin().publish(world.call());
  assert.deepEqual(refuse(first), { code: 'input-output', effect: 'unknown' });
  world.newDisk();
  await world.memory.removeFile(published);
  accept(await world.plugin().publish(world.call()));
  assert.equal(accept(await world.host.deviceOf(held)), world.disk.device);
});

/** The disk is pulled out, and the next one is given its number. */
function giveNumberAway(world: BlockWorld): void {
  const { device } = world.disk;
  world.memory.devices.remove(device);
  assert.equal(world.memory.devices.add('another'), device);
  world.newDisk();
}

for (const manner of ['bind', 'mknod'] as const)
  test(`k/k#34437: a number given to another disk before it is held never reaches the pod (${manner})`, async () => {
    const world = createBlockWorld(manner);
    const before = world.describe();
    const { held, link } = places(world);
    const { holdDevice } = world.host;
    let times = 2;
    world.host.holdDevice = (path) => {
      if (times > 0) giveNumberAway(world);
      times -= 1;
      return holdDevice(path);
    };
    const first = await world.plugin().publish(world.call());
    assert.deepEqual(refuse(first), { code: 'device-replaced', effect: 'unknown' });
    const calls = ['NodePublishVolume', 'NodeUnpublishVolume'];
    assert.deepEqual(methods(world), [...calls, ...calls]);
    assert.equal(refuse(await world.host.readLink(link)).code, 'path-missing');
    assert.deepEqual(
      [accept(await world.host.mountIdOf(held)), world.memory.devices.holds()],
      [undefined, []],
    );
    const { mount } = accept(await world.plugin().publish(world.call()));
    assert.equal(mount?.blockDevice, world.disk.device);
    accept(await world.plugin().unpublish(world.call()));
    assert.deepEqual(world.describe(), before);
  });

test('k/k#34437: a device that its driver does not take back is not published over', async () => {
  const world = createBlockWorld();
  const { link } = places(world);
  const { holdDevice } = world.host;
  world.host.holdDevice = (path) => {
    world.host.holdDevice = holdDevice;
    giveNumberAway(world);
    return holdDevice(path);
  };
  world.answer = (method) => (method === 'NodeUnpublishVolume' ? status(13) : undefined);
  const refused = refuse(await world.plugin().publish(world.call()));
  assert.deepEqual(refused, { code: 'driver-failed', effect: 'unknown' });
  assert.deepEqual(methods(world), ['NodePublishVolume', 'NodeUnpublishVolume']);
  assert.equal(refuse(await world.host.readLink(link)).code, 'path-missing');
  assert.deepEqual(world.memory.devices.holds(), []);
  world.answer = () => undefined;
  const { mount } = accept(await world.plugin().publish(world.call()));
  assert.equal(mount?.blockDevice, world.disk.device);
});

test('k/k#34437: a device that its driver says to have taken back, and has not, is taken back once more', async () => {
  const world = createBlockWorld();
  const { holdDevice } = world.host;
  world.host.holdDevice = (path) => {
    world.host.holdDevice = holdDevice;
    giveNumberAway(world);
    return holdDevice(path);
  };
  let lies = 0;
  // It believes itself, and its disk cannot come anew while the node of its last life is mounted.
  world.answer = (method) => {
    if (method === 'NodeUnpublishVolume' && world.called.length === 2) {
      lies += 1;
      return { kind: 'ok', reply: {} };
    }
    if (method === 'NodePublishVolume' && lies === 1) return status(13);
    lies = 0;
    return undefined;
  };
  assert.equal(refuse(await world.plugin().publish(world.call())).code, 'unpublished-still-mounted');
  const { mount } = accept(await world.plugin().publish(world.call()));
  assert.equal(mount?.blockDevice, world.disk.device);
  const calls = ['NodePublishVolume', 'NodeUnpublishVolume'];
  assert.deepEqual(methods(world), [...calls, ...calls.toReversed()]);
});

test('k/k#34437: a look that comes long after the driver’s answer does not tell which disk it meant', async () => {
  const world = createBlockWorld();
  const { published } = places(world);
  const { identifyDisk, nowMs } = world.host;
  world.host.identifyDisk = (path) => {
    if (path === published) {
      world.host.identifyDisk = identifyDisk;
      world.host.nowMs = () => nowMs() + 60_000;
      giveNumberAway(world);
    }
    return identifyDisk(path);
  };
  const { mount } = accept(await world.plugin().publish(world.call()));
  assert.equal(mount?.blockDevice, world.disk.device);
});

for (const isLate of [true, false]) {
  const what = isLate ? 'a late look' : 'another disk';
  test(`k/k#34437: ${what} takes no hold from a pod that has a device, nor is its driver told to take it`, async () => {
    const world = createBlockWorld();
    const { published, held, link } = places(world);
    accept(await world.plugin().publish(world.call()));
    // Somebody takes the bind away, and what keeps the number stays.
    world.memory.takeAway(held);
    const holds = world.memory.devices.holds().length;
    const { identifyDisk, nowMs } = world.host;
    world.host.identifyDisk = async (path) => {
      const disk = await identifyDisk(path);
      if (path !== published)
        return isLate ? disk : { ok: true, value: { ...world.disk, sequence: 'other' } };
      if (isLate) world.host.nowMs = () => nowMs() + 60_000;
      return disk;
    };
    const again = await world.plugin().publish(world.call());
    assert.equal(refuse(again).code, isLate ? 'deadline-passed' : 'device-changed');
    assert.ok(world.memory.devices.holds().length >= holds);
    assert.equal((await world.host.readLink(link)).ok, isLate, 'nobody is given another disk');
    assert.ok(!methods(world).includes('NodeUnpublishVolume'));
  });
}

/** Somebody binds a file of his over the path; answers the number of his mount. */
async function bindTheirs(world: BlockWorld, path: AbsolutePath): Promise<number | undefined> {
  const theirs = below(parentOf(path), 'theirs');
  world.memory.plant(theirs, { kind: 'file' });
  accept(await world.memory.mount({ fsType: 'bind', source: theirs, target: path, options: [] }));
  return accept(await world.memory.mountIdOf(path));
}

test('MT-15: a device that cannot be held goes, and nobody’s mount that was made over it meanwhile', async () => {
  const world = createBlockWorld();
  const { held } = places(world);
  let theirs: number | undefined;
  world.host.holdDevice = async () => {
    theirs = await bindTheirs(world, held);
    return fail({ code: 'input-output', message: 'sick', effect: 'unknown' });
  };
  refuse(await world.plugin().publish(world.call()));
  assert.deepEqual(
    [accept(await world.memory.mountIdOf(held)), world.memory.depthAt(held)],
    [theirs, 2],
    'his stays, and so does what it lies over',
  );
});

test('DR-08: what the driver bound was unmounted: published again, the pod has the device it always had', async () => {
  const world = createBlockWorld();
  const before = world.describe();
  const first = accept(await world.plugin().publish(world.call()));
  const published = world.describe();
  accept(await world.memory.unmount(places(world).published));
  assert.deepEqual(accept(await world.plugin().publish(world.call())), first, 'bound and held as ever');
  assert.deepEqual(world.describe(), published);
  accept(await world.plugin().unpublish(world.call()));
  assert.deepEqual(world.describe(), before);
});

test('MT-14: what was bound while somebody took the driver’s own away was never the pod’s, and goes', async () => {
  for (const isSwapped of [false, true]) {
    const world = createBlockWorld();
    const before = world.describe();
    const { published, held } = places(world);
    const { mount } = world.host;
    world.host.mount = async (request) => {
      world.host.mount = mount;
      accept(await world.memory.unmount(published));
      if (isSwapped) {
        world.newDisk();
        accept(await mount({ ...request, source: world.disk.path, target: published }));
      }
      return mount(request);
    };
    const first = await world.plugin().publish(world.call());
    assert.deepEqual(refuse(first), { code: 'device-changed', effect: 'unknown' });
    assert.equal(accept(await world.host.mountIdOf(held)), undefined);
    accept(await world.plugin().publish(world.call()));
    assert.equal(accept(await world.host.deviceOf(held)), world.disk.device);
    accept(await world.plugin().unpublish(world.call()));
    assert.deepEqual(world.describe(), before);
  }
});

for (const manner of ['bind', 'mknod'] as const)
  test(`k/k#34437: a device bound before a crash and never held gives way to the one of now (${manner})`, async () => {
    const world = createBlockWorld(manner);
    const before = world.describe();
    const { held } = places(world);
    const { holdDevice } = world.host;
    let isBound = false;
    world.host.holdDevice = () => {
      isBound = true;
      return new Promise(() => {});
    };
    void world.plugin().publish(world.call());
    while (!isBound) await new Promise(setImmediate);
    world.host.holdDevice = holdDevice;
    giveNumberAway(world);
    accept(await world.plugin().publish(world.call()));
    assert.equal(accept(await world.host.deviceOf(held)), world.disk.device);
    accept(await world.plugin().unpublish(world.call()));
    assert.deepEqual(world.describe(), before);
  });

/** The driver's own was taken away as it was bound, so a file is bound now, and nobody heard how that ended. */
async function crashedWithFileBound(world: BlockWorld): Promise<void> {
  const { published, held } = places(world);
  const { mount } = world.host;
  world.host.mount = async (request) => {
    accept(await world.memory.unmount(published));
    accept(await mount(request));
    return new Promise(() => {});
  };
  void world.plugin().publish(world.call());
  while (accept(await world.host.mountIdOf(held)) === undefined) await new Promise(setImmediate);
  world.host.mount = mount;
}

for (const isDeleted of [false, true]) {
  const which = isDeleted ? 'has no name any more' : 'is there still';
  test(`MT-14: a file bound instead of the device, before a crash, gives way (911387683): it ${which}`, async () => {
    const world = createBlockWorld();
    const { published, held } = places(world);
    await crashedWithFileBound(world);
    if (isDeleted) accept(await world.memory.removeFile(published));
    accept(await world.plugin().publish(world.call()));
    assert.equal(accept(await world.host.deviceOf(held)), world.disk.device);
  });
}

test('MT-15: a file that somebody else bound where the device should be stays, and is named', async () => {
  const world = createBlockWorld();
  const { held } = places(world);
  world.memory.plant(held, { kind: 'file' });
  const mountId = await bindTheirs(world, held);
  const refused = refuse(await world.plugin().publish(world.call()));
  assert.deepEqual(refused, { code: 'device-changed', effect: 'unknown' });
  assert.equal(accept(await world.host.mountIdOf(held)), mountId);
});

test('MT-15: a file of ours gives way, and nobody’s mount that was made over it meanwhile', async () => {
  const world = createBlockWorld();
  const { held } = places(world);
  const { readMountTable } = world.host;
  await crashedWithFileBound(world);
  let theirs: number | undefined;
  world.host.readMountTable = async (about) => {
    const table = await readMountTable(about);
    if (table.ok && table.value.at(held).length > 0) theirs ??= await bindTheirs(world, held);
    return table;
  };
  assert.equal(refuse(await world.plugin().publish(world.call())).code, 'device-changed');
  assert.equal(accept(await world.memory.mountIdOf(held)), theirs);
});

for (const manner of ['bind', 'mknod'] as const) {
  test(`k/k#34437: a disk back under another number (${manner}) is the pod’s; its first is kept`, async () => {
    const world = createBlockWorld(manner);
    const before = world.describe();
    const { published, held, link } = places(world);
    const first = world.disk.device;
    accept(await world.plugin().publish(world.call()));
    world.memory.devices.remove(first);
    if (manner === 'bind') accept(await world.memory.unmount(published));
    accept(await world.memory.removeFile(published));
    world.newDisk();
    const second = world.disk.device;
    for (let times = 0; times < 2; times += 1) {
      const { mount } = accept(await world.plugin().publish(world.call()));
      assert.equal(mount?.blockDevice, second);
      assert.equal(accept(await world.host.deviceOf(held)), second);
      assert.equal(accept(await world.host.readLink(link)), published);
      assert.deepEqual(
        world.memory.devices.holds().map(({ device }) => device),
        [first, second],
        'the pod may have the number of the first one still',
      );
    }
    accept(await world.plugin().unpublish(world.call()));
    assert.deepEqual(world.describe(), before);
    assert.deepEqual(world.memory.devices.holds(), []);
  });
}

test('a link that leads elsewhere, of another life of this place, is made anew', async () => {
  const world = createBlockWorld();
  const { published, link } = places(world);
  world.memory.plant(link, { kind: 'symlink', text: '/dev/elsewhere' });
  accept(await world.plugin().publish(world.call()));
  assert.equal(accept(await world.host.readLink(link)), published);
});

test('DR-04, GR-03: a refused publish leaves nothing; one that made the device is uncertain', async () => {
  const world = createBlockWorld('mknod');
  const before = world.describe();
  const { published } = places(world);
  world.answer = (method) => (method === 'NodePublishVolume' ? status(3) : undefined);
  assert.deepEqual(refuse(await world.plugin().publish(world.call())), {
    code: 'driver-refused',
    effect: 'none',
  });
  assert.deepEqual(world.describe(), before);
  world.answer = (method) => {
    if (method !== 'NodePublishVolume') return undefined;
    world.memory.plant(published, { kind: 'block', block: world.disk.device });
    return status(3);
  };
  assert.deepEqual(refuse(await world.plugin().publish(world.call())), {
    code: 'driver-refused',
    effect: 'unknown',
  });
  world.answer = () => undefined;
  accept(await world.plugin().unpublish(world.call()));
  assert.deepEqual(world.describe(), before);
});

test('DR-07: a refused publish of what is published already leaves the pod its device', async () => {
  const world = createBlockWorld();
  accept(await world.plugin().publish(world.call()));
  const before = world.describe();
  world.answer = (method) => (method === 'NodePublishVolume' ? status(9) : undefined);
  assert.deepEqual(refuse(await world.plugin().publish(world.call())), {
    code: 'driver-precondition',
    effect: 'none',
  });
  assert.deepEqual(world.describe(), before);
});

test('DR-10, KV-H8: an unpublish that says OK and leaves the device bound is not done', async () => {
  const world = createBlockWorld();
  accept(await world.plugin().publish(world.call()));
  world.answer = (method) => (method === 'NodeUnpublishVolume' ? { kind: 'ok', reply: {} } : undefined);
  for (let tries = 0; tries < 2; tries += 1) {
    assert.deepEqual(refuse(await world.plugin().unpublish(world.call())), {
      code: 'unpublished-still-mounted',
      effect: 'unknown',
    });
  }
  world.answer = () => undefined;
  accept(await world.plugin().unpublish(world.call()));
});

test('A-066: what is left at the target goes if it is a device or empty, and is named if it is data', async () => {
  const world = createBlockWorld();
  const before = world.describe();
  const { published } = places(world);
  /** As a driver that unmounts, and leaves what it was mounted on. */
  const leave = (node: Parameters<typeof world.memory.plant>[1]): void => {
    world.answer = async (method) => {
      if (method !== 'NodeUnpublishVolume') return undefined;
      await world.memory.unmount(published);
      world.memory.plant(published, node);
      return { kind: 'ok', reply: {} };
    };
  };
  for (const kind of ['file', 'block', 'directory'] as const) {
    accept(await world.plugin().publish(world.call()));
    leave({ kind });
    accept(await world.plugin().unpublish(world.call()));
    assert.deepEqual(world.describe(), before, kind);
  }
  world.answer = () => undefined;
  accept(await world.plugin().publish(world.call()));
  leave({ kind: 'file', content: 'precious' });
  const failed = await world.plugin().unpublish(world.call());
  assert.deepEqual(refuse(failed), { code: 'path-wrong-kind', effect: 'unknown' });
  assert.ok(!failed.ok && failed.failure.blocker === published);
  assert.equal(world.memory.read(published), 'precious');
});

test('A-066, KV-H14: staging is removed with rmdir: an empty file of the driver goes, data stays', async () => {
  const world = createBlockWorld();
  const before = world.describe();
  const staging = stagingOf(world);
  accept(await world.plugin().stage(world.call()));
  world.memory.plant(`${staging}/device`, { kind: 'file' });
  accept(await world.plugin().unstage(world.call()));
  assert.deepEqual(world.describe(), before);
  for (const path of ['image', 'directory/image']) {
    accept(await world.plugin().stage(world.call()));
    world.memory.plant(`${staging}/${path}`, { kind: 'file', content: 'precious' });
    const failed = await world.plugin().unstage(world.call());
    assert.ok(!failed.ok, 'data is no reason to succeed');
    assert.equal(failed.failure.effect, 'unknown');
    assert.ok(failed.failure.message.includes(path.split('/')[0] ?? '?'), failed.failure.message);
    assert.equal(world.memory.read(`${staging}/${path}`), 'precious');
    await world.memory.removeFile(`${staging}/${path}` as AbsolutePath);
    await world.memory.removeEmptyDirectory(`${staging}/directory` as AbsolutePath);
    accept(await world.plugin().unstage(world.call()));
  }
});

test('DR-10: a device that a driver leaves bound in the staging directory is still staged', async () => {
  const world = createBlockWorld();
  const device = below(stagingOf(world), 'device');
  accept(await world.plugin().stage(world.call()));
  world.memory.plant(device, { kind: 'file' });
  accept(await world.memory.mount({ fsType: 'bind', source: world.disk.path, target: device, options: [] }));
  assert.deepEqual(refuse(await world.plugin().unstage(world.call())), {
    code: 'unstaged-still-mounted',
    effect: 'unknown',
  });
  assert.deepEqual(requests<NodeUnstageVolumeRequest>(world, 'NodeUnstageVolume'), [
    { volumeId: 'raw-1', stagingTargetPath: stagingOf(world) },
  ]);
});

test('a volume of the same name does not get the places of one that is not down yet', async () => {
  const world = createBlockWorld();
  accept(await world.plugin().stage(world.call()));
  accept(await world.plugin().publish(world.call()));
  const before = world.describe();
  const spec = { ...BLOCK_SPEC, volumeHandle: 'raw-2' };
  const failed = await world.plugin().stage(world.call('a', { spec }));
  assert.deepEqual(refuse(failed), { code: 'mount-foreign', effect: 'none' });
  assert.deepEqual(world.describe(), before);
  accept(await world.plugin().unpublish(world.call()));
  accept(await world.plugin().unstage(world.call()));
  accept(await world.plugin().stage(world.call('a', { spec })));
});

test('a volume whose name is a directory of all block volumes is refused before any call', async () => {
  const world = createBlockWorld();
  for (const specName of ['staging', 'publish']) {
    const spec = { ...BLOCK_SPEC, specName };
    const failed = await world.plugin().stage(world.call('a', { spec }));
    assert.deepEqual(refuse(failed), { code: 'spec-invalid', effect: 'none' });
  }
  assert.deepEqual(methods(world), []);
});

test('INV-14: a block volume comes down after a reboot with nothing but its call, and twice', async () => {
  const world = createBlockWorld();
  const before = world.describe();
  accept(await world.plugin().stage(world.call()));
  accept(await world.plugin().publish(world.call()));
  // As after a reboot: mounts, holds and devices are gone, what is on disk stays.
  world.memory.reboot();
  for (let times = 0; times < 2; times += 1) {
    accept(await world.plugin().unpublish(world.call()));
    accept(await world.plugin().unstage(world.call()));
  }
  assert.deepEqual(world.describe(), before);
});

async function isPending(promise: Promise<unknown>): Promise<boolean> {
  return (await Promise.race([promise, Promise.resolve('pending')])) === 'pending';
}
