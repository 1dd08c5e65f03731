/** Parts of volumes of pods: bound with the volume, and gone before it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTurns } from '../../../mount/process/turns.ts';
import { FIRM_GROUND } from '../../../mount/ground.ts';
import { type AbsolutePath, below } from '../../../mount/host.ts';
import { traitsOf } from '../../../plugins/kinds/kinds.ts';
import type { PublicationCall, VolumePlugin } from '../../../plugins/plugin.ts';
import { orphanAt } from '../../../plugins/kinds/found-volume.ts';
import { createOrphanPlugin } from '../../../plugins/orphan/orphan.ts';
import { createContentPlugin } from '../../../plugins/pod/content.ts';
import { createEmptyDirPlugin } from '../../../plugins/pod/empty-dir.ts';
import { bindSubpaths } from '../../../plugins/subpath/subpath-plugin.ts';
import { RECONSTRUCTED, type Subpath, type VolumeSpec } from '../../../plugins/volume.ts';
import { pluginContract } from '../../contract/plugin.ts';
import { accept } from '../accept.ts';
import {
  callOf,
  content,
  emptyDir,
  type Files,
  freshHost,
  layout,
  type LocalWorld,
  mounterOf,
  POD_DIRECTORY,
  worldOf,
} from '../local-world.ts';
import type { MemoryHost } from '../memory-host.ts';

const PARTS: readonly Subpath[] = [
  { container: 'web', index: 1, path: 'logs/web' },
  { container: 'init', index: 0, path: 'logs' },
];
/** In which the other volume does all that it can. */
const TURNS = 100;
const FILE: readonly Subpath[] = [{ container: 'web', index: 0, path: 'key' }];

function withParts(
  spec: VolumeSpec,
  subpaths: readonly Subpath[] | undefined,
  files?: Files,
): PublicationCall {
  const call = callOf(spec, files);
  const { subpaths: _, ...publication } = call.publication;
  return { ...call, publication: subpaths === undefined ? publication : { ...publication, subpaths } };
}

/** As in an agent, where all kinds share them. */
const turns = createTurns();

function wrapped(on: MemoryHost, spec: VolumeSpec): VolumePlugin {
  const mounter = mounterOf(on);
  const plugin =
    spec.kind === 'empty-dir'
      ? createEmptyDirPlugin(on, layout, mounter)
      : createContentPlugin(spec.kind === 'secret' ? 'secret' : 'config-map', on, layout, mounter);
  const traits = traitsOf(spec);
  return bindSubpaths({ host: on, layout, ground: FIRM_GROUND, mounter, traits, turns }, plugin);
}

function world(call: PublicationCall, host: MemoryHost = freshHost()): LocalWorld {
  return worldOf(
    call,
    (on) => wrapped(on, call.spec),
    (on) => on.describe(POD_DIRECTORY),
    host,
  );
}

const disk = () => world(withParts(emptyDir('disk'), PARTS));
const settings = (host?: MemoryHost) =>
  world(withParts(content('config-map'), FILE, { key: 'one', other: 'x' }), host);

pluginContract('emptyDir with parts', () => disk());
pluginContract('configMap with a part', () => settings());

const placeOf = (
  call: PublicationCall,
  { container, index }: Pick<Subpath, 'container' | 'index'>,
): AbsolutePath => layout.subpath(call.publication, { container, index });
const [LOGS, ALL] = PARTS as [Subpath, Subpath];

test('parts are made in the volume and bound where the kubelet has them', async () => {
  const { host, target, plugin, call } = disk();
  accept(await plugin().publish(call));
  assert.equal(placeOf(call, LOGS), `${POD_DIRECTORY}/volume-subpaths/cache/web/1`);
  host.plant(`${target}/logs/web/line`, { kind: 'file', content: 'written' });
  assert.equal(host.read(`${placeOf(call, LOGS)}/line`), 'written');
  assert.equal(host.read(`${placeOf(call, ALL)}/web/line`), 'written');
  accept(await plugin().publish(call));
  for (const part of PARTS) assert.equal(host.depthAt(placeOf(call, part)), 1);
});

