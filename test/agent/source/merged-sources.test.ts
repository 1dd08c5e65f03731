/** Several sources at once, and sources that make their objects anew: what is wanted is what they say together. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMergedSources, type MergedSources } from '../../../agent/source/merged-sources.ts';
import type { ObjectsSource } from '../../../agent/source/objects-source.ts';
import { fail } from '../../../mount/failure.ts';
import { createSlices } from '../../../mount/process/slices.ts';
import { DirectoryHost } from '../directory-host.ts';
import { claimSource, claimYaml, configMapYaml, podYaml, secretYaml, volumeYaml } from '../manifests.ts';
import { memorySource } from '../memory-source.ts';
import { EMPTY_NODE } from '../one-source.ts';

async function merged(...sources: ObjectsSource[]): Promise<MergedSources> {
  const host = new DirectoryHost();
  const both = createMergedSources({ host, sources, slices: createSlices({ clock: host }) });
  await both.start(EMPTY_NODE);
  return both;
}

test('what two sources say is wanted together, a claim of one by the volume of the other', async () => {
  const server = memorySource('server', {
    pods: podYaml('app', { v: claimSource('c') }),
    claims: claimYaml('c'),
  });
  const files = memorySource('/etc/manifests', { 'web.yaml': podYaml('web'), 'pv.yaml': volumeYaml('pv-c') });
  const { current } = await merged(server, files);
  assert.deepEqual([...current().pods.keys()].sort(), ['uid-app', 'uid-web']);
  assert.deepEqual([current().volumes.size, current().claims.size, current().complete], [1, 1, true]);
});

test('the wish is complete when every source is, and never without one', async () => {
  const late = memorySource('server', { pods: podYaml('app') });
  late.say(undefined, { complete: false });
  const { current } = await merged(memorySource('/etc/manifests', { 'web.yaml': podYaml('web') }), late);
  assert.deepEqual([current().complete, current().pods.size], [false, 2]);
  late.say(undefined, {});
  assert.equal(current().complete, true);
  assert.equal((await merged()).current().complete, false);
});

test('a source in doubt stays wanted, and is unknown under its name; the other one is known', async () => {
  const { failure } = fail({ code: 'path-missing', message: 'no answer', effect: 'none' });
  const server = memorySource('server', { pods: podYaml('app') });
  const { current } = await merged(memorySource('/etc/manifests', { 'web.yaml': podYaml('web') }), server);
  server.say(undefined, { doubt: failure });
  assert.deepEqual(
    [[...current().unknownOrigins], current().doubt, current().pods.size],
    [['server'], failure, 2],
  );
  assert.deepEqual(current().rejected, [{ origin: 'server', message: 'no answer' }]);
});

test('of one pod in two sources the first one is taken, and the pod is frozen', async () => {
  const server = memorySource('server', { pods: podYaml('web', { v: claimSource('c') }) });
  const files = memorySource('/etc/manifests', { 'web.yaml': podYaml('web') });
  const { current } = await merged(files, server);
  const pods = [...current().pods.values()].map(({ origin, volumes }) => [origin, volumes.length]);
  assert.deepEqual(pods, [['web.yaml', 0]]);
  assert.deepEqual([...current().frozenPods], ['uid-web']);
  assert.match(
    current().rejected[0]?.message ?? '',
    /^web\.yaml#1 has one of the same name, which is taken$/,
  );
});

test('a Secret or ConfigMap has a new revision when what is in it is another, and only then', async () => {
  const say = (word: string) => ({ s: secretYaml('s', { word }), c: configMapYaml('c', { word }) });
  const source = memorySource('server', say('one'));
  const { current } = await merged(source);
  const seen = () => [
    current().secrets.get('default/s')?.revision ?? assert.fail(),
    current().configMaps.get('default/c')?.revision ?? assert.fail(),
  ];
  const [secret = 0, configMap = 0] = seen();
  source.say();
  assert.deepEqual(seen(), [secret, configMap]);
  const { s, c } = say('one');
  source.say({ s: s.replace('{name: s}', '{name: s, labels: {a: b}}'), c });
  assert.deepEqual(seen(), [secret, configMap]);
  source.say(say('two'));
  const [otherSecret = 0, otherConfigMap = 0] = seen();
  assert.ok(otherSecret > secret && otherConfigMap > configMap, seen().join());
});

test('an immutable Secret or ConfigMap keeps what it said first until it is deleted, and that is told', async () => {
  const say = (word: string) => ({
    s: `${secretYaml('s', { word })}immutable: true\n`,
    c: `${configMapYaml('c', { word })}immutable: true\n`,
  });
  const source = memorySource('server', say('one'));
  const { current } = await merged(source);
  const seen = () => {
    const [secret, configMap] = [current().secrets.get('default/s'), current().configMaps.get('default/c')];
    assert.ok(secret && configMap);
    const words = [secret.data.reveal().get('word'), configMap.data.get('word')].map(String);
    return { words, revisions: [secret.revision, configMap.revision] };
  };
  const first = seen();
  assert.deepEqual([first.words, current().rejected], [['one', 'one'], []]);
  for (const word of ['two', 'three']) {
    source.say(say(word));
    assert.deepEqual(seen(), first);
    const told = current().rejected.map(({ subject, message }) => `${subject}: ${message.slice(0, 30)}`);
    assert.deepEqual(told, [
      'Secret default/s: it is immutable and was change',
      'ConfigMap default/c: it is immutable and was change',
    ]);
  }
  source.say(say('one'));
  assert.deepEqual([seen(), current().rejected], [first, []]);
  source.say({});
  source.say(say('four'));
  assert.deepEqual([seen().words, current().rejected], [['four', 'four'], []]);
});

test('an immutable one that was deleted and made anew while nobody looked is another one', async () => {
  const say = (uid: string, word: string) => {
    const withUid = (text: string) => `${text.replace(/name: \w+/, `$&${uid}`)}immutable: true\n`;
    return { s: withUid(secretYaml('s', { word })), c: withUid(configMapYaml('c', { word })) };
  };
  const source = memorySource('server', say(', uid: first', 'one'));
  const { current } = await merged(source);
  const seen = () => {
    const [secret, configMap] = [current().secrets.get('default/s'), current().configMaps.get('default/c')];
    assert.ok(secret && configMap);
    return [secret.data.reveal().get('word'), configMap.data.get('word')].map(String);
  };
  const revision = () => current().secrets.get('default/s')?.revision ?? assert.fail();
  for (const [uid, word] of [
    [', uid: second', 'two'],
    ['', 'three'],
    [', uid: third', 'three, changed'],
  ] as const) {
    const before = revision();
    source.say(say(uid, word));
    assert.deepEqual([seen(), current().rejected], [[word, word], []]);
    assert.ok(revision() > before, 'what is in it is not what was in the one before');
    source.say(say(uid, `${word}, changed`));
    assert.deepEqual([seen(), current().rejected.length], [[word, word], 2]);
  }
});
