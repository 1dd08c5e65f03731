/** A driver keeps what it was given: so long as something of the volume stands, none of it is in what is told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSecretMemory } from '../../../../plugins/csi/call/secret-memory.ts';
import { GrpcStatus } from '../../../../plugins/csi/wire/grpc-service.ts';
import { NO_SECRETS, type VolumePlugin, type VolumeSecrets } from '../../../../plugins/plugin.ts';
import { type SecretData, Sensitive } from '../../../../plugins/secret/sensitive.ts';
import { bytesFrom } from '../../../../plugins/volume.ts';
import { accept } from '../answers.ts';
import { call, SPEC, STAGED, up, type World, world } from '../csi-world.ts';
import { CAPABILITY } from '../scripted-driver.ts';

const ROTATIONS = 1_000;

function wordOf(name: string, rotation: number): string {
  return `c4nary-of-${name}-in-${rotation};`;
}

/** Made anew at each call, as a source may. */
function secret(name: string, rotation: number): SecretData {
  return new Sensitive({ word: wordOf(name, rotation) });
}

function named(one: keyof typeof NO_SECRETS, rotation: number): VolumeSecrets {
  return { ...NO_SECRETS, [one]: secret(one, rotation) };
}

function token(pod: number, rotation: number): Sensitive<string> {
  return new Sensitive(JSON.stringify({ vault: { token: wordOf(`pod-${pod}`, rotation) } }));
}

type Verb = 'unpublish' | 'unstage' | 'detach';

/** What is told when the verb fails and the driver says this word. */
async function told(
  { plan, plugin }: World,
  verb: Verb,
  word: string,
  changes: Parameters<typeof call>[0] = {},
): Promise<string> {
  plan.before = () => {
    throw new GrpcStatus(13, `busy, and ${word} is what it was done with`);
  };
  const shown = JSON.stringify(await plugin[verb](call(changes)));
  plan.before = () => undefined;
  assert.match(shown, /busy, and .* is what it was done with/);
  return shown;
}

async function assertHidden(...asked: Parameters<typeof told>): Promise<void> {
  assert.match(await told(...asked), /busy, and \[redacted\] is/);
}

test('A-038, INV-25: a secret that was read anew, with nothing new in it, takes no place of another', async () => {
  const made = await world();
  accept(await made.plugin.stage(call({ secrets: named('stage', 1) })));
  for (let read = 0; read < 3; read += 1)
    accept(await made.plugin.publish(call({ secrets: named('stage', 2), refresh: read > 0 })));
  await assertHidden(made, 'unstage', wordOf('stage', 1), { secrets: named('stage', 2) });
});

test('A-038, INV-25: nor is one lost that was rotated away, while the next is sent again and again', async () => {
  const made = await world();
  for (const rotation of [1, 2, ...Array.from({ length: 12 }, () => 3)])
    accept(await made.plugin.publish(call({ secrets: named('publish', rotation), refresh: rotation > 1 })));
  await assertHidden(made, 'unpublish', wordOf('publish', 2), { secrets: named('publish', 3) });
});

const RUNGS = [
  ['controllerPublish', 'attach', 'detach'],
  ['stage', 'stage', 'unstage'],
  ['publish', 'publish', 'unpublish'],
] as const;

for (const [name, climb, descend] of RUNGS) {
  test(`A-038, INV-25: after any number of rotations the secret of the first ${climb} is hidden`, async () => {
    const made = await world({ controllerCapabilities: [CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME] });
    accept<unknown>(await made.plugin[climb](call({ secrets: named(name, 0) })));
    for (let rotation = 1; rotation <= 12; rotation += 1)
      accept(await made.plugin.publish(call({ secrets: named(name, rotation), refresh: true })));
    await assertHidden(made, descend, wordOf(name, 0), { secrets: named(name, 12) });
  });
}

test('A-038, INV-25: each of many pods has tokens of its own, and the driver keeps them all', async () => {
  const made = await world();
  accept(await made.plugin.stage(call()));
  for (const rotation of [1, 2])
    for (const pod of [0, 1, 2, 3])
      accept(await made.plugin.publish(call({ pod, tokens: token(pod, rotation), refresh: rotation > 1 })));
  for (const pod of [0, 1, 2, 3])
    for (const rotation of [1, 2])
      await assertHidden(made, 'unpublish', wordOf(`pod-${pod}`, rotation), { pod });
});

