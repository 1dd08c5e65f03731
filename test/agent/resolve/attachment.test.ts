/** VolumeAttachments: what an attach/detach controller says of a volume of this node, and what that comes to. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wholly } from '../../../mount/process/slices.ts';
import { desire } from '../../../agent/resolve/desired-state-populator.ts';
import { csiVolumeId } from '../../../plugins/volume.ts';
import type { Failure } from '../../../mount/failure.ts';
import { CAPABILITY } from '../../plugins/csi/scripted-driver.ts';
import { blockedIn, DATA, STAND_ALONE, volumeOf } from '../desired.ts';
import { agentWorld, until, untilSettled } from '../duties-world.ts';
import {
  attachmentYaml,
  claimSource,
  claimYaml,
  csiDriverYaml,
  onlyRejection,
  podYaml,
  volumeYaml,
  wishOf,
} from '../manifests.ts';

const DRIVER = 'test.csi.example';
const BASE = {
  'claim.yaml': claimYaml('data'),
  'pod.yaml': podYaml('web', { data: claimSource('data') }),
  'volume.yaml': volumeYaml('pv-data'),
};
const LOST = attachmentYaml('a', '{attached: false}');

function stateOf(files: Readonly<Record<string, string>>) {
  return wholly(desire(wishOf({ ...BASE, ...files }), STAND_ALONE));
}

/** What is said of the one volume, by these documents together. */
function saidBy(...documents: readonly string[]): { readonly lost: boolean; readonly blocked?: Failure } {
  const files = Object.fromEntries(documents.map((text, index) => [`z${index}.yaml`, text]));
  const state = stateOf(files);
  const { blocked } = volumeOf(state, DATA);
  return { lost: state.lostAttachments.has(DATA), ...(blocked === undefined ? {} : { blocked }) };
}

const NOTHING = { lost: false };

test('a VolumeAttachment is its driver, node, PersistentVolume and what its status says', () => {
  const read = (yaml: string) => {
    const wish = wishOf({ 'volume.yaml': volumeYaml('pv-data'), 'a.yaml': yaml });
    assert.deepEqual(wish.rejected, []);
    const { attached, attachError, deleted, ...about } = wish.attachments.get('a') ?? assert.fail();
    assert.deepEqual([about.attacher, about.nodeName, about.volumeName], [DRIVER, 'node-1', 'pv-data']);
    return [attached, attachError, deleted];
  };
  assert.deepEqual(read(attachmentYaml('a', '')), [undefined, undefined, false]);
  assert.deepEqual(read(attachmentYaml('a', '{attached: true}')), [true, undefined, false]);
  assert.deepEqual(
    read(
      attachmentYaml('a', '{attached: false, attachError: {message: no path}}', {
        metadata: 'deletionTimestamp: "2026-11-21T10:00:00Z"',
      }),
    ),
    [false, 'no path', true],
  );
});

test('a refused field of a VolumeAttachment is named, with what would be right', () => {
  const yes = '{attached: true}';
  const cases: readonly (readonly [yaml: string, rejection: RegExp])[] = [
    [attachmentYaml('a', yes, { attacher: 'a/b' }), /^spec\.attacher: expected the name of a CSI driver/],
    [attachmentYaml('a', yes, { attacher: '' }), /^spec\.attacher: is missing/],
    [attachmentYaml('a', yes, { node: 'Node_1' }), /^spec\.nodeName: expected a name of lower-case/],
    [attachmentYaml('a', yes, { source: '' }), /^spec\.source\.persistentVolumeName: is missing/],
    [attachmentYaml('a', yes, { volume: '../x' }), /^spec\.source\.persistentVolumeName: expected a name/],
    [
      attachmentYaml('a', yes, { source: 'inlineVolumeSpec: {csi: {driver: x.y}}' }),
      /^spec\.source\.inlineVolumeSpec: is not supported; only persistentVolumeName is/,
    ],
    [attachmentYaml('a', '{}'), /^status\.attached: is missing; expected true or false/],
    [attachmentYaml('a', '{attached: "false"}'), /^status\.attached: expected true or false, without quotes/],
    [attachmentYaml('a', '{attached: no}'), /^status\.attached: expected true or false/],
    [attachmentYaml('a', 'detached'), /^status: expected a mapping/],
    [
      attachmentYaml('a', '{attached: true, attachError: broken}'),
      /^status\.attachError: expected a mapping/,
    ],
    [
      attachmentYaml('a', '{attached: true, attachError: {message: 5}}'),
      /^status\.attachError\.message: expected/,
    ],
  ];
  for (const [yaml, rejection] of cases)
    assert.match(onlyRejection(wishOf({ 'a.yaml': yaml })), rejection, yaml);
  const other = LOST.replace('k8s.io/v1', 'k8s.io/v1beta1');
  assert.match(
    onlyRejection(wishOf({ 'a.yaml': other })),
    /^apiVersion: .*v1beta1" is not storage\.k8s\.io\/v1/,
  );
  assert.equal(saidBy(other).blocked?.code, 'not-attached');
});

