import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FIRM_GROUND } from '../../../mount/ground.ts';
import { fail, ok } from '../../../mount/failure.ts';
import {
  type AbsolutePath,
  below,
  type DeviceNumber,
  type Host,
  parentOf,
  parseAbsolutePath,
  type PathKind,
} from '../../../mount/host.ts';
import { createMountTable, type MountEntry, type MountTable } from '../../../mount/mount-table.ts';
import { iscsiVolumeId } from '../../../plugins/iscsi/iscsi-traits.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import type { PodUid, PublicationKey } from '../../../plugins/volume.ts';
import { type ActualState, PRESENT, RESTARTED } from '../../../reconciler/model/actual-state.ts';
import { begin, learn } from '../../../reconciler/model/belief-change.ts';
import { reconstruct, mergeFound } from '../../../reconciler/recovery/reconstruct.ts';
import { orphanAt } from '../../../plugins/kinds/found-volume.ts';
import { kinds } from '../../../plugins/kinds/kinds.ts';
import { reconstructedPublication } from '../../../reconciler/recovery/reconstructed.ts';
import { performStepwise } from '../../perform-stepwise.ts';
import { line, ROOT_MOUNT } from '../../mount/mount-lines.ts';
import { actual, csi, DRIVER, place } from '../world.ts';

const root = parseAbsolutePath('/state');
assert.ok(root);
const layout = createLayout(root);

function parentOfMount(target: string, earlier: readonly string[]): number {
  const above = earlier.findLastIndex((one) => target.startsWith(`${one}/`));
  return above === -1 ? 1 : above + 100;
}

/** A disk given as a list of paths, with the content of the files among them. */
function disk(paths: Readonly<Record<string, string | null>>, mounts: readonly string[] = []): Host {
  const all = Object.keys(paths);
  const entries = mounts.map(
    (target, index): MountEntry => ({
      mountId: index + 100,
      parentId: parentOfMount(target, mounts.slice(0, index)),
      device: '0:50',
      root: '/',
      target: target as AbsolutePath,
      options: ['rw'],
      propagation: [],
      fsType: 'tmpfs',
      source: 'x',
      superOptions: ['rw'],
    }),
  );
  const missing = fail({ code: 'path-missing', message: '', effect: 'none' });
  const host = {
    async listDirectory(directory: AbsolutePath) {
      const below = all
        .filter((path) => path.startsWith(`${directory}/`))
        .map((path) => path.slice(directory.length + 1));
      return below.length === 0 ? missing : ok([...new Set(below.map((path) => path.split('/')[0] ?? ''))]);
    },
    async readFile(path: AbsolutePath) {
      const content = paths[path];
      return typeof content === 'string' ? ok(Buffer.from(content)) : missing;
    },
    async inspect(path: AbsolutePath) {
      const kind: PathKind = all.some((one) => one === path || one.startsWith(`${path}/`))
        ? 'directory'
        : 'absent';
      return ok({ kind, mode: 0, uid: 0, gid: 0, inode: 0, sizeBytes: 0, modifiedMs: 0 });
    },
    readMountTable: async () => ok(createMountTable(entries)),
    deviceOf: async () => ok(undefined),
    removeEmptyDirectory: async () => fail({ code: 'mount-busy', message: '', effect: 'none' }),
  } as unknown as Host;
  host.perform = (transition, args) => performStepwise(host, transition, args);
  return host;
}

const published = layout.target(csi('data'), place('web', 'data'));
const data = JSON.stringify({ driverName: DRIVER, volumeHandle: 'data', specVolID: 'pv-data' });

async function scan(host: Host, known: ActualState = new Map()) {
  return (await reconstruct({ host, layout, ground: FIRM_GROUND, known, isWanted: () => true }, 'whole'))
    .volumes;
}

async function found(host: Host, known: ActualState = new Map()) {
  return (await scan(host, known)).map(({ spec, staged, publications }) => {
    return [spec.id, staged.kind, [...publications].map(([key, { presence }]) => `${key} ${presence.kind}`)];
  });
}

test('a kubelet’s published and staged volume is found by its vol_data.json, and unsure', async () => {
  const host = disk({
    [published.replace(/mount$/, 'vol_data.json')]: data,
    [`${layout.deviceDirectory(DRIVER, 'data')}/vol_data.json`]: data,
  });
  assert.deepEqual(await found(host), [[csi('data').id, 'unsure', ['web/pv-data unsure']]]);
});

