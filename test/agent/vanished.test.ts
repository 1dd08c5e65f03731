/** RS-02, AP-12: manifests that vanish while the agent is down, and a directory in the place of another. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { explain } from '../../agent/status/explain.ts';
import { createManifestApi } from '../../agent/api/manifest-api.ts';
import { manifestsDocument, manifestsText } from '../../agent/status/manifest-document.ts';
import { statusText } from '../../agent/cli/status-text.ts';
import { type AgentWorld, agentWorld, until, untilSettled } from './duties-world.ts';
import { podYaml } from './manifests.ts';

const NAMES = ['a', 'b', 'c', 'd', 'e'];
const FILES = Object.fromEntries(NAMES.map((name) => [`${name}.yaml`, podYaml(name, { v: 'emptyDir: {}' })]));
const LOOK = { widthMax: undefined, colour: false, unicode: true };

function notesOf(world: AgentWorld, pod: string): string {
  const explanation = explain(pod, world.status());
  return explanation.kind === 'found' ? explanation.document.notes.join() : assert.fail(explanation.message);
}

function keepsakeOf({ host }: AgentWorld, pod: string): string {
  return `${host.root}/state/pods/uid-${pod}/volumes/kubernetes.io~empty-dir/v/keepsake`;
}

async function withKeepsakes(settings: Readonly<Record<string, unknown>> = {}): Promise<AgentWorld> {
  const world = await agentWorld(FILES, {}, settings);
  await untilSettled(world);
  for (const name of NAMES) writeFileSync(keepsakeOf(world, name), 'kept');
  return world;
}

const api = (world: AgentWorld) => createManifestApi(world.agent.view().manifests, world.status);

test('what vanished while the agent was down is kept and told, and an operator can end it', async () => {
  const before = await withKeepsakes();
  const { ['e.yaml']: e = '' } = FILES;
  before.write({ 'e.yaml': e });
  const world = await before.restart();
  const { vanished } = world.status().sources;
  assert.deepEqual(vanished?.pods, ['uid-a', 'uid-b', 'uid-c', 'uid-d']);
  assert.ok(vanished.believedInMs > 0 && vanished.believedInMs <= 300_000);
  const saying = /manifests of 4 pods vanished while nobody looked.*kept for .* more.*mooring forget/;
  assert.match(statusText(world.status(), { look: LOOK, wide: false }), saying);
  assert.match(notesOf(world, 'uid-a'), saying);
  assert.equal(notesOf(world, 'default/e'), '');
  assert.match(world.log.join(), /"warn".*"vanished":4,"pods":1,"waitMs":/);
  await until('a reason', () =>
    world.status().pods.some(({ uid, volumes }) => {
      const reason = volumes[0]?.reason;
      return (
        uid === 'uid-a' &&
        reason?.code === 'manifest-vanished' &&
        reason.message.includes('mooring forget default/a')
      );
    }),
  );
  const kept = manifestsDocument(world.status()).kept.map(({ name }) => name);
  assert.deepEqual(kept, ['a', 'b', 'c', 'd']);
  assert.deepEqual((await api(world).change({ forget: ['nobody'] })).status, 404);
  assert.deepEqual((await api(world).change({ forget: [] })).status, 400);
  assert.deepEqual((await api(world).change({ forget: ['default/a'] })).status, 200);
  await until('a to be taken down', () => !existsSync(keepsakeOf(world, 'a')));
  assert.deepEqual(world.status().sources.vanished?.pods, ['uid-b', 'uid-c', 'uid-d']);
  world.write({ 'e.yaml': e, 'b.yaml': FILES['b.yaml'] ?? '' });
  await until('b to be back', () => world.status().sources.vanished?.pods.length === 2);
  assert.deepEqual((await api(world).change({ forget: 'all' })).status, 200);
  await until('the rest to be taken down', () => world.status().pods.length === 2);
  assert.deepEqual(
    ['b', 'c', 'd', 'e'].filter((name) => existsSync(keepsakeOf(world, name))),
    ['b', 'e'],
  );
  assert.equal(world.status().sources.vanished, null);
});

test('one manifest that was removed while the agent was down is believed when its time is over', async () => {
  const before = await withKeepsakes({ vanished_hold_ms: 1_000 });
  const { ['a.yaml']: _, ...rest } = FILES;
  before.write(rest);
  const world = await before.restart();
  assert.deepEqual(world.status().sources.vanished?.pods, ['uid-a']);
  assert.ok(existsSync(keepsakeOf(world, 'a')));
  await until('it to be believed', () => world.status().pods.length === 4);
  assert.ok(!existsSync(keepsakeOf(world, 'a')));
});

test('one that vanished unseen is kept beyond its time while a manifest cannot be read, and that is told', async () => {
  const before = await withKeepsakes({ vanished_hold_ms: 1_000 });
  const { ['a.yaml']: _, ...rest } = FILES;
  before.write({ ...rest, 'z.yaml': 'kind: [' });
  const world = await before.restart();
  const isTold = (): boolean =>
    /kept as long as z\.yaml cannot be read/.test(statusText(world.status(), { look: LOOK, wide: false }));
  await until('its time to be over', isTold);
  assert.match(notesOf(world, 'uid-a'), /kept as long as z\.yaml cannot be read.*mooring forget/);
  const kept = manifestsText(manifestsDocument(world.status()), LOOK);
  assert.match(kept, /uid-a.* kept as long as z\.yaml cannot be read\./s);
  assert.ok(existsSync(keepsakeOf(world, 'a')));
  world.write(rest);
  await until('it to be believed', () => world.status().pods.length === 4);
  assert.ok(!existsSync(keepsakeOf(world, 'a')));
});

test('another directory is told, not read, and accepted by one word; what it lacks is kept for its time', async () => {
  const world = await withKeepsakes();
  const directory = `${world.host.root}/manifests`;
  renameSync(directory, `${directory}.old`);
  mkdirSync(directory, { mode: 0o750 });
  writeFileSync(`${directory}/e.yaml`, FILES['e.yaml'] ?? '');
  await until('it is told', () => world.status().sources.replaced !== null);
  const { replaced } = world.status().sources;
  const saying = /nother directory has been in the place of .*mooring manifests accept/;
  assert.match(statusText(world.status(), { look: LOOK, wide: false }), saying);
  assert.match(notesOf(world, 'default/a'), saying);
  assert.equal(world.status().pods.filter(({ ready }) => ready).length, 5, 'all are wanted as they were');
  assert.equal((await api(world).change({ accept: 'nonsense' })).status, 409);
  const again = await world.restart();
  assert.equal(again.status().agent.complete, false, 'nothing of it is read');
  assert.equal(again.status().sources.replaced?.sight, replaced?.sight);
  assert.equal((await api(again).change({ accept: replaced?.sight })).status, 200);
  await until('it is read', () => again.status().agent.complete);
  assert.deepEqual(again.status().sources.replaced, null);
  assert.deepEqual(again.status().sources.vanished?.pods.length, 4);
  for (const name of NAMES) assert.ok(existsSync(keepsakeOf(again, name)), name);
});

test('with all records lost another directory is not believed while pods may have something on disk', async () => {
  const before = await withKeepsakes({ vanished_hold_ms: 1_000 });
  const directory = `${before.host.root}/manifests`;
  renameSync(directory, `${directory}.old`);
  mkdirSync(directory, { mode: 0o750 });
  rmSync(`${before.host.root}/state/mooring/records`, { recursive: true });
  const world = await before.restart();
  await until('all is found on disk', () => world.status().pods.length === NAMES.length);
  await until('it is told', () => world.status().sources.replaced !== null);
  assert.equal(world.status().agent.complete, false, 'nothing of it is read');
  for (const name of NAMES) assert.ok(existsSync(keepsakeOf(world, name)), name);
});

test('in life, too, what is not in a directory that was accepted is kept, and forgotten by a word', async () => {
  const world = await withKeepsakes();
  const directory = `${world.host.root}/manifests`;
  renameSync(directory, `${directory}.old`);
  mkdirSync(directory, { mode: 0o750 });
  for (const name of ['b', 'c', 'd', 'e'])
    writeFileSync(`${directory}/${name}.yaml`, FILES[`${name}.yaml`] ?? '');
  await until('it is told', () => world.status().sources.replaced !== null);
  assert.equal((await api(world).change({ accept: world.status().sources.replaced?.sight })).status, 200);
  await until('it is read', () => world.status().sources.vanishing !== null);
  const { vanishing } = world.status().sources;
  assert.deepEqual(vanishing?.pods, ['uid-a']);
  assert.ok(vanishing.believedInMs > 200_000);
  assert.equal((await api(world).change({ forget: 'all' })).status, 200);
  await until('it to be taken down', () => world.status().pods.length === 4);
  assert.ok(!existsSync(keepsakeOf(world, 'a')));
});

test('the examples of /v1/manifests in docs/API.md have exactly the keys of what is answered', async () => {
  const text = readFileSync(new URL('../../docs/API.md', import.meta.url), 'utf8');
  const examples = [...text.matchAll(/```json\n([\s\S]*?)```/g)].map(
    ([, json = '']) => JSON.parse(json) as Record<string, unknown>,
  );
  const exampleOf = (kind: string) => examples.find((one) => one['kind'] === kind) ?? assert.fail(kind);
  const before = await withKeepsakes();
  before.write({});
  const world = await before.restart();
  const directory = `${world.host.root}/manifests`;
  renameSync(directory, `${directory}.old`);
  mkdirSync(directory, { mode: 0o750 });
  await until('it is told', () => world.status().sources.replaced !== null);
  const listed = manifestsDocument(world.status());
  const keys = (value: unknown): readonly string[] => Object.keys(value ?? {}).sort();
  const example = exampleOf('Manifests') as unknown as typeof listed;
  assert.deepEqual(keys(example), keys(listed));
  assert.deepEqual(keys(example.replaced), keys(listed.replaced));
  assert.deepEqual(keys(example.kept[0]), keys(listed.kept[0]));
  const forgotten = await api(world).change({ forget: ['default/a'] });
  assert.deepEqual(keys(exampleOf('ManifestsChange')), keys('body' in forgotten ? forgotten.body : {}));
});