test('DL-04: the parts are gone before the volume goes, and one that is busy keeps the volume', async () => {
  const { host, plugin, call, target } = disk();
  accept(await plugin().publish(call));
  host.plant(`${placeOf(call, LOGS)}/in/use`, { kind: 'directory' });
  host.plantMount(`${placeOf(call, LOGS)}/in/use`, 'tmpfs');
  const refused = await plugin().unpublish(call);
  assert.equal(refused.ok ? 'ok' : refused.failure.code, 'mount-busy');
  assert.ok(host.names(target).includes('logs'), 'the volume is as it was');
  accept(await host.unmount(below(placeOf(call, LOGS), 'in', 'use')));
  const order: string[] = [];
  const seen = host.unmount;
  host.unmount = (path, walked) => {
    order.push(path);
    assert.ok(host.names(target).includes('logs'));
    return seen(path, walked);
  };
  accept(await plugin().unpublish(call));
  assert.deepEqual(order.toSorted(), PARTS.map((part) => placeOf(call, part)).toSorted());
  assert.deepEqual(host.describe(POD_DIRECTORY), []);
});

test('DL-04: not wanted for a moment, a teardown leaves the volume with its parts (seed 478141128)', async () => {
  const { host, plugin, call, target } = disk();
  accept(await plugin().publish(call));
  const before = host.describe(POD_DIRECTORY);
  const wishes = [false];
  const answer = await plugin().unpublish({ ...call, stillWanted: () => wishes.shift() ?? true });
  assert.equal(answer.ok ? 'ok' : answer.failure.code, 'no-longer-wanted');
  assert.deepEqual(host.describe(POD_DIRECTORY), before);
  assert.ok(host.names(target).includes('logs'));
});

test('what is not wanted any more goes, and what changed its path is bound anew', async () => {
  const { host, plugin, call } = disk();
  accept(await plugin().publish(call));
  const less = withParts(call.spec, [{ ...LOGS, path: 'elsewhere' }]);
  accept(await plugin().publish(less));
  host.plant(`${placeOf(call, LOGS)}/f`, { kind: 'file', content: 'there' });
  assert.equal(host.read(`${layout.target(call.spec, call.publication)}/elsewhere/f`), 'there');
  assert.deepEqual(host.names(layout.subpathDirectory(call.publication)), ['web']);
  accept(await plugin().publish(withParts(call.spec, [])));
  assert.equal(host.depthAt(placeOf(call, LOGS)), 0);
  assert.deepEqual(host.names(layout.subpathDirectory(call.publication)), []);
});

test('a file of a configMap that was refreshed is bound anew, and its new content is seen', async () => {
  const { host, plugin, call } = settings();
  accept(await plugin().publish(call));
  const place = placeOf(call, FILE[0] as Subpath);
  assert.equal(host.read(place), 'one');
  accept(await plugin().publish(withParts(call.spec, FILE, { key: 'two', other: 'x' })));
  assert.deepEqual([host.read(place), host.depthAt(place)], ['two', 1]);
  accept(await plugin().unpublish(call));
  assert.deepEqual(host.describe(POD_DIRECTORY), []);
});

test('whether the binds of a refreshed volume are of its files is not sure before it is published', async () => {
  const { plugin, call } = settings();
  accept(await plugin().publish(call));
  assert.equal(await plugin().isUpToDate?.(call), false);
  const whole = withParts(content('config-map'), undefined, { key: 'one', other: 'x' });
  assert.equal(await plugin().isUpToDate?.(whole), true);
});

test('a key that a configMap does not have is no empty directory, and the volume is in doubt till then', async () => {
  const { host, plugin, call } = settings();
  const wanted = [{ container: 'web', index: 3, path: 'absent' }];
  const refused = await plugin().publish(withParts(call.spec, wanted, { key: 'one' }));
  assert.ok(!refused.ok);
  assert.deepEqual([refused.failure.code, refused.failure.effect], ['subpath-missing', 'unknown']);
  assert.match(refused.failure.message, /^container web, volumeMounts\[3\], sub-path "absent": /);
  assert.equal(host.depthAt(placeOf(call, wanted[0] as Subpath)), 0);
  accept(await plugin().publish(withParts(call.spec, wanted, { absent: 'now' })));
  assert.equal(host.read(placeOf(call, wanted[0] as Subpath)), 'now');
});

