import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fail, ok } from '../../../mount/failure.ts';
import type { MountIdentity } from '../../../mount/host.ts';
import { createMountTable } from '../../../mount/mount-table.ts';
import { NodePublishVolumeRequest } from '../../../plugins/csi/wire/generated/csi.ts';
import { Sensitive } from '../../../plugins/secret/sensitive.ts';
import { mountAt } from '../../reconciler/bench.ts';
import { accept, refuse } from './answers.ts';
import { call, layoutOf, sent, SPEC, STAGED, targetOf, UNSTAGED, up, world } from './csi-world.ts';
import { refusing } from './scripted-driver.ts';

const ABORTED = 10;
const INTERNAL = 13;

test('KV-C9: a republish that fails in the driver has no effect as long as the pod has the same mount', async () => {
  const made = await world();
  await up(made);
  const before = accept(await made.host.mountIdOf(targetOf(made)));
  const removals: string[] = [];
  const { removeEmptyDirectory } = made.host;
  made.host.removeEmptyDirectory = (path) => {
    removals.push(path);
    return removeEmptyDirectory(path);
  };
  made.plan.before = refusing('NodePublishVolume', INTERNAL);
  assert.deepEqual(refuse(await made.plugin.publish(call({ refresh: true }))), {
    code: 'driver-failed',
    effect: 'none',
  });
  assert.deepEqual(removals, [], "the pod's directories are in use");
  assert.equal(accept(await made.host.mountIdOf(targetOf(made))), before);
  assert.deepEqual(refuse(await made.plugin.publish(call())), { code: 'driver-failed', effect: 'unknown' });
});

test('DR-07, MT-08: on a full disk the driver is asked all the same, and the pod gets its new tokens', async () => {
  const made = await world();
  await up(made);
  made.host.called.splice(0);
  made.host.writeFile = async () => fail({ code: 'disk-full', message: 'ENOSPC', effect: 'none' });
  const tokens = new Sensitive('{"":{"token":"next","expirationTimestamp":"2036-01-01T00:00:00Z"}}');
  accept(await made.plugin.publish(call({ refresh: true, tokens })));
  assert.deepEqual(made.host.called, ['NodePublishVolume']);
  const [, published] = sent(made, 'NodePublishVolume', NodePublishVolumeRequest);
  assert.equal(published?.volumeContext['csi.storage.k8s.io/serviceAccount.tokens'], tokens.reveal());
});

test('what a directory says of its volume is mended by a republish', async () => {
  const made = await world();
  await up(made);
  const paper = join(layoutOf(made).volumeDirectory(SPEC, call().publication), 'vol_data.json');
  const whole = readFileSync(paper, 'utf8');
  writeFileSync(paper, '');
  accept(await made.plugin.publish(call({ refresh: true })));
  assert.equal(readFileSync(paper, 'utf8'), whole);
});

test('issue 7, 12: a republish of what hangs looks through no mount, and takes nothing from the pod', async () => {
  const made = await world();
  const { stagedMount } = accept(await made.plugin.stage(call()));
  assert.ok(stagedMount !== undefined);
  const again = () => made.plugin.publish(call({ refresh: true, facts: { ...STAGED, stagedMount } }));
  accept(await again());
  const looked: string[] = [];
  const { lookUpMount } = made.host;
  made.host.lookUpMount = (path) => {
    looked.push(path);
    return lookUpMount(path);
  };
  made.host.probeFileSystem = async () => ok({ kind: 'silent' });
  made.host.called.splice(0);
  assert.deepEqual(refuse(await again()), { code: 'deadline-passed', effect: 'none' });
  assert.deepEqual([looked, made.host.called], [[], []]);
  made.host.probeFileSystem = async () => ok({ kind: 'dead', cause: 'input-output' });
  accept(await again());
});