test('A-038, INV-25: what a pod that is gone brought is hidden while the volume is staged', async () => {
  const made = await world();
  await up(made, { secrets: named('publish', 1), tokens: token(0, 1) });
  accept(await made.plugin.unpublish(call()));
  for (const word of [wordOf('publish', 1), wordOf('pod-0', 1)]) await assertHidden(made, 'unstage', word);
});

test('A-038, INV-25: what a volume was grown with, and what a detach brought, is hidden from then on', async () => {
  const made = await world({ controllerCapabilities: [CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME] });
  accept(await made.plugin.attach(call({ secrets: named('controllerPublish', 1) })));
  await up(made);
  assert.ok(made.plugin.expand);
  const growth = { ...call({ secrets: named('expand', 1) }), toBytes: bytesFrom(2_000n) };
  accept(await made.plugin.expand(growth));
  await assertHidden(made, 'unpublish', wordOf('expand', 1), { secrets: named('expand', 2) });
  await told(made, 'detach', 'nothing', { secrets: named('controllerPublish', 2) });
  await assertHidden(made, 'unstage', wordOf('controllerPublish', 2));
});

test('A-038, INV-25: of a volume that has secrets, and of which nothing is known, nothing is shown', async () => {
  const made = await world();
  made.plan.before = () => {
    throw new GrpcStatus(13, `busy: ${wordOf('stage', 1)}`);
  };
  for (const verb of ['unpublish', 'unstage'] as const) {
    const shown = JSON.stringify(await made.plugin[verb](call({ secrets: named('stage', 2) })));
    assert.match(shown, /INTERNAL: \(not shown: /);
  }
  assert.match(JSON.stringify(await made.plugin.unstage(call())), /busy: c4nary/);
});

test('INV-25: there are never more of them than a bound, and none when nothing of the volume is left', async () => {
  const memory = createSecretMemory();
  const plugin = memory.remembering(alwaysWell());
  for (let rotation = 0; rotation < ROTATIONS; rotation += 1) {
    await plugin.stage(call({ secrets: named('stage', rotation) }));
    await plugin.publish(call({ pod: 0, secrets: named('publish', rotation), tokens: token(0, rotation) }));
    await plugin.publish(call({ pod: 1, tokens: token(1, rotation) }));
    await plugin.unpublish(call({ pod: 1 }));
  }
  assert.ok(memory.of(SPEC.id).length <= 32, `${memory.of(SPEC.id).length}`);
  await plugin.unpublish(call());
  await plugin.unstage(call());
  assert.deepEqual(memory.of(SPEC.id), []);
  assert.equal(memory.knows(SPEC.id), false);
});

test('INV-25: what a call that may come late was sent is known until that is given back, and no longer', async () => {
  const memory = createSecretMemory();
  const plugin = memory.remembering(alwaysWell());
  const late = { facts: { ...STAGED, mayComeLate: true } } as const;
  await plugin.stage(call({ secrets: named('stage', 1) }));
  await plugin.unstage(call(late));
  await plugin.stage(call({ ...late, secrets: named('stage', 2) }));
  const words = () => memory.of(SPEC.id).map((one) => one.reveal()['word']);
  assert.deepEqual(words(), [wordOf('stage', 2), wordOf('stage', 1)]);
  await plugin.unstage(call(late));
  assert.equal(words().length, 2);
  await plugin.unstage(call());
  assert.deepEqual([words(), memory.knows(SPEC.id)], [[], false]);
});

/** What its verbs answer is all that matters here. */
function alwaysWell(): VolumePlugin {
  const well = async () => ({ ok: true, value: {} }) as never;
  return {
    name: 'kubernetes.io/csi' as VolumePlugin['name'],
    needs: () => undefined,
    lane: () => '',
    ...{ attach: well, detach: well, stage: well, unstage: well, publish: well, unpublish: well },
  };
}

test('A-038: a driver is held to know what it was given for its own volumes, a stranger what any was', async () => {
  const made = await world();
  const others = { ...SPEC, driver: 'other.mooring.test', id: 'other' as typeof SPEC.id };
  for (const spec of [SPEC, others])
    made.here.push({ spec, secrets: { ...named('stage', 1), publish: secret(spec.driver, 1) }, facts: {} });
  const words = (driver?: string) => made.plugin.hidden(driver).secrets.map((one) => one?.reveal()['word']);
  assert.ok(words(others.driver).includes(wordOf(others.driver, 1)));
  assert.ok(!words(others.driver).includes(wordOf(SPEC.driver, 1)));
  for (const { driver } of [SPEC, others]) assert.ok(words().includes(wordOf(driver, 1)));
});
