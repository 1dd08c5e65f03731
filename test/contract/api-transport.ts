/** The contract of the port to an API server: what is so of each one that can be spoken with. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiFailure } from '../../kubernetes/api/api-failure.ts';
import { readWatchEvent, type WatchEvent } from '../../kubernetes/api/api-object.ts';
import { patchCompared, patchObject, readOne } from '../../kubernetes/api/write-object.ts';
import type { ApiTransport } from '../../kubernetes/api/api-transport.ts';
import { until } from '../until.ts';

export interface TransportUnderTest {
  readonly transport: ApiTransport;
  /** Into namespace default; made, or replaced. */
  putConfigMap(
    name: string,
    data: Readonly<Record<string, string>>,
    labels?: Readonly<Record<string, string>>,
  ): Promise<void>;
  removeConfigMap(name: string): Promise<void>;
  /** A path that is not allowed. */
  readonly denied: string;
  close(): Promise<void>;
}

const MAPS = '/api/v1/namespaces/default/configmaps';
const named = (name: string): string =>
  `${MAPS}?fieldSelector=${encodeURIComponent(`metadata.name=${name}`)}`;
const GET = { method: 'GET', answerBytesMax: 1_000_000, deadlineMs: 60_000 } as const;
const LINE_BYTES_MAX = 100_000;

interface Heard {
  readonly events: WatchEvent[];
  failure: ApiFailure | undefined | 'open';
  isOpened: boolean;
}

/** Registers each sentence as a test with one that is opened for it, and closed when it has ended. */
export function checksOf(
  what: string,
  open: () => Promise<TransportUnderTest>,
  options: { readonly skip: string | false },
): (sentence: string, body: (under: TransportUnderTest) => Promise<void>) => void {
  return (sentence, body) => {
    test(`${what}: ${sentence}`, options, async () => {
      const under = await open();
      try {
        await body(under);
      } finally {
        under.transport.close();
        await under.close();
      }
    });
  };
}