for (const covered of [
  layout.stages,
  layout.driverDirectory(DRIVER),
  layout.deviceDirectory(DRIVER, 'data'),
  layout.blockStages,
  ...kinds().flatMap(({ stages }) => stages?.directory(layout) ?? []),
])
  test(`stages that somebody’s mount over ${covered} hides are not taken for absent (seed 477793436)`, async () => {
    const paths = { [published.replace(/mount$/, 'vol_data.json')]: data, [`${covered}/a`]: null };
    const host = disk({ ...paths, [`${layout.deviceDirectory(DRIVER, 'data')}/vol_data.json`]: data }, [
      covered,
    ]);
    const strangerOver = (table: MountTable, path: AbsolutePath) =>
      table.way(parentOf(path)).find(({ mountId }) => mountId >= 100);
    const ground = { ...FIRM_GROUND, strangerOver };
    const scanned = { host, layout, ground, known: new Map(), isWanted: () => true };
    const { complete, driversHidden, unreadPlaces = [] } = await reconstruct(scanned, 'whole');
    assert.deepEqual([complete, driversHidden], [false, true]);
    assert.ok(unreadPlaces.some(({ path }) => path === covered));
  });

for (const [covered, mayBeOfDriver] of [
  [layout.podFolders('web').volumes, true],
  [parentOf(layout.volumeDirectory(csi('data'), place('web', 'data'))), true],
  [layout.volumeDirectory(csi('data'), place('web', 'data')), true],
  [published, true],
  [below(layout.podFolders('web').volumes, 'kubernetes.io~empty-dir', 'cache'), false],
] as const)
  test(`${mayBeOfDriver ? 'a' : 'no'} driver’s may be under ${covered}, which is hidden (seed 17099)`, async () => {
    const host = disk({ [`${covered}/a`]: null }, [covered]);
    const strangerOver = (table: MountTable, path: AbsolutePath) =>
      table.way(path).find(({ target }) => target === covered);
    const ground = { ...FIRM_GROUND, strangerOver };
    const scanned = { host, layout, ground, known: new Map(), isWanted: () => true };
    const { complete, driversHidden } = await reconstruct(scanned, 'whole');
    assert.deepEqual([complete, driversHidden], [false, mayBeOfDriver]);
  });

test('directories of an unknown pod stay while somebody’s mount hides some of them: they may be his', async () => {
  const { volumes } = layout.podFolders('web');
  const his = below(volumes, 'kubernetes.io~csi');
  for (const isCovered of [true, false]) {
    const host = disk({ [his]: null }, isCovered ? [volumes] : []);
    const strangerOver = (table: MountTable, path: AbsolutePath) =>
      table.way(parentOf(path)).find(({ target }) => target === volumes);
    const ground = { ...FIRM_GROUND, strangerOver };
    const removed: string[] = [];
    host.removeEmptyDirectory = async (path) => {
      removed.push(path);
      return ok(undefined);
    };
    await reconstruct({ host, layout, ground, known: new Map(), isWanted: () => false }, 'strangers');
    assert.equal(removed.includes(his), !isCovered, removed.join());
  }
});

test('a volume that a pod has may be staged where somebody’s mount hides its stage', async () => {
  const covered = layout.driverDirectory(DRIVER);
  const host = disk({ [published.replace(/mount$/, 'vol_data.json')]: data }, [covered]);
  const strangerOver = (table: MountTable, path: AbsolutePath) =>
    table.way(parentOf(path)).find(({ target }) => target === covered);
  const ground = { ...FIRM_GROUND, strangerOver };
  const { volumes } = await reconstruct(
    { host, layout, ground, known: new Map(), isWanted: () => true },
    'whole',
  );
  assert.deepEqual(
    volumes.map(({ spec, staged }) => [spec.id, staged.kind]),
    [[csi('data').id, 'unsure']],
  );
});

test('where the stages of block volumes cannot be listed, the papers of none are removed', async () => {
  const { data: papers } = layout.blockVolume('pv-data');
  const removed: AbsolutePath[] = [];
  const after = async (isListed: boolean) => {
    const host = disk({ [`${papers}/vol_data.json`]: data });
    const { listDirectory } = host;
    host.listDirectory = async (directory, entriesMax) => {
      if (isListed || directory !== layout.blockStages) return listDirectory(directory, entriesMax);
      return fail({ code: 'input-output', message: '', effect: 'none' });
    };
    host.mountPlaceOf = async () => ok({ mountId: undefined, within: 1 });
    host.removeFile = async (path) => {
      removed.push(path);
      return ok(undefined);
    };
    host.removeEmptyDirectory = async () => ok(undefined);
    await scan(host);
    return removed.splice(0).includes(below(papers, 'vol_data.json'));
  };
  assert.equal(await after(false), false);
  assert.equal(await after(true), true, 'a teardown that was cut short');
});

test('where a pod has the volume, a staging directory without its vol_data.json is its volume’s', async () => {
  const host = disk({
    [published.replace(/mount$/, 'vol_data.json')]: data,
    [`${layout.deviceDirectory(DRIVER, 'data')}/globalmount`]: null,
  });
  assert.deepEqual(await found(host), [[csi('data').id, 'unsure', ['web/pv-data unsure']]]);
});

test('a staging mount without any pod is found too (k/k#121937)', async () => {
  const host = disk({ [`${layout.deviceDirectory(DRIVER, 'data')}/vol_data.json`]: data });
  assert.deepEqual(await found(host), [[csi('data').id, 'unsure', []]]);
});

