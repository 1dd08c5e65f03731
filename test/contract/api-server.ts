/**
 * The contract of an API server itself, by the API concepts of Kubernetes: what is so of the real one, and has to be so
 * of each that stands in for it.
 */
import assert from 'node:assert/strict';
import { type ApiObjectEnvelope, readListPage, readWatchEvent } from '../../kubernetes/api/api-object.ts';
import type { ApiFailure } from '../../kubernetes/api/api-failure.ts';
import { patchObject, readOne } from '../../kubernetes/api/write-object.ts';
import { until } from '../until.ts';
import { checksOf, type TransportUnderTest } from './api-transport.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const GET = { method: 'GET', answerBytesMax: 4_000_000, deadlineMs: 60_000 } as const;

interface Heard {
  readonly events: { readonly type: string; readonly name: string; readonly version: string }[];
  ended: ApiFailure | undefined | 'open';
}

async function list({ transport }: TransportUnderTest, query: string) {
  const answered = await transport.request({ ...GET, path: `${MAPS}?${query}` });
  assert.ok(answered.ok, JSON.stringify(answered));
  const page = readListPage(answered.value);
  assert.ok(page !== undefined, JSON.stringify(answered.value));
  return page;
}

async function refusedList({ transport }: TransportUnderTest, query: string): Promise<string> {
  const answered = await transport.request({ ...GET, path: `${MAPS}?${query}` });
  assert.ok(!answered.ok, JSON.stringify(answered));
  return answered.failure.code;
}

function watch({ transport }: TransportUnderTest, query: string): { heard: Heard; cancel: () => void } {
  const heard: Heard = { events: [], ended: 'open' };
  const cancel = transport.watch(
    { path: `${MAPS}?watch=1&${query}`, lineBytesMax: 100_000, deadlineMs: 300_000 },
    {
      opened: () => {},
      line: (value) => {
        const { type, object } = value as { type: string; object: { code?: number } };
        const event = readWatchEvent(value);
        assert.ok(event !== undefined, JSON.stringify(value));
        if (event.kind === 'error') heard.events.push({ type, name: String(object.code), version: '' });
        else if (event.kind !== 'bookmark') heard.events.push({ type, ...named(event.object) });
      },
      ended: (failure) => {
        heard.ended = failure;
      },
    },
  );
  return { heard, cancel };
}

function named({ value, resourceVersion }: ApiObjectEnvelope): { name: string; version: string } {
  const { name } = value['metadata'] as { readonly name: string };
  return { name, version: resourceVersion };
}

const namesOf = (objects: readonly ApiObjectEnvelope[]): string[] => objects.map((one) => named(one).name);
const labelled = (value: string): string => `labelSelector=${encodeURIComponent(`about=${value}`)}`;