test('binds that no record tells of go with a volume that was found on disk', async () => {
  const { host, plugin, call } = disk();
  accept(await plugin().publish(call));
  const found = withParts(call.spec, undefined);
  accept(
    await plugin().unpublish({ ...found, publication: { ...found.publication, origin: RECONSTRUCTED } }),
  );
  assert.deepEqual(host.describe(POD_DIRECTORY), []);
});

test('MT-15: what somebody mounted over a bind is not taken down, and is named', async () => {
  const { host, plugin, call } = disk();
  accept(await plugin().publish(call));
  host.plantMount(placeOf(call, LOGS), 'tmpfs');
  const refused = await plugin().unpublish(call);
  assert.equal(refused.ok ? 'ok' : refused.failure.code, 'mount-stacked');
  assert.equal(host.depthAt(placeOf(call, LOGS)), 2);
});

test('MT-15: one that leaves while the table is read is not mistaken for the part that he lay over', async () => {
  const { host, plugin, call } = disk();
  accept(await plugin().publish(call));
  const place = placeOf(call, LOGS);
  const before = await host.mountIdOf(place);
  host.plantMount(place, 'tmpfs');
  const { readMountTable: read, unmount } = host;
  host.readMountTable = async (about) => {
    host.readMountTable = read;
    accept(await unmount(place));
    return read(about);
  };
  const taken: string[] = [];
  host.unmount = (path, walked) => {
    taken.push(path);
    return unmount(path, walked);
  };
  accept(await plugin().publish(call));
  assert.equal(host.readMountTable, read, 'he has left');
  assert.deepEqual([taken, await host.mountIdOf(place)], [[], before]);
});

test('what was written into an empty place of a bind is kept and told', async () => {
  const { host, plugin, call } = settings();
  accept(await plugin().publish(call));
  const place = placeOf(call, FILE[0] as Subpath);
  accept(await host.unmount(place));
  host.plant(place, { kind: 'file', content: 'somebody wrote' });
  const refused = await plugin().unpublish(call);
  assert.equal(refused.ok ? 'ok' : refused.failure.code, 'directory-not-empty');
  assert.equal(host.read(place), 'somebody wrote');
});

test('a place without parts costs no call', async () => {
  const plain = world(withParts(emptyDir('disk'), undefined));
  const bare = createEmptyDirPlugin(plain.host, layout, mounterOf(plain.host));
  accept(await bare.publish(plain.call));
  accept(await bare.unpublish(plain.call));
  const calls = plain.host.calls();
  accept(await plain.plugin().publish(plain.call));
  accept(await plain.plugin().unpublish(plain.call));
  assert.equal(plain.host.calls(), 2 * calls);
});

/** Two volumes of one name in one pod, the files of a Secret and an emptyDir, and what each knows of the other. */
function namesakes() {
  const first = disk();
  const host = first.host;
  const own = withParts(emptyDir('memory'), [LOGS]);
  const secret = withParts({ ...content('secret'), name: 'cache' } as VolumeSpec, FILE, { key: 'one' });
  const of = ({ spec, publication }: PublicationCall) => [{ spec, publication }];
  return {
    host,
    own: { ...own, namesakes: () => of(secret) },
    secret: { ...secret, namesakes: () => of(own) },
    emptyDir: world(own, host).plugin(),
    content: world(secret, host).plugin(),
  };
}

test('of two volumes of one name each binds its own parts, and takes down no others', async () => {
  const { host, own, secret, emptyDir: memory, content: files } = namesakes();
  const places = [placeOf(own, LOGS), placeOf(secret, FILE[0] as Subpath)] as const;
  const depths = () => places.map(host.depthAt);
  accept(await memory.publish(own));
  accept(await files.publish(secret));
  assert.deepEqual(depths(), [1, 1]);
  accept(await memory.publish(own));
  accept(await files.publish(secret));
  assert.deepEqual(depths(), [1, 1]);
  accept(await memory.unpublish(own));
  assert.deepEqual(depths(), [0, 1]);
  assert.equal(host.read(places[1]), 'one');
  accept(await files.unpublish(secret));
  assert.deepEqual(host.describe(POD_DIRECTORY), []);
});