test('KV-C9: one that was never answered, or found nobody there, has none either, and walks nothing', async () => {
  const made = await world({}, { deadlineMs: 500 });
  await up(made);
  const before = accept(await made.host.mountIdOf(targetOf(made)));
  const walks: string[] = [];
  made.host.changeOwnership = async ({ path }) => {
    walks.push(path);
    return ok({ seen: 1, changed: 0, refused: 0 });
  };
  const again = () =>
    made.plugin.publish(call({ refresh: true, fsGroup: { gid: 2_000, changePolicy: 'Always' } }));
  made.plan.before = () => new Promise(() => {});
  assert.deepEqual(refuse(await again()), { code: 'driver-deadline', effect: 'none' });
  made.plan.before = refusing('NodePublishVolume', ABORTED);
  assert.deepEqual(refuse(await again()), { code: 'driver-busy', effect: 'none' });
  await made.server.close();
  assert.deepEqual(refuse(await again()), { code: 'driver-unreachable', effect: 'none' });
  assert.equal(accept(await made.host.mountIdOf(targetOf(made))), before);
  assert.deepEqual(walks, []);
});

test('KV-C9: one that took the mount away, or began without one, is in doubt', async () => {
  const made = await world();
  await up(made);
  made.plan.before = (method) => {
    if (method !== 'NodePublishVolume') return;
    made.host.mounts.delete(targetOf(made));
    refusing(method, INTERNAL)(method);
  };
  const inDoubt = { code: 'driver-failed', effect: 'unknown' };
  assert.deepEqual(refuse(await made.plugin.publish(call({ refresh: true }))), inDoubt);
  assert.deepEqual(refuse(await made.plugin.publish(call({ refresh: true }))), inDoubt, 'it is gone');
});

test('INV-3, DR-11: a pod keeps the dead mount that it was told of, and gets no other dead one', async () => {
  const made = await world();
  const { mount } = accept(await made.plugin.publish(call({ facts: UNSTAGED })));
  assert.ok(mount !== undefined);
  const walks: string[] = [];
  made.host.changeOwnership = async ({ path }) => {
    walks.push(path);
    return ok({ seen: 1, changed: 0, refused: 0 });
  };
  const { lookUpMount } = made.host;
  made.host.lookUpMount = async (path) => {
    const seen = await lookUpMount(path);
    return seen.ok && seen.value.mounted ? ok({ ...seen.value, death: 'input-output' }) : seen;
  };
  const doubted = { facts: UNSTAGED, isDoubted: true } as const;
  const again = (known: typeof mount | undefined) => made.plugin.publish(call({ ...doubted, mount: known }));
  assert.deepEqual(accept(await again(mount)).mount, mount);
  assert.deepEqual(walks, [], 'nobody can walk what is dead');
  const dead = { code: 'file-system-dead', effect: 'unknown' };
  assert.deepEqual(refuse(await again(undefined)), dead);
  // Another one that has its number now: another was mounted, or none, when the driver was called.
  for (const left of [undefined, { ...mount, mountId: mount.mountId + 1 }]) {
    const target = targetOf(made);
    if (left === undefined) made.host.mounts.delete(target);
    else made.host.mounts.set(target, left);
    made.plan.before = async () => {
      made.host.mounts.set(target, mount);
      return undefined;
    };
    assert.deepEqual(refuse(await again(mount)), dead);
  }
});

test('DR-11: one that failed says whether anything was mounted there when it began (seed 1184371092)', async () => {
  const made = await world();
  const { lookUpMount } = made.host;
  const tryOnce = async () => {
    made.host.lookUpMount = async () => fail({ code: 'input-output', message: 'EIO', effect: 'none' });
    const published = await made.plugin.publish(call({ facts: UNSTAGED }));
    made.host.lookUpMount = lookUpMount;
    return published.ok ? undefined : published.failure;
  };
  const [first, second] = [await tryOnce(), await tryOnce()];
  assert.deepEqual([first?.effect, first?.wasBare], ['unknown', true]);
  assert.deepEqual([second?.effect, second?.wasBare], ['unknown', undefined], 'the first has mounted it');
});

