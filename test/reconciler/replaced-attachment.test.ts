/** FN-01, INV-31: an attachment made anew is another one, and what stands under the old one goes first. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ActualState } from '../../reconciler/model/actual-state.ts';
import { formatRecord, parseRecord, recordOf } from '../../reconciler/recovery/record.ts';
import { recover } from '../../reconciler/recovery/recover.ts';
import { createBench, layout, onlyRecord } from './bench.ts';
import { actual, csi, wanted, wish } from './world.ts';

const { id } = csi('data');
const WANTED = wanted('data', ['web']);
const ANEW = ['unpublish web/pv-data', 'unstage data', 'clean 7:1', 'stage data', 'publish web/pv-data'];

function said(uids: readonly string[], more: Parameters<typeof wish>[1] = {}) {
  return wish([WANTED], { attachmentUids: new Map(uids.length === 0 ? [] : [[id, uids]]), ...more });
}

function bench(recovered: ActualState = new Map()) {
  const { host, plugins, reconciler } = createBench({ recovered });
  const known = () => reconciler.actual().get(id);
  /** The calls that another wish leads to. */
  const callsAfter = async (next: ReturnType<typeof wish>): Promise<readonly string[]> => {
    const before = plugins.calls.length;
    reconciler.setDesired(next);
    await host.advance(5_000);
    return plugins.calls.slice(before);
  };
  return { host, plugins, reconciler, known, callsAfter };
}

test('another uid means quarantine, and from the bottom up again under the new one', async () => {
  const { known, callsAfter, plugins, reconciler, host } = bench();
  await callsAfter(said(['one']));
  assert.equal(known()?.attachmentUid, 'one');
  plugins.fault = (kind) =>
    kind === 'unpublish' ? { code: 'mount-busy', message: '', effect: 'none' } : undefined;
  await callsAfter(said(['two']));
  assert.equal(known()?.quarantine?.reason, 'attachment-replaced');
  plugins.fault = () => undefined;
  const before = plugins.calls.length;
  reconciler.wake({ kind: 'operator' });
  await host.advance(5_000);
  assert.deepEqual(plugins.calls.slice(before), ANEW);
  assert.deepEqual([known()?.quarantine, known()?.attachmentUid], [undefined, 'two']);
});

test('one that vanishes takes nothing down, and another that comes then does', async () => {
  const { known, callsAfter } = bench();
  await callsAfter(said(['one']));
  assert.deepEqual(await callsAfter(said([])), []);
  assert.equal(known()?.attachmentUid, 'one');
  assert.deepEqual(await callsAfter(said(['one'])), []);
  assert.deepEqual(await callsAfter(said([])), []);
  assert.deepEqual(await callsAfter(said(['two'])), ANEW);
});

test('one that was another for a moment is one that was: the quarantine ends by its proof', async () => {
  const { known, callsAfter, plugins, host } = bench();
  await callsAfter(said(['one']));
  plugins.fault = (kind) =>
    kind === 'unpublish' ? { code: 'mount-busy', message: '', effect: 'none' } : undefined;
  await callsAfter(said(['two']));
  await callsAfter(said(['one']));
  assert.equal(known()?.quarantine?.reason, 'attachment-replaced');
  plugins.fault = () => undefined;
  const before = plugins.calls.length;
  await host.advance(10_000);
  assert.deepEqual(plugins.calls.slice(before).slice(-ANEW.length), ANEW);
  assert.equal(known()?.attachmentUid, 'one');
});

test('of several attachments the one it was set up under suffices, and without it the others are others', async () => {
  const { known, callsAfter } = bench();
  await callsAfter(said(['one', 'two']));
  assert.equal(known()?.attachmentUid, 'one');
  assert.deepEqual(await callsAfter(said(['nine', 'one'])), []);
  assert.deepEqual(await callsAfter(said(['nine', 'two'])), ANEW);
  assert.equal(known()?.attachmentUid, 'nine');
});

test('set up before anybody said a uid, as by 0.2, it is taken for the first that is seen, durably', async () => {
  const record = recordOf(actual('data', { staged: 'present', pods: { web: 'present' } }), 'boot-1');
  const { attachmentUid: _, ...of02 } = record;
  const parsed = parseRecord(formatRecord(of02));
  assert.ok(parsed.ok);
  const table = undefined;
  const recovered = recover({ records: [parsed.value], table, shown: new Map(), bootId: 'boot-1', layout });
  const { host, callsAfter, known } = bench(recovered);
  assert.deepEqual(await callsAfter(said(['one'])), ['stage data', 'publish web/pv-data']);
  assert.equal(known()?.attachmentUid, 'one');
  assert.equal(onlyRecord(host).attachmentUid, 'one');
  assert.deepEqual(await callsAfter(said(['two'])), ANEW);
});

test('the uid outlives a restart and ends with the boot', () => {
  const record = recordOf({ ...actual('data', { staged: 'present' }), attachmentUid: 'one' }, 'boot-1');
  const recovered = (bootId: string) =>
    recover({ records: [record], table: undefined, shown: new Map(), bootId, layout }).get(id);
  assert.equal(recovered('boot-1')?.attachmentUid, 'one');
  assert.equal(recovered('boot-2')?.attachmentUid, undefined);
});

test('lost and attached anew under another uid, it comes back under that one', async () => {
  const { known, callsAfter } = bench();
  await callsAfter(said(['one']));
  assert.deepEqual(await callsAfter(said(['two'], { lostAttachments: new Set([id]) })), ANEW.slice(0, 3));
  assert.equal(known()?.quarantine?.reason, 'attachment-lost');
  assert.deepEqual(await callsAfter(said(['two'])), ANEW.slice(3));
  assert.equal(known()?.attachmentUid, 'two');
});

test('an operator’s word that it is clean is a word on the new attachment', async () => {
  const { known, callsAfter, plugins, reconciler, host } = bench();
  await callsAfter(said(['one']));
  plugins.fault = (kind) =>
    kind === 'unpublish' ? { code: 'mount-busy', message: '', effect: 'none' } : undefined;
  await callsAfter(said(['two']));
  assert.ok((await reconciler.endQuarantine(id)).ok);
  await host.advance(1_000);
  assert.deepEqual([known()?.quarantine, known()?.attachmentUid], [undefined, 'two']);
});

test('while it is not seen and a source cannot be read, no pod is given what stands', async () => {
  const { callsAfter, reconciler } = bench();
  await callsAfter(said(['one']));
  const second = wanted('data', ['web', 'second']);
  const blind = wish([second], { unknownOrigins: new Set(['attachments.yaml']) });
  assert.deepEqual(await callsAfter(blind), []);
  assert.deepEqual(
    reconciler.obstacles().map(({ kind, code, blocker }) => [kind, code, blocker]),
    [['blocked', 'not-attached', 'attachments.yaml']],
  );
  const seen = wish([second], { attachmentUids: new Map([[id, ['one']]]) });
  assert.deepEqual(await callsAfter(seen), ['publish second/pv-data']);
});