test('B-2: attached: false for this node, its volume and its driver means that the attachment is lost', () => {
  const { lost, blocked } = saidBy(LOST);
  assert.equal(lost, true);
  assert.equal(blocked?.code, 'not-attached');
  assert.match(
    saidBy(attachmentYaml('a', '{attached: false, attachError: {message: no path}}')).blocked?.message ?? '',
    /^VolumeAttachment a \(z0\.yaml#1\) says that it is not attached to this node: no path$/,
  );
});

test('one that is attached, still being attached, of another node, volume or driver says nothing', () => {
  const elsewhere = [{ node: 'node-2' }, { attacher: 'other.csi' }, { volume: 'pv-other' }];
  assert.deepEqual(saidBy(attachmentYaml('a', '{attached: true}')), NOTHING);
  assert.deepEqual(saidBy(attachmentYaml('a', '')), NOTHING);
  for (const one of elsewhere)
    assert.deepEqual(saidBy(attachmentYaml('a', '{attached: false}', one)), NOTHING);
});

test('of several for one volume and node any attached: false wins, in whatever order', () => {
  const yes = attachmentYaml('yes', '{attached: true}');
  const no = attachmentYaml('no', '{attached: false}');
  const going = attachmentYaml('going', '{attached: true}', { metadata: 'deletionTimestamp: "x"' });
  for (const documents of [
    [yes, no, going],
    [no, yes, going],
    [going, yes, no],
  ])
    assert.equal(saidBy(...documents).lost, true);
});

test('AP-09: while one is being deleted nothing is set up, and what stands is left alone', () => {
  const going = attachmentYaml('a', '{attached: true}', { metadata: 'deletionTimestamp: "x"' });
  assert.match(
    blockedIn(stateOf({ 'a.yaml': going })),
    /^not-attached: VolumeAttachment a \(a\.yaml#1\) is being deleted$/,
  );
  assert.equal(saidBy(going).lost, false);
});

test('a refused one is not known, and not known is not attached; the rest goes on', () => {
  const bad = attachmentYaml('a', '{attached: maybe}');
  const more = {
    'more.yaml': [podYaml('more', { v: claimSource('more') }), claimYaml('more'), volumeYaml('pv-more')].join(
      '---\n',
    ),
  };
  const state = stateOf({ 'a.yaml': bad, ...more });
  assert.deepEqual([state.unresolved, state.frozenPods.size], [[], 0]);
  const [data, other] = [volumeOf(state, DATA), volumeOf(state, csiVolumeId(DRIVER, 'handle-pv-more'))];
  assert.match(
    data.blocked?.message ?? '',
    /^VolumeAttachment a was refused \(a\.yaml#1, status\.attached: expected/,
  );
  assert.deepEqual(
    [data.blocked?.code, state.lostAttachments.size, other.blocked],
    ['not-attached', 0, undefined],
  );
  assert.deepEqual(saidBy(attachmentYaml('a', '{attached: maybe}', { node: 'node-2' })), NOTHING);
  const namesake = { 'a.yaml': attachmentYaml('a', '{attached: true}'), 'b.yaml': LOST };
  assert.match(
    blockedIn(stateOf(namesake)),
    /VolumeAttachment a was refused \(b\.yaml#1, a\.yaml#1 has one of/,
  );
});

test('one that says nothing here is remarked upon, and of a driver that attaches nothing ignored', () => {
  const remark = (files: Readonly<Record<string, string>>) => onlyRejection(wishOf({ ...BASE, ...files }));
  const detached = csiDriverYaml(DRIVER, '{attachRequired: false}');
  assert.match(
    remark({ 'a.yaml': LOST, 'd.yaml': detached }),
    /^spec\.attacher: ignored: CSIDriver .* attachRequired: false$/,
  );
  assert.deepEqual(saidBy(LOST, detached), NOTHING);
  assert.deepEqual(saidBy(attachmentYaml('a', '{attached: 5}'), detached), NOTHING);
  const of = (parts: Parameters<typeof attachmentYaml>[2]) => ({ 'a.yaml': attachmentYaml('a', '', parts) });
  assert.match(remark(of({ attacher: 'x.y' })), /^spec\.attacher: ignored: x\.y is not the driver of/);
  assert.match(
    remark(of({ volume: 'nope' })),
    /persistentVolumeName: ignored: there is no PersistentVolume nope$/,
  );
});

test('FN-01: an attachment is told by its uid; one that is leaving comes last, one without a uid says none', () => {
  const uidsOf = (...documents: readonly string[]) =>
    stateOf(Object.fromEntries(documents.map((text, index) => [`z${index}.yaml`, text]))).attachmentUids.get(
      DATA,
    );
  const one = (uid: string, more = '') =>
    attachmentYaml(uid, '{attached: true}', { metadata: `uid: ${uid}, ${more}` });
  assert.deepEqual(uidsOf(one('b')), ['b']);
  assert.deepEqual(uidsOf(one('b'), one('a', 'deletionTimestamp: "2026-11-21T10:00:00Z"')), ['b', 'a']);
  assert.deepEqual(uidsOf(one('b'), one('a'), attachmentYaml('none', '')), ['a', 'b']);
  assert.equal(uidsOf(attachmentYaml('none', '{attached: true}')), undefined);
  const elsewhere = attachmentYaml('a', '', { metadata: 'uid: a', node: 'node-2' });
  assert.equal(
    uidsOf(elsewhere, attachmentYaml('b', '', { metadata: 'uid: b', attacher: 'x.y' })),
    undefined,
  );
});

test('FN-01: made anew while the pod has it, the volume is taken down, proven clean and set up again', async () => {
  const onNodeAs = (uid: string) => ({
    ...BASE,
    'attachment.yaml': attachmentYaml('a', '{attached: true}', { node: 'node-a', metadata: `uid: ${uid}` }),
  });
  const world = await agentWorld(onNodeAs('one'), ATTACHES);
  await untilSettled(world);
  const before = world.asked().length;
  world.write(onNodeAs('two'));
  await until('all is set up again', () => world.asked().length === before + 5);
  await untilSettled(world);
  assert.deepEqual(world.asked().slice(before), [
    'NodeUnpublishVolume',
    'NodeUnstageVolume',
    'ControllerPublishVolume',
    'NodeStageVolume',
    'NodePublishVolume',
  ]);
  assert.match(world.seen(), /attachment-replaced/);
});

const ATTACHES = { controllerCapabilities: [CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME] };

/** What the agent world's node says, of `BASE`. */
function onNode(status: string): Readonly<Record<string, string>> {
  return { ...BASE, 'attachment.yaml': attachmentYaml('a', status, { node: 'node-a' }) };
}

test('B-2, B-3: an attachment lost while mounted takes the volume down; attached again it comes back', async () => {
  const world = await agentWorld(onNode('{attached: true}'), ATTACHES);
  await untilSettled(world);
  const before = world.asked().length;
  world.write(onNode('{attached: false}'));
  const quarantine = () => world.status().volumes[0]?.quarantine;
  await until('proven clean', () => quarantine()?.verified === true);
  assert.deepEqual([quarantine()?.reason, quarantine()?.standing], ['attachment-lost', true]);
  assert.match(world.seen(), /its attachment was taken away/);
  assert.deepEqual(world.asked().slice(before), ['NodeUnpublishVolume', 'NodeUnstageVolume']);
  world.write(onNode('{attached: maybe}'));
  await until('refused', () => world.status().sources.rejected.length === 1);
  assert.equal(quarantine()?.verified, true, 'refused is not attached');
  world.write(onNode('{attached: true}'));
  await untilSettled(world);
  assert.equal(quarantine(), null);
  assert.deepEqual(world.asked().slice(before + 2), [
    'ControllerPublishVolume',
    'NodeStageVolume',
    'NodePublishVolume',
  ]);
});

test('what is said to be not attached is not attached by us, and is in no quarantine', async () => {
  const world = await agentWorld(onNode('{attached: false, attachError: {message: no path}}'), ATTACHES);
  await until('a reason', () => world.status().pods[0]?.volumes[0]?.reason?.code === 'not-attached');
  const [volume] = world.status().volumes;
  assert.deepEqual([world.asked(), volume?.quarantine], [[], null]);
  assert.match(world.seen(), /no path/);
  world.write(BASE);
  await untilSettled(world);
  assert.deepEqual(world.asked(), ['ControllerPublishVolume', 'NodeStageVolume', 'NodePublishVolume']);
});

test('what whoever attaches says of a volume that stands counts like an object, and of one that is lost more', () => {
  const blocked: Failure = { code: 'not-attached', message: 'it is gone', effect: 'none' };
  const said = (lost: boolean, files: Readonly<Record<string, string>> = {}) =>
    wholly(
      desire(wishOf({ ...BASE, ...files }), {
        ...STAND_ALONE,
        standing: {
          standing: () => [DATA],
          wordOf: (id) => (id === DATA ? { word: { lost, blocked }, uid: 'a-2' } : undefined),
        },
      }),
    );
  const lost = said(true);
  assert.deepEqual([lost.lostAttachments.has(DATA), blockedIn(lost)], [true, 'not-attached: it is gone']);
  assert.deepEqual(lost.attachmentUids.get(DATA), ['a-2']);
  assert.equal(said(false).lostAttachments.has(DATA), false);
  assert.equal(said(false, { 'a.yaml': LOST }).lostAttachments.has(DATA), true);
});

test('INV-32: what no pod wants any more and still stands is lost as well, or another attachment’s', () => {
  const blocked: Failure = { code: 'not-attached', message: 'it is gone', effect: 'none' };
  const said = (lost: boolean) => {
    const standing = { standing: () => [DATA], wordOf: () => ({ word: { lost, blocked }, uid: 'a-2' }) };
    return wholly(desire(wishOf({}), { ...STAND_ALONE, standing }));
  };
  assert.deepEqual([...said(true).lostAttachments], [DATA]);
  assert.deepEqual([said(false).lostAttachments.size, said(false).attachmentUids.get(DATA)], [0, ['a-2']]);
});

test('of a volume whose driver needs no attachment nobody who attaches has anything to say', () => {
  const blocked: Failure = { code: 'not-attached', message: 'there is none', effect: 'none' };
  const detached = csiDriverYaml(DRIVER, '{attachRequired: false}');
  const state = wholly(
    desire(wishOf({ ...BASE, 'driver.yaml': detached }), {
      ...STAND_ALONE,
      standing: { standing: () => [], wordOf: () => ({ word: { lost: true, blocked }, uid: 'a-2' }) },
    }),
  );
  assert.deepEqual([state.lostAttachments.size, volumeOf(state, DATA).blocked], [0, undefined]);
  assert.equal(state.attachmentUids.size, 0);
});