test('a global vol_data.json that names another volume than its directory is not believed', async () => {
  const host = disk({ [`${layout.deviceDirectory(DRIVER, 'other')}/vol_data.json`]: data });
  assert.deepEqual(await found(host), []);
});

test('a mount whose vol_data.json is empty (k/k#108217) is an orphan that can be taken down', async () => {
  const host = disk({ [published.replace(/mount$/, 'vol_data.json')]: '' }, [published]);
  const [orphan] = await scan(host);
  assert.deepEqual(orphan?.spec.kind === 'orphan' && orphan.spec.path, published);
  assert.ok(orphan?.publications.has('web/pv-data' as PublicationKey));
});

test('an emptyDir is what its mount shows: memory when mounted, a directory to remove when not', async () => {
  const directory = '/state/pods/web/volumes/kubernetes.io~empty-dir/cache';
  for (const [mounts, medium] of [
    [[directory], 'memory'],
    [[], 'disk'],
  ] as const) {
    const [cache] = await scan(disk({ [`${directory}/f`]: 'x' }, mounts));
    assert.equal(cache?.spec.kind === 'empty-dir' && cache.spec.medium, medium);
  }
});

test('a volume directory without vol_data.json and without a mount is found too (k/k#105536)', async () => {
  const [orphan] = await scan(disk({ [`${published}/x`]: '' }));
  assert.equal(orphan?.spec.kind === 'orphan' && orphan.spec.path, published);
});

const DISK = { portal: '10.0.0.1:3260', iqn: 'iqn.2026-11.example:disk', lun: 1, iface: 'default' };

test('a disk of iSCSI is told in a pod by what is staged of the same device, and else by nothing', async () => {
  const directory = '/state/pods/web/volumes/kubernetes.io~iscsi/disk';
  const [id, stage] = [iscsiVolumeId(DISK), layout.iscsiStage(DISK)];
  const paths = { [`${directory}/f`]: 'x', [`${stage}/f`]: 'x' };
  const of = (orphan: string) => orphanAt(orphan as AbsolutePath).id;
  assert.deepEqual(await found(disk(paths, [directory, stage])), [[id, 'unsure', ['web/disk unsure']]]);
  assert.deepEqual(await found(disk(paths, [directory])), [
    [of(directory), 'absent', ['web/disk unsure']],
    [id, 'unsure', []],
  ]);
  const strange = disk({ '/state/plugins/kubernetes.io/iscsi/iface-default/lost+found/f': 'x' });
  assert.deepEqual(await found(strange), []);
});

test('what is known already is not found again', async () => {
  const known = actual('data', { staged: 'present', pods: { web: 'present' } });
  const host = disk(
    {
      [published.replace(/mount$/, 'vol_data.json')]: data,
      [`${layout.deviceDirectory(DRIVER, 'data')}/vol_data.json`]: data,
    },
    [published, layout.stagingPath(csi('data'))],
  );
  assert.deepEqual(await found(host, new Map([[known.spec.id, known]])), []);
});

test('what was taken down while the scan went is no orphan, though the scan began before', async () => {
  const known = actual('data', { pods: { web: 'present' } });
  const world = new Map([[known.spec.id, known]]);
  const host = disk({ '/state/pods/web/x': '' }, [published]);
  const { listDirectory, readMountTable } = host;
  host.listDirectory = async (directory, entriesMax) => {
    world.clear();
    host.readMountTable = async () => ok(createMountTable([]));
    return listDirectory(directory, entriesMax);
  };
  assert.deepEqual(await found(host, world), []);
  host.listDirectory = listDirectory;
  host.readMountTable = readMountTable;
  assert.equal((await scan(host, world))[0]?.spec.kind, 'orphan', 'one that is mounted still is');
});

test('a secret that was taken down while the scan went is not found, though it was listed before', async () => {
  const directory = '/state/pods/web/volumes/kubernetes.io~secret/key';
  const host = disk({ [`${directory}/f`]: 'x' }, [directory]);
  const [secret] = await scan(host);
  assert.ok(secret !== undefined);
  const publications = new Map(
    [...secret.publications].map(([key, one]) => [key, { ...one, presence: PRESENT }]),
  );
  const world = new Map([[secret.spec.id, { ...secret, publications }]]);
  const { listDirectory } = host;
  host.listDirectory = async (path, entriesMax) => {
    const listed = await listDirectory(path, entriesMax);
    if (path !== parentOf(directory as AbsolutePath)) return listed;
    world.clear();
    Object.assign(host, { ...disk({}), listDirectory });
    return listed;
  };
  assert.deepEqual(await found(host, world), []);
  assert.equal(world.size, 0);
  Object.assign(host, disk({ [`${directory}/f`]: 'x' }, [directory]));
  assert.equal(
    (await scan(host, world)).length,
    1,
    'one that is there still when it is not known any more is',
  );
});