/** `what`: of whom it is. */
export function apiServerContract(
  what: string,
  open: () => Promise<TransportUnderTest>,
  options: { readonly skip: string | false } = { skip: false },
): void {
  const check = checksOf(what, open, options);

  check('the pages of a list are of one moment, whatever happens between them', async (under) => {
    const all = ['page-1', 'page-2', 'page-3', 'page-4', 'page-5'];
    for (const name of all) await under.putConfigMap(name, {}, { about: 'pages' });
    const first = await list(under, `${labelled('pages')}&limit=2`);
    await under.removeConfigMap('page-4');
    await under.putConfigMap('page-6', {}, { about: 'pages' });
    const next = `${labelled('pages')}&limit=2&continue=`;
    const second = await list(under, next + encodeURIComponent(first.continueToken));
    const third = await list(under, next + encodeURIComponent(second.continueToken));
    assert.deepEqual(namesOf([first, second, third].flatMap(({ objects }) => objects)), all);
    assert.deepEqual(
      [second.resourceVersion, third.resourceVersion],
      [first.resourceVersion, first.resourceVersion],
    );
    assert.equal(third.continueToken, '');
    const now = await list(under, labelled('pages'));
    assert.deepEqual(namesOf(now.objects), ['page-1', 'page-2', 'page-3', 'page-5', 'page-6']);
    for (const name of namesOf(now.objects)) await under.removeConfigMap(name);
  });

  check('a list without a version has what was written before it was asked for', async (under) => {
    for (let round = 0; round < 10; round += 1) {
      await under.putConfigMap('fresh', { round: `${round}` }, { about: 'fresh' });
      const { objects } = await list(under, labelled('fresh'));
      assert.deepEqual(
        objects.map(({ value }) => value['data']),
        [{ round: `${round}` }],
      );
    }
    await under.removeConfigMap('fresh');
  });

  check('what cannot be understood of a list is refused', async (under) => {
    assert.equal(await refusedList(under, 'continue=nonsense'), 'invalid');
    assert.equal(await refusedList(under, 'fieldSelector=data.key%3Dvalue'), 'invalid');
    assert.equal(await refusedList(under, 'resourceVersion=soon'), 'invalid');
  });

  check(
    'what leaves the selection of a watch is deleted for it, at a version after all before',
    async (under) => {
      const { resourceVersion } = await list(under, labelled('leaving'));
      const { heard, cancel } = watch(under, `${labelled('leaving')}&resourceVersion=${resourceVersion}`);
      await under.putConfigMap('leaver', { key: '1' }, { about: 'leaving' });
      await under.putConfigMap('leaver', { key: '1' }, { about: 'nothing' });
      await under.putConfigMap('leaver', { key: '2' }, { about: 'leaving' });
      await under.putConfigMap('leaver', { key: '3' }, { about: 'leaving' });
      await under.removeConfigMap('leaver');
      await until('all five', () => heard.events.length >= 5);
      assert.deepEqual(
        heard.events.map(({ type, name }) => `${type} ${name}`),
        ['ADDED leaver', 'DELETED leaver', 'ADDED leaver', 'MODIFIED leaver', 'DELETED leaver'],
      );
      const versions = heard.events.map(({ version }) => BigInt(version));
      versions.forEach((version, index) => {
        assert.ok(version > (versions[index - 1] ?? BigInt(resourceVersion)), versions.join());
      });
      cancel();
    },
  );

  check(
    'a watch goes on where another one was, and from nothing it begins with what there is',
    async (under) => {
      await under.putConfigMap('begun', { key: '1' }, { about: 'begun' });
      const { resourceVersion } = await list(under, labelled('begun'));
      await under.putConfigMap('begun', { key: '2' }, { about: 'begun' });
      const later = watch(under, `${labelled('begun')}&resourceVersion=${resourceVersion}`);
      const fresh = watch(under, labelled('begun'));
      await until('both', () => later.heard.events.length > 0 && fresh.heard.events.length > 0);
      assert.deepEqual([later.heard.events[0]?.type, fresh.heard.events[0]?.type], ['MODIFIED', 'ADDED']);
      later.cancel();
      fresh.cancel();
      await under.removeConfigMap('begun');
    },
  );

  check('a watch ends in order after the time that it was opened for', async (under) => {
    const { resourceVersion } = await list(under, labelled('ending'));
    const { heard } = watch(
      under,
      `${labelled('ending')}&resourceVersion=${resourceVersion}&timeoutSeconds=1`,
    );
    await until('its end', () => heard.ended !== 'open');
    assert.equal(heard.ended, undefined);
  });

  check(
    'a watch from long ago is told what came since, or that this is not known any more; never nothing',
    async (under) => {
      await under.putConfigMap('known', {}, { about: 'known' });
      const { heard, cancel } = watch(under, `${labelled('known')}&resourceVersion=1`);
      const isTold = (): boolean =>
        heard.events.some(({ type, name }) => name === 'known' || (type === 'ERROR' && name === '410')) ||
        (heard.ended !== 'open' && heard.ended?.code === 'expired');
      await until('it is told', isTold);
      cancel();
      await under.removeConfigMap('known');
    },
  );

  check('a change that changes nothing makes no version, and is nothing to watch', async (under) => {
    const { transport } = under;
    await under.putConfigMap('same', { key: '1' }, { about: 'same' });
    const path = `${MAPS}/same`;
    const read = await readOne(transport, path);
    assert.ok(read.ok);
    const { heard, cancel } = watch(
      under,
      `${labelled('same')}&resourceVersion=${read.value.resourceVersion}`,
    );
    const patched = await patchObject(transport, {
      path,
      before: read.value,
      change: { data: { key: '1' } },
    });
    assert.equal(patched.ok && patched.value.resourceVersion, read.value.resourceVersion);
    await under.putConfigMap('same', { key: '2' }, { about: 'same' });
    await until('the next change', () => heard.events.length > 0);
    assert.equal(heard.events.length, 1);
    cancel();
    await under.removeConfigMap('same');
  });

  check('what was made anew under a name is another object', async (under) => {
    await under.putConfigMap('anew', { key: '1' });
    const first = await readOne(under.transport, `${MAPS}/anew`);
    await under.removeConfigMap('anew');
    await under.putConfigMap('anew', { key: '1' });
    const second = await readOne(under.transport, `${MAPS}/anew`);
    assert.ok(first.ok && second.ok && first.value.uid !== second.value.uid);
    assert.ok(BigInt(second.value.resourceVersion) > BigInt(first.value.resourceVersion));
    await under.removeConfigMap('anew');
  });
}
