/** Issue 3: every wait has a reason. Most pods vanish at once: kept for ten seconds, and everybody can see why. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explain } from '../../../../agent/status/explain.ts';
import { statusText } from '../../../../agent/cli/status-text.ts';
import { agentWorld, until, untilSettled } from '../../duties-world.ts';
import { podYaml } from '../../manifests.ts';

test('most pods vanish at once: status, explain and the log say that they are kept, and for how long', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const files = Object.fromEntries(
    names.map((name) => [`${name}.yaml`, podYaml(name, { v: 'emptyDir: {}' })]),
  );
  const world = await agentWorld(files);
  await untilSettled(world);
  assert.equal(world.status().sources.vanishing, null);
  const { ['e.yaml']: e = '', ['f.yaml']: f = '' } = files;
  world.write({ 'e.yaml': e, 'f.yaml': f });
  await until('it is told', () => world.status().sources.vanishing !== null);
  const status = world.status();
  const { vanishing } = status.sources;
  assert.deepEqual(vanishing?.pods, ['uid-a', 'uid-b', 'uid-c', 'uid-d']);
  assert.ok(vanishing.believedInMs <= 10_000);
  const saying = /4 of 6 pods vanished at once.*kept for [0-9m]?s? ?.*more, in case that is a mistake/;
  const look = { widthMax: undefined, colour: false, unicode: true };
  assert.match(statusText(status, { look, wide: false }), saying);
  const notesOf = (pod: string): readonly string[] => {
    const explanation = explain(pod, status);
    return explanation.kind === 'found' ? explanation.document.notes : assert.fail(explanation.message);
  };
  assert.match(notesOf('default/a').join(), saying);
  assert.deepEqual(notesOf('default/e'), []);
  const told = () => world.log.filter((line) => line.includes('vanished'));
  assert.match(told().join(), /"warn".*"vanished":4,"pods":6,"waitMs":/);
  world.write(files);
  await until('they are back', () => world.status().sources.vanishing === null);
  const decided = told().slice(1);
  assert.equal(decided.length, 1, decided.join());
  assert.match(decided.join(), /"warn".*"vanished pods decided on".*"back":4,"takenDown":0/);
});