test('a stage that was taken down while the scan went is not found, though it was listed before', async () => {
  const stands = { ...actual('data', { staged: 'present' }), stagedMount: { mountId: 7, device: '7:1' } };
  for (const known of [stands, begin(stands, { kind: 'unstage', volume: stands.spec.id }, undefined)]) {
    const world = new Map([[known.spec.id, known]]);
    const host = disk({ [`${layout.deviceDirectory(DRIVER, 'data')}/vol_data.json`]: data }, []);
    const { listDirectory } = host;
    host.listDirectory = async (path, entriesMax) => {
      const listed = await listDirectory(path, entriesMax);
      if (path === layout.driverDirectory(DRIVER)) world.clear();
      return listed;
    };
    assert.deepEqual(await found(host, world), [], known.staged.kind);
    assert.equal(world.size, 0);
    assert.equal((await scan(host, world)).length, 1, 'one that is there when it is not known any more is');
  }
});

test('RC-18: the bind of a part, explained by nothing, hides no place that has papers (seed 759076691)', async () => {
  const part = below(layout.subpathDirectory(place('web', 'data')), 'main', '0');
  const [orphan] = await scan(disk({ '/state/pods/web/x': '' }, [part]));
  assert.equal(orphan?.spec.kind, 'orphan');
  const known = new Map([[orphan.spec.id, orphan]]);
  const papers = { [published.replace(/mount$/, 'vol_data.json')]: data };
  assert.deepEqual(await found(disk(papers, [published, part]), known), [
    [csi('data').id, 'absent', ['web/pv-data unsure']],
  ]);
  const covered = disk(papers, [published, part, parentOf(published)]);
  const strangerOver = (table: MountTable, path: AbsolutePath) =>
    table.way(parentOf(path)).find(({ target }) => target === parentOf(published));
  const ground = { ...FIRM_GROUND, strangerOver };
  const finds = await reconstruct({ host: covered, layout, ground, known, isWanted: () => true }, 'whole');
  assert.deepEqual([finds.placesRead, finds.driversHidden], [false, true]);
});

test('a place whose papers could be read only when it was gone is no orphan', async () => {
  const paths: Record<string, string | null> = { [`${published}/x`]: '' };
  const host = disk(paths);
  const { readFile } = host;
  const inspect = host.inspect;
  host.readFile = async (path, bytesMax) => {
    host.inspect = async () =>
      ok({ kind: 'absent', mode: 0, uid: 0, gid: 0, inode: 0, sizeBytes: 0, modifiedMs: 0 });
    return readFile(path, bytesMax);
  };
  assert.deepEqual(await found(host), []);
  host.readFile = readFile;
  host.inspect = inspect;
  assert.equal((await scan(host))[0]?.spec.kind, 'orphan');
});

test('an orphan whose volume is called mount is gone, though other volumes of its plugin are there', async () => {
  const plugin = '/state/pods/web/volumes/kubernetes.io~secret';
  const path = `${plugin}/mount` as AbsolutePath;
  const spec = reconstructedPublication('web' as PodUid, 'mount');
  const orphan = {
    ...actual('x', {}),
    spec: orphanAt(path),
    publications: new Map([
      [spec.key, { spec, presence: RESTARTED, generation: undefined, mount: undefined }],
    ]),
  };
  const known = new Map([[orphan.spec.id, orphan]]);
  const host = disk({ [`${plugin}/other/file`]: '' });
  const finds = await reconstruct(
    { host, layout, ground: FIRM_GROUND, known, isWanted: () => true },
    'whole',
  );
  assert.deepEqual(finds.gone, [orphan.spec.id]);
});

test('an orphan of which nothing is there any more is told as gone', async () => {
  const [orphan] = await scan(disk({ [`${published}/x`]: '' }));
  assert.ok(orphan);
  const known = new Map([[orphan.spec.id, orphan]]);
  const gone = async (host: Host) =>
    (await reconstruct({ host, layout, ground: FIRM_GROUND, known, isWanted: () => true }, 'whole')).gone;
  assert.deepEqual(await gone(disk({ [`${published}/x`]: '' })), []);
  assert.deepEqual(await gone(disk({ '/state/pods/web/x': '' }, [published])), []);
  assert.deepEqual(await gone(disk({ '/state/pods/web/x': '' })), [orphan.spec.id]);
});

test('names that could leave the layout are passed over (SE-08)', async () => {
  const host = disk({
    '/state/pods/..x/volumes/kubernetes.io~secret/a/f': 'x',
    '/state/pods/ok/volumes/kubernetes.io~secret/A b/f': 'x',
  });
  assert.deepEqual(await found(host), []);
});