test('DR-11: a pod keeps a dead one that was mounted once more over what it was told of (772529600)', async () => {
  const made = await world();
  const { mount } = accept(await made.plugin.publish(call({ facts: UNSTAGED })));
  assert.ok(mount !== undefined);
  const target = targetOf(made);
  const newer = { ...mount, mountId: mount.mountId + 1 };
  made.host.mounts.set(target, newer);
  const { lookUpMount } = made.host;
  made.host.lookUpMount = async (path) => {
    const seen = await lookUpMount(path);
    return seen.ok && seen.value.mounted ? ok({ ...seen.value, death: 'input-output' }) : seen;
  };
  const again = (layers: readonly MountIdentity[]) => {
    const stack = layers.map((layer, index) => {
      return { ...mountAt(target), ...layer, parentId: layers[index - 1]?.mountId ?? 1 };
    });
    made.host.readMountTable = async () => ok(createMountTable(stack));
    return made.plugin.publish(call({ facts: UNSTAGED, isDoubted: true, mount }));
  };
  assert.deepEqual(accept(await again([mount, newer])).mount, newer);
  // In this very call (seed 911391372).
  made.host.mounts.set(target, mount);
  made.plan.before = async () => {
    made.host.mounts.set(target, newer);
    return undefined;
  };
  assert.deepEqual(accept(await again([mount, newer])).mount, newer);
  made.plan.before = () => undefined;
  const dead = { code: 'file-system-dead', effect: 'unknown' };
  const other = { mountId: mount.mountId + 2, device: '0:99' };
  // It is gone, its number is another's, or something else was between them.
  for (const layers of [[newer], [{ ...mount, device: '0:99' }, newer], [mount, other, newer]])
    assert.deepEqual(refuse(await again(layers)), dead, JSON.stringify(layers));
});

test('DR-11: read-only where the same file system was staged writable, it is dead, however published', async () => {
  const made = await world();
  const { stagedMount } = accept(await made.plugin.stage(call()));
  assert.ok(stagedMount !== undefined);
  const { lookUpMount } = made.host;
  made.host.lookUpMount = async (path) => {
    const seen = await lookUpMount(path);
    const isTarget = path === targetOf(made) && seen.ok && seen.value.mounted;
    return isTarget ? ok({ ...seen.value, device: stagedMount.device, readOnly: true }) : seen;
  };
  // It stages no more, so nobody looks at what was staged.
  const needs = { ...STAGED.needs, stage: false };
  const publish = (readOnly: boolean, staged = stagedMount) => {
    const { publication } = call();
    const facts = { ...STAGED, needs, stagedMount: staged };
    return made.plugin.publish(call({ facts, publication: { ...publication, readOnly } }));
  };
  assert.deepEqual(refuse(await publish(false)), { code: 'file-system-dead', effect: 'unknown' });
  const { mount } = accept(await publish(true));
  accept(await made.plugin.publish(call({ facts: { ...STAGED, needs, stagedMount }, mount })));
  accept(await publish(false, { ...stagedMount, readOnly: true }));
  accept(await publish(false, { ...stagedMount, device: '7:99' }));
});

test('DR-11: what an error made read-only before the first look is dead (seed 478086943)', async () => {
  const seenAs = async (turned: object) => {
    const made = await world();
    const { lookUpMount } = made.host;
    made.host.lookUpMount = async (path) => {
      const seen = await lookUpMount(path);
      return seen.ok && seen.value.mounted ? ok({ ...seen.value, ...turned }) : seen;
    };
    return made.plugin;
  };
  const dead = { code: 'file-system-dead', effect: 'unknown' };
  const turned = { readOnly: true, turnedReadOnly: true };
  assert.deepEqual(refuse(await (await seenAs(turned)).stage(call())), dead);
  assert.deepEqual(refuse(await (await seenAs(turned)).publish(call({ facts: UNSTAGED }))), dead);
  const { publication } = call();
  const toRead = { facts: UNSTAGED, publication: { ...publication, readOnly: true } };
  accept(await (await seenAs(turned)).publish(call(toRead)));
  const forReaders = { spec: { ...SPEC, accessModes: ['ReadOnlyMany' as const] } };
  accept(await (await seenAs(turned)).stage(call(forReaders)));
  const asMade = accept(await (await seenAs({ readOnly: true })).stage(call()));
  assert.equal(asMade.stagedMount?.readOnly, true, 'a driver may mount it so');
});
