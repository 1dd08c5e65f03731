import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMassRemovalLog } from '../../../agent/source/mass-removal-log.ts';
import type { DesiredObjects } from '../../../agent/source/desired-objects.ts';
import type { PodUid } from '../../../plugins/volume.ts';

type Told = Pick<DesiredObjects, 'pods' | 'reports'>;

/** What is said while of the pods that there are some wait for the guard, one look after the other. */
function told(looks: readonly (readonly [pods: string, vanishing: string])[]): readonly string[] {
  const lines: string[] = [];
  const warn = (event: string, facts?: object) => lines.push(`${event} ${JSON.stringify(facts)}`);
  const log = createMassRemovalLog({ debug() {}, info() {}, warn, error() {} }, { nowMs: () => 1_000 });
  for (const [pods, waiting] of looks) {
    const uids = [...waiting] as PodUid[];
    log.note({
      pods: new Map([...pods].map((uid) => [uid, {}])) as unknown as Told['pods'],
      reports:
        uids.length === 0 ? [] : [{ massRemoval: { pods: new Set(uids), sinceMs: 0, untilMs: 11_000 } }],
    });
  }
  return lines;
}

const KEPT = 'most pods vanished from the manifests at once, kept for now';

test('pods that come back one after the other are all counted when the last one is decided on', () => {
  const lines = told([
    ['abcdef', 'abcd'],
    ['abcdef', 'bcd'],
    ['abcdef', 'd'],
    ['abcdef', ''],
    ['abcdef', ''],
  ]);
  assert.deepEqual(lines, [
    `${KEPT} {"vanished":4,"pods":6,"waitMs":10000}`,
    'vanished pods decided on {"back":4,"takenDown":0}',
  ]);
});

test('what is taken down early counts as well, and the next time counts anew', () => {
  const lines = told([
    ['abcdef', 'abcd'],
    ['bcdef', 'bcd'],
    ['bcdef', ''],
    ['bcdef', 'bcde'],
    ['f', ''],
  ]);
  assert.deepEqual(
    lines.filter((line) => !line.startsWith(KEPT)),
    [
      'vanished pods decided on {"back":3,"takenDown":1}',
      'vanished pods decided on {"back":0,"takenDown":4}',
    ],
  );
});

test('more that vanish are a line of their own', () => {
  const lines = told([
    ['abcdef', 'abcd'],
    ['abcdef', 'abcde'],
    ['abcdef', 'abcde'],
  ]);
  assert.deepEqual(
    lines.map((line) => /"vanished":(\d)/.exec(line)?.[1]),
    ['4', '5'],
  );
});