test('a pod that cannot be read hides no publication: what is staged is not judged then (INV-1)', async () => {
  const host = disk({
    [published.replace(/mount$/, 'vol_data.json')]: data,
    [`${layout.deviceDirectory(DRIVER, 'data')}/vol_data.json`]: data,
  });
  const { listDirectory } = host;
  host.listDirectory = async (directory, entriesMax) =>
    directory.startsWith(layout.pods) && directory !== layout.pods
      ? fail({ code: 'input-output', message: '', effect: 'none' })
      : listDirectory(directory, entriesMax);
  const finds = await reconstruct(
    { host, layout, ground: FIRM_GROUND, known: new Map(), isWanted: () => true },
    'whole',
  );
  assert.deepEqual([finds.volumes, finds.complete], [[], false]);
  const unread = finds.unreadPlaces?.map(({ path }) => path) ?? [];
  assert.ok(unread.includes(below(layout.podDirectory('web' as PodUid), 'volumes')), unread.join());
});

test('beside an orphan, which may be its publication, a staged volume is found, and suspected', async () => {
  const host = disk(
    {
      [published.replace(/mount$/, 'vol_data.json')]: '',
      [`${layout.deviceDirectory(DRIVER, 'data')}/vol_data.json`]: data,
    },
    [published],
  );
  const finds = await reconstruct(
    { host, layout, ground: FIRM_GROUND, known: new Map(), isWanted: () => true },
    'whole',
  );
  assert.deepEqual(finds.volumes.map(({ spec }) => spec.kind).sort(), ['csi', 'orphan']);
  assert.equal(finds.complete, false);
  assert.deepEqual(finds.unknown?.mounts, [{ path: published, device: '0:50', root: '/' }]);
});

test('an orphan with nothing mounted, or where no driver publishes, is no unknown publication', async () => {
  const unknownOf = async (host: Host) =>
    (
      await reconstruct(
        { host, layout, ground: FIRM_GROUND, known: new Map(), isWanted: () => true },
        'whole',
      )
    ).unknown;
  const elsewhere = '/state/pods/web/volumes/kubernetes.io~nfs/share';
  for (const host of [disk({ [`${published}/x`]: '' }), disk({ [`${elsewhere}/x`]: '' }, [elsewhere])]) {
    const unknown = await unknownOf(host);
    assert.deepEqual([unknown?.mounts, unknown?.unread], [[], []]);
  }
});

const LEFT = layout.stagingPath(csi('data'));
const LEFT_PAPER = `${layout.deviceDirectory(DRIVER, 'data')}/vol_data.json`;

for (const [what, path, paper] of [
  ['whose vol_data.json is empty', LEFT, ''],
  ['whose vol_data.json names another volume', LEFT, data.replace('"data"', '"other"')],
  ['of a kubelet before v1.24', '/state/plugins/kubernetes.io/csi/pv/pv-data/globalmount', data],
] as const)
  test(`a staged mount ${what} is told, alone, while it is mounted, and never unpublished`, async () => {
    const papers = { [path.replace(/globalmount$/, 'vol_data.json')]: paper };
    const look = (known: ActualState, mounts: readonly string[]) =>
      reconstruct(
        { host: disk(papers, mounts), layout, ground: FIRM_GROUND, known, isWanted: () => true },
        'whole',
      );
    const { volumes, complete, placesRead, unknown } = await look(new Map(), [path, `${path}/sub`]);
    const [left, ...more] = volumes;
    assert.deepEqual([left?.spec.kind === 'orphan' && left.spec.path, more], [path, []]);
    assert.deepEqual([left?.staged.kind, left?.publications.size], ['unsure', 0]);
    // It is in no pod, so nothing else has to wait for it.
    assert.deepEqual([complete, placesRead, unknown?.mounts, unknown?.unread], [false, true, [], []]);
    assert.ok(left !== undefined);
    const known = new Map([[left.spec.id, left]]);
    const again = await look(known, [path]);
    assert.deepEqual([again.volumes, again.gone, again.complete], [[], [], false]);
    const gone = await look(known, []);
    assert.deepEqual([gone.gone, gone.complete], [[left.spec.id], true]);
  });

test('a staged mount that a volume explains, by its record or its papers, is not told as left', async () => {
  const known = actual('data', { staged: 'present' });
  const world = new Map([[known.spec.id, known]]);
  assert.deepEqual(await found(disk({ [LEFT_PAPER]: '' }, [LEFT, `${LEFT}/sub`]), world), []);
  assert.deepEqual(await found(disk({ [LEFT_PAPER]: data }, [LEFT])), [[csi('data').id, 'unsure', []]]);
  const [left] = await scan(disk({ [LEFT_PAPER]: '' }, [LEFT]));
  assert.ok(left !== undefined);
  world.set(left.spec.id, left);
  const host = disk({ [LEFT_PAPER]: '' }, [LEFT]);
  const { gone, complete } = await reconstruct(
    { host, layout, ground: FIRM_GROUND, known: world, isWanted: () => true },
    'whole',
  );
  assert.deepEqual([gone, complete], [[left.spec.id], true], 'it was wanted again');
});