/** `what`: of whom it is. */
export function apiTransportContract(
  what: string,
  open: () => Promise<TransportUnderTest>,
  options: { readonly skip: string | false } = { skip: false },
): void {
  const check = checksOf(what, open, options);

  function listen({ transport }: TransportUnderTest, path: string, lineBytesMax = LINE_BYTES_MAX) {
    const heard: Heard = { events: [], failure: 'open', isOpened: false };
    const cancel = transport.watch(
      { path, lineBytesMax, deadlineMs: 300_000 },
      {
        opened: () => {
          assert.deepEqual(heard.events, []);
          heard.isOpened = true;
        },
        line: (value) => {
          const event = readWatchEvent(value);
          assert.ok(event !== undefined, JSON.stringify(value));
          if (event.kind !== 'bookmark') heard.events.push(event);
        },
        ended: (failure) => {
          assert.equal(heard.failure, 'open');
          heard.failure = failure;
        },
      },
    );
    return { heard, cancel };
  }

  async function versionOf({ transport }: TransportUnderTest): Promise<string> {
    const listed = await transport.request({ ...GET, path: named('nobody') });
    assert.ok(listed.ok);
    return (listed.value as { metadata: { resourceVersion: string } }).metadata.resourceVersion;
  }

  check(
    'an object is answered, one that is not there is absent, and one that is not to be seen is denied',
    async (under) => {
      await under.putConfigMap('one', { key: 'value' });
      const one = await under.transport.request({ ...GET, path: `${MAPS}/one` });
      assert.ok(one.ok);
      assert.deepEqual((one.value as { data: unknown }).data, { key: 'value' });
      const none = await under.transport.request({ ...GET, path: `${MAPS}/none` });
      assert.deepEqual(!none.ok && [none.failure.code, none.failure.effect], ['absent', 'none']);
      const denied = await under.transport.request({ ...GET, path: under.denied });
      assert.deepEqual(!denied.ok && [denied.failure.code, denied.failure.effect], ['denied', 'none']);
      await under.removeConfigMap('one');
    },
  );

  check('a patch counts for the version it was made for, and is refused for any other', async (under) => {
    const { transport } = under;
    await under.putConfigMap('patched', { key: 'value', other: 'stays' });
    const path = `${MAPS}/patched`;
    const read = await readOne(transport, path);
    assert.ok(read.ok);
    const before = read.value;
    const changed = await patchObject(transport, { path, before, change: { data: { key: 'new' } } });
    assert.ok(changed.ok, JSON.stringify(changed));
    assert.deepEqual(changed.value.value['data'], { key: 'new', other: 'stays' });
    for (const other of [before, { ...changed.value, uid: 'f0f0f0f0-0000-4000-8000-000000000000' }]) {
      const again = await patchObject(transport, {
        path,
        before: other,
        change: { data: { key: 'late' } },
      });
      // A real server finds that a uid cannot change (422) before it compares versions, if the version is right.
      const codes = other === before ? ['conflict'] : ['conflict', 'invalid'];
      assert.ok(!again.ok && codes.includes(again.failure.code), JSON.stringify(again));
      assert.equal(again.failure.effect, 'none');
    }
    const now = await readOne(transport, path);
    assert.deepEqual(now.ok && now.value.value['data'], { key: 'new', other: 'stays' });
    await under.removeConfigMap('patched');
  });

  check('a patch that compares counts while that is as it was, whatever else has changed', async (under) => {
    const { transport } = under;
    await under.putConfigMap('compared', { mark: '1', other: 'a' });
    const path = `${MAPS}/compared`;
    const read = await readOne(transport, path);
    assert.ok(read.ok);
    const before = read.value;
    const write = (mark: string | undefined, next: string, uid = before.uid) =>
      patchCompared(transport, {
        path,
        before: { uid },
        compared: [
          [['data', 'mark'], mark],
          [['data', 'a~/b'], undefined],
        ],
        change: [
          [['data', 'mark'], next],
          [['metadata', 'annotations'], { 'mooring.dev/x': next }],
        ],
      });
    const beside = { path, before, change: { data: { other: 'b' } } };
    assert.ok((await patchObject(transport, beside)).ok);
    const written = await write('1', '2');
    assert.ok(written.ok, JSON.stringify(written));
    assert.deepEqual(written.value.value['data'], { mark: '2', other: 'b' });
    assert.ok(BigInt(written.value.resourceVersion) > BigInt(before.resourceVersion));
    for (const refused of [
      await write('1', '3'),
      await write(undefined, '3'),
      await write('2', '3', 'f0f0f0f0-0000-4000-8000-000000000000'),
    ])
      assert.deepEqual(!refused.ok && [refused.failure.code, refused.failure.effect], ['invalid', 'none']);
    const now = await readOne(transport, path);
    assert.deepEqual(now.ok && now.value.value['data'], { mark: '2', other: 'b' });
    const { annotations } = (now.ok ? now.value.value['metadata'] : {}) as { readonly annotations?: unknown };
    assert.deepEqual(annotations, { 'mooring.dev/x': '2' });
    // A field in what is not there is nowhere.
    const nowhere = { path, before, compared: [], change: [[['data', 'mark', 'deeper'], '1']] as const };
    const answered = await patchCompared(transport, nowhere);
    assert.deepEqual(!answered.ok && [answered.failure.code, answered.failure.effect], ['invalid', 'none']);
    await under.removeConfigMap('compared');
  });

  check('a patch compares what a text says, whatever is in it', async (under) => {
    const { transport } = under;
    const mark = 'a&b <c> \u2028\u2029 \u00e9\u{1f980} \\ "\t\n\u007f';
    await under.putConfigMap('texts', { mark });
    const path = `${MAPS}/texts`;
    const read = await readOne(transport, path);
    assert.ok(read.ok);
    const written = await patchCompared(transport, {
      path,
      before: read.value,
      compared: [[['data'], { mark }]],
      change: [[['data', 'mark'], `${mark}&`]],
    });
    assert.ok(written.ok, JSON.stringify(written));
    assert.deepEqual(written.value.value['data'], { mark: `${mark}&` });
    await under.removeConfigMap('texts');
  });

  check('an answer above its bound is too large', async (under) => {
    await under.putConfigMap('large', { key: 'x'.repeat(5_000) });
    const answered = await under.transport.request({ ...GET, path: `${MAPS}/large`, answerBytesMax: 4_000 });
    assert.equal(!answered.ok && answered.failure.code, 'too-large');
    await under.removeConfigMap('large');
  });

  check(
    'a watch tells what came after its version, in order, and of what is selected alone',
    async (under) => {
      const version = await versionOf(under);
      await under.putConfigMap('two', { key: '1' });
      const { heard, cancel } = listen(under, `${named('two')}&watch=1&resourceVersion=${version}`);
      await until('the first', () => heard.events.length === 1);
      assert.equal(heard.isOpened, true);
      await under.putConfigMap('other', { key: '1' });
      await under.putConfigMap('two', { key: '2' });
      await under.removeConfigMap('two');
      await until('all three', () => heard.events.length >= 3);
      assert.deepEqual(
        heard.events.map(({ kind }) => kind),
        ['changed', 'changed', 'deleted'],
      );
      assert.equal(heard.failure, 'open');
      cancel();
      await under.removeConfigMap('other');
    },
  );

  check('a watch of what is not to be seen is denied', async (under) => {
    const { heard } = listen(under, `${under.denied}?watch=1&resourceVersion=1`);
    await until('its end', () => heard.failure !== 'open');
    assert.equal((heard.failure as ApiFailure | undefined)?.code, 'denied');
    assert.equal(heard.isOpened, false);
  });

  check('a line above its bound ends the watch', async (under) => {
    const version = await versionOf(under);
    const { heard } = listen(under, `${named('long')}&watch=1&resourceVersion=${version}`, 3_000);
    await until('it is open', () => heard.isOpened);
    await under.putConfigMap('long', { key: 'x'.repeat(9_000) });
    await until('its end', () => heard.failure !== 'open');
    assert.equal((heard.failure as ApiFailure | undefined)?.code, 'too-large');
    await under.removeConfigMap('long');
  });

  check(
    'nothing is heard of a watch that was cancelled, and one that is closed is told so',
    async (under) => {
      const version = await versionOf(under);
      const path = `${named('three')}&watch=1&resourceVersion=${version}`;
      const cancelled = listen(under, path);
      const kept = listen(under, path);
      await until('both are open', () => cancelled.heard.isOpened && kept.heard.isOpened);
      cancelled.cancel();
      await under.putConfigMap('three', { key: '1' });
      await until('the other one hears', () => kept.heard.events.length === 1);
      assert.deepEqual([cancelled.heard.events.length, cancelled.heard.failure], [0, 'open']);
      await under.removeConfigMap('three');
      under.transport.close();
      await until('it is told', () => kept.heard.failure !== 'open');
      assert.equal((kept.heard.failure as ApiFailure | undefined)?.code, 'unreachable');
    },
  );
}