test('one that was found on disk takes down what is of it, and nothing of the one that is wanted', async () => {
  const { host, own, secret, emptyDir: memory, content: files } = namesakes();
  accept(await memory.publish(own));
  accept(await files.publish(secret));
  const { subpaths: _, ...unknown } = own.publication;
  const found = { ...own, publication: { ...unknown, origin: RECONSTRUCTED } };
  accept(await memory.unpublish(found));
  assert.deepEqual(
    [host.depthAt(placeOf(own, LOGS)), host.read(placeOf(secret, FILE[0] as Subpath))],
    [0, 'one'],
  );
});

test('a place that the wish has for a part is taken from a volume of the same name', async () => {
  const { host, own, secret, emptyDir: memory, content: files } = namesakes();
  const same = [{ ...(FILE[0] as Subpath), path: 'logs' }];
  const before = withParts(own.spec, same);
  accept(await memory.publish({ ...before, namesakes: secret.namesakes }));
  accept(await files.publish({ ...secret, namesakes: () => [before] }));
  const place = placeOf(secret, FILE[0] as Subpath);
  assert.deepEqual([host.read(place), host.depthAt(place)], ['one', 1]);
  accept(await memory.unpublish({ ...before, namesakes: () => [secret] }));
  assert.deepEqual([host.read(place), host.depthAt(place)], ['one', 1]);
});

test('a bind that is made while a volume of the same name goes is not taken for that of before', async () => {
  const { host, own, secret, emptyDir: memory, content: files } = namesakes();
  const before = withParts(own.spec, [{ ...(FILE[0] as Subpath), path: 'logs' }]);
  accept(await memory.publish(before));
  const read = host.readMountTable;
  let published: ReturnType<VolumePlugin['publish']> | undefined;
  host.readMountTable = async (about) => {
    const table = await read(about);
    host.readMountTable = read;
    published = files.publish({ ...secret, namesakes: () => [before] });
    for (let turn = 0; turn < TURNS; turn += 1) await new Promise(setImmediate);
    return table;
  };
  accept(await memory.unpublish({ ...before, namesakes: () => [secret] }));
  accept((await published) ?? assert.fail('the table was not read'));
  const place = placeOf(secret, FILE[0] as Subpath);
  assert.deepEqual([host.read(place), host.depthAt(place)], ['one', 1]);
});

test('DL-15: of a volume that is not mounted any more nothing is bound, and nothing is made below it', async () => {
  const { host, plugin, call } = world(withParts(emptyDir('memory'), PARTS));
  const target = layout.target(call.spec, call.publication);
  const bind = host.bindPart;
  host.bindPart = async (request) => {
    host.bindPart = bind;
    accept(await host.unmount(target));
    return bind(request);
  };
  const refused = await plugin().publish(call);
  assert.deepEqual(refused.ok ? 'ok' : [refused.failure.code, refused.failure.effect], [
    'mount-lost',
    'unknown',
  ]);
  assert.deepEqual(host.names(target), []);
  accept(await plugin().publish(call));
  accept(await plugin().unpublish(call));
  assert.deepEqual(host.describe(POD_DIRECTORY), []);
});

test('a bind that nobody knew goes by itself, unless a volume has come that it is of', async () => {
  const { host, plugin, call } = disk();
  accept(await plugin().publish(call));
  const path = placeOf(call, LOGS);
  const mounter = mounterOf(host);
  const orphan = bindSubpaths(
    { host, layout, ground: FIRM_GROUND, mounter, traits: traitsOf(call.spec), turns },
    createOrphanPlugin(host, layout, mounter),
  );
  const found = { ...callOf(orphanAt(path)), publication: { ...call.publication, origin: RECONSTRUCTED } };
  accept(await orphan.unpublish({ ...found, namesakes: () => [call] }));
  assert.equal(host.depthAt(path), 1);
  accept(await orphan.unpublish(found));
  assert.deepEqual([host.depthAt(path), host.depthAt(placeOf(call, ALL))], [0, 1]);
});