test('a stage that was taken down while the scan went is not told as left', async () => {
  const known = actual('data', { staged: 'present' });
  const world = new Map([[known.spec.id, known]]);
  const host = disk({ [LEFT_PAPER]: '' }, [LEFT]);
  const { listDirectory } = host;
  host.listDirectory = async (directory, entriesMax) => {
    world.clear();
    host.readMountTable = async () => ok(createMountTable([]));
    return listDirectory(directory, entriesMax);
  };
  assert.deepEqual(await found(host, world), []);
});

test('a staged mount whose papers cannot be read now is not told as left', async () => {
  const host = disk({ [LEFT_PAPER]: data }, [LEFT]);
  host.readFile = async () => fail({ code: 'input-output', message: 'EIO', effect: 'none' });
  assert.deepEqual(await found(host), []);
});

test('a mount whose papers cannot be read now is no orphan: it is unknown, and its driver is asked later', async () => {
  const paper = published.replace(/mount$/, 'vol_data.json');
  const host = disk({ [paper]: data }, [published]);
  host.readFile = async () => fail({ code: 'input-output', message: 'EIO', effect: 'none' });
  const finds = await reconstruct(
    { host, layout, ground: FIRM_GROUND, known: new Map(), isWanted: () => true },
    'whole',
  );
  assert.deepEqual(finds.volumes, []);
  assert.deepEqual([finds.placesRead, finds.complete], [false, false]);
  assert.deepEqual(
    finds.unreadPlaces?.map(({ path }) => path),
    [parentOf(published)],
  );
  assert.deepEqual(finds.unknown?.mounts, [{ path: published, device: '0:50', root: '/' }]);
  assert.deepEqual(finds.unknown?.unread, []);
});

test('RC-18: while somebody’s mount hides what may be a publication, the places are not read', async () => {
  const block = layout.blockPublication(place('web', 'data'));
  const staging = layout.stagingPath(csi('data'));
  for (const [hidden, over] of [
    [published, parentOf(parentOf(published))],
    [block.held, layout.blockDevices],
    [block.published, layout.blockDevices],
    [staging, parentOf(parentOf(staging))],
  ] as const) {
    const table = createMountTable([ROOT_MOUNT, line(20, 1, hidden, { device: '7:1' }), line(21, 1, over)]);
    const host = { ...disk({ [`${layout.pods}/web`]: null }), readMountTable: async () => ok(table) };
    const finds = await reconstruct(
      { host, layout, ground: FIRM_GROUND, known: new Map(), isWanted: () => true },
      'whole',
    );
    assert.deepEqual([finds.placesRead, finds.complete, finds.volumes], [false, false, []], hidden);
    assert.deepEqual(
      [finds.unreadPlaces?.map(({ path }) => path), finds.unknown?.unread.map(({ code }) => code)],
      [[hidden], ['mount-foreign']],
    );
  }
});

test('an orphan of a block volume is known by the number of its device, where there is one', async () => {
  const host = disk({ [block.held]: '' }, [block.held]);
  const unknownOf = async () =>
    (
      await reconstruct(
        { host, layout, ground: FIRM_GROUND, known: new Map(), isWanted: () => true },
        'whole',
      )
    ).unknown;
  assert.deepEqual((await unknownOf())?.unread[0]?.blocker, block.held);
  host.deviceOf = async () => ok('7:3' as DeviceNumber);
  assert.deepEqual((await unknownOf())?.unread, []);
  assert.deepEqual((await unknownOf())?.mounts, [{ path: block.held, device: '7:3', root: '/' }]);
});

test('a readiness marker whose volume is gone is found, so that the pod’s directory can go', async () => {
  const markers = '/state/pods/web/plugins/kubernetes.io~empty-dir';
  const volumes = await scan(disk({ [`${markers}/cache/ready`]: '', [`${markers}/wrapped_keys/ready`]: '' }));
  assert.deepEqual(
    volumes.map(({ spec }) => spec.id),
    ['kubernetes.io/empty-dir/web/cache', 'kubernetes.io/secret/web/keys'],
  );
});

test('a staging directory that says nothing and holds nothing is removed, one that is mounted is not', async () => {
  const removed: string[] = [];
  const directory = layout.deviceDirectory(DRIVER, 'gone');
  for (const [code, expected] of [
    [undefined, [`${directory}/globalmount`, directory]],
    ['mount-busy', []],
  ] as const) {
    const host = disk({ [`${directory}/x`]: '' });
    host.removeFile = async () => ok(undefined);
    host.removeEmptyDirectory = async (path) => {
      if (code !== undefined) return fail({ code, message: '', effect: 'none' });
      removed.push(path);
      return ok(undefined);
    };
    removed.length = 0;
    await scan(host);
    assert.deepEqual(removed, expected);
  }
});

const RAW = { ...csi('raw'), mode: 'Block' } as const;
const block = layout.blockPublication(place('web', 'raw'));
const rawData = JSON.stringify({ driverName: DRIVER, volumeHandle: 'raw', specVolID: 'pv-raw' });
const rawPaper = { [`${block.data}/vol_data.json`]: rawData };
const rawStaging = layout.stagingPath(RAW);

for (const [what, path] of [
  ['its link in the pod', block.link],
  ['the driver’s target', block.published],
  ['our bind of it', block.held],
] as const) {
  test(`a block volume is found by ${what} alone, with its stage, and as a block volume`, async () => {
    const volumes = await scan(disk({ ...rawPaper, [path]: '', [`${rawStaging}/device`]: '' }));
    assert.deepEqual(
      volumes.map(({ spec, needs, staged, publications }) => [
        spec.id,
        spec.kind === 'csi' && [spec.mode, spec.specName],
        needs.stage,
        staged.kind,
        [...publications.keys()],
      ]),
      [[RAW.id, ['Block', 'pv-raw'], true, 'unsure', ['web/pv-raw']]],
    );
  });
}

test('a block volume that is staged in no pod is found by its staging directory', async () => {
  const host = disk({ ...rawPaper, [`${rawStaging}/device`]: '' });
  assert.deepEqual(await found(host), [[RAW.id, 'unsure', []]]);
});

const everything = {
  [block.link]: '',
  [block.published]: '',
  [block.held]: '',
  [`${rawStaging}/device`]: '',
};

test('a block volume that is known is not found again', async () => {
  const known = { ...actual('raw', { staged: 'present', pods: { web: 'present' } }), spec: RAW };
  const world = new Map([[RAW.id, known]]);
  assert.deepEqual(await found(disk({ ...rawPaper, ...everything }), world), []);
  assert.deepEqual(await found(disk(everything, [block.held, block.published]), world), []);
});

test('what is hidden and known, or inside of what is known, is no unknown place', async () => {
  const staging = layout.stagingPath(csi('data'));
  const hidden = [block.held, block.published, staging, below(staging, 'of-its-driver')];
  const table = createMountTable([
    ROOT_MOUNT,
    ...hidden.map((path, index) => line(20 + index, 1, path, { device: '7:1' })),
    line(30, 1, parentOf(layout.blockDevices)),
  ]);
  const raw = { ...actual('raw', { staged: 'present', pods: { web: 'present' } }), spec: RAW };
  const known = new Map([
    [RAW.id, raw],
    [csi('data').id, actual('data', { staged: 'present' })],
  ]);
  const host = { ...disk({ [`${layout.pods}/web`]: null }), readMountTable: async () => ok(table) };
  const finds = await reconstruct(
    { host, layout, ground: FIRM_GROUND, known, isWanted: () => true },
    'whole',
  );
  assert.deepEqual([finds.placesRead, finds.complete, finds.unreadPlaces], [true, true, []]);
});

test('one scan lists no directory twice', async () => {
  const host = disk({ ...rawPaper, ...everything });
  const listed: string[] = [];
  const { listDirectory } = host;
  host.listDirectory = (directory, entriesMax) => {
    listed.push(directory);
    return listDirectory(directory, entriesMax);
  };
  const known = { ...actual('raw', { staged: 'present', pods: { web: 'present' } }), spec: RAW };
  for (const world of [new Map(), new Map([[RAW.id, known]])]) {
    listed.length = 0;
    await scan(host, world);
    assert.ok(listed.includes(layout.blockDevices) && listed.includes(layout.pods));
    assert.deepEqual(
      listed.filter((directory, index) => listed.indexOf(directory) !== index),
      [],
    );
  }
});

for (const [what, paths] of [
  ['is all there', everything],
  ['has only its link', { [block.link]: '' }],
  ['has only the driver’s target', { [block.published]: '' }],
  ['has an empty vol_data.json', { ...everything, [`${block.data}/vol_data.json`]: '' }],
] as const) {
  test(`a block volume that ${what}, and that nothing tells of any more, is one orphan`, async () => {
    const volumes = await scan(disk(paths));
    assert.deepEqual(
      volumes.map(({ spec, staged, publications }) => [
        spec.kind === 'orphan' && spec.path,
        staged.kind,
        [...publications].map(
          ([
            key,
            {
              presence,
              spec: { origin },
            },
          ]) => [key, presence.kind, origin],
        ),
      ]),
      [[block.held, 'absent', [['web/pv-raw', 'unsure', '']]]],
    );
  });
}

test('what is mounted of a block volume is found below a pod that is known, too, and as what it is', async () => {
  const known = actual('data', { pods: { web: 'present' } });
  const strangers = {
    ground: FIRM_GROUND,
    layout,
    known: new Map([[known.spec.id, known]]),
    isWanted: () => true,
  };
  for (const [papers, kind] of [
    [{}, 'orphan'],
    [rawPaper, 'csi'],
  ] as const) {
    for (const mount of [block.held, block.published]) {
      const host = disk({ ...papers, [mount]: '' }, [mount]);
      const finds = await reconstruct({ ...strangers, host }, 'strangers');
      assert.deepEqual(
        finds.volumes.map(({ spec }) => spec.kind),
        [kind],
      );
    }
    const host = disk({ ...papers, [block.held]: '' });
    assert.deepEqual((await reconstruct({ ...strangers, host }, 'strangers')).volumes, []);
  }
});

test('what could be of a volume named as a directory of all volumes is passed over', async () => {
  const { link, published } = layout.blockPublication({ ...place('web', 'x'), specName: 'staging' });
  assert.deepEqual(await found(disk({ [link]: '', [published]: '' }, [published])), []);
});

test('what is left of a block volume in a pod that nobody knows is found with the pod’s other volumes', async () => {
  const paths = {
    ...rawPaper,
    [block.held]: '',
    [published.replace(/mount$/, 'vol_data.json')]: data,
  };
  const strangers = {
    ground: FIRM_GROUND,
    host: disk(paths),
    layout,
    known: new Map(),
    isWanted: () => false,
  };
  const finds = await reconstruct(strangers, 'strangers');
  assert.deepEqual(finds.volumes.map(({ spec }) => spec.id).sort(), [csi('data').id, RAW.id].sort());
  const ours = { ...strangers, isWanted: () => true };
  assert.deepEqual((await reconstruct(ours, 'strangers')).volumes, []);
});

test('an inline volume is found as one: nothing of it is ever detached or unstaged', async () => {
  const inline = JSON.stringify({
    driverName: DRIVER,
    volumeHandle: 'data',
    volumeLifecycleMode: 'Ephemeral',
  });
  const host = disk({
    [published.replace(/mount$/, 'vol_data.json')]: inline,
    [`${layout.deviceDirectory(DRIVER, 'data')}/x`]: '',
  });
  host.removeFile = async () => ok(undefined);
  host.removeEmptyDirectory = async () => ok(undefined);
  const [volume] = await scan(host);
  assert.equal(volume?.spec.kind === 'csi' && volume.spec.lifecycle, 'Ephemeral');
  assert.deepEqual(
    [volume?.needs.stage, volume?.attached.kind, volume?.staged.kind],
    [false, 'absent', 'absent'],
  );
});

test('a place found while its publish was under way is not forgotten when that publish does nothing (INV-1)', () => {
  const operation = {
    kind: 'publish',
    volume: csi('data').id,
    publication: place('web', 'data').key,
  } as const;
  const before = actual('data', { staged: 'present' });
  const begun = begin(before, operation, place('web', 'data'));
  const merged = mergeFound(begun, actual('data', { staged: 'unsure', pods: { web: 'unsure' } }));
  assert.ok(merged);
  const failure = { code: 'no-longer-wanted', message: 'gone', effect: 'none' } as const;
  const learnt = (now: typeof begun) =>
    learn(now, before, operation, { kind: 'failed', failure }).publications.get(operation.publication);
  assert.equal(learnt(merged)?.presence.kind, 'unsure');
  assert.equal(learnt(begun), undefined, 'what nobody found was made by us, and is gone');
});

test('INV-25: nobody knows with which secrets was set up what is found, beside what is known, too', async () => {
  const [volume] = await scan(disk({ [published.replace(/mount$/, 'vol_data.json')]: data }));
  assert.equal(volume?.isInherited, true);
  const merged = mergeFound(
    actual('data', { staged: 'present' }),
    actual('data', { pods: { web: 'unsure' } }),
  );
  assert.equal(merged?.isInherited, true);
});

test('a stage that is found although its driver has ceased to stage is unstaged all the same (seed 15386)', () => {
  const needs = { attach: true, stage: false, expand: false };
  const merged = mergeFound(
    actual('data', { attached: 'present', needs }),
    actual('data', { staged: 'unsure' }),
  );
  assert.deepEqual(merged?.needs, { ...needs, stage: true });
});

test('a place or a stage that is looked at while its operation begins is found all the same (INV-1)', async () => {
  const { id } = csi('data');
  const publish = { kind: 'publish', volume: id, publication: place('web', 'data').key } as const;
  const stage = { kind: 'stage', volume: id } as const;
  const staging = `${layout.deviceDirectory(DRIVER, 'data')}/vol_data.json`;
  const papers = published.replace(/mount$/, 'vol_data.json');
  for (const [path, begun] of [
    [papers, begin(actual('data', { staged: 'present' }), publish, place('web', 'data'))],
    [staging, begin(actual('data', {}), stage, undefined)],
  ] as const) {
    const before = actual('data', { staged: path === papers ? 'present' : 'absent' });
    assert.notDeepEqual(await found(disk({ [path]: data }), new Map([[id, begun]])), [], 'begun before');
    const known = new Map([[id, before]]);
    const host = disk({ [path]: data });
    const { readFile } = host;
    host.readFile = (file, bytesMax) => {
      if (file === path) known.set(id, begun);
      return readFile(file, bytesMax);
    };
    const [volume] = await scan(host, known);
    assert.ok(volume !== undefined && mergeFound(known.get(id), volume) !== undefined, path);
  }
});
