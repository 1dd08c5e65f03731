import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Rejection } from '../../../agent/source/objects-source.ts';
import { createRejectionLog } from '../../../agent/source/rejection-log.ts';

/** What is logged of looks at the sources, one after the other. */
function told(looks: readonly (readonly Rejection[])[]): readonly string[] {
  const lines: string[] = [];
  const line =
    (level: string) =>
    (event: string, facts?: object): void =>
      void lines.push(`${level} ${event} ${JSON.stringify(facts)}`);
  const log = createRejectionLog({ debug() {}, info: line('info'), warn: line('warn'), error() {} });
  for (const rejected of looks) log.note({ rejected });
  return lines;
}

const WEB: Rejection = {
  origin: 'web.yaml#1',
  subject: 'Pod default/web',
  field: 'spec.volumes[0].emptydir',
  message: 'is no field; did you mean "emptyDir"?',
};

test('what is not taken of a source is logged once for as long as it is so, and that it is mended', () => {
  const other: Rejection = { origin: 'db.yaml', message: 'line 4: a tab is used for indentation' };
  const next = { ...WEB, field: 'spec.containers' };
  const empty = { ...other, message: 'it is empty' };
  const lines = told([[WEB], [WEB], [next], [next, other], [other], [empty], []]);
  assert.deepEqual(lines, [
    `warn not taken ${JSON.stringify(WEB)}`,
    `warn not taken ${JSON.stringify(next)}`,
    'warn not taken {"origin":"db.yaml","message":"line 4: a tab is used for indentation"}',
    'info no longer refused {"origin":"web.yaml#1","subject":"Pod default/web"}',
    'warn not taken {"origin":"db.yaml","message":"it is empty"}',
    'info no longer refused {"origin":"db.yaml"}',
  ]);
});

test('what was refused is not mended while nobody can say, as its file is broken or is being read', () => {
  const broken = { origin: 'web.yaml', message: 'line 9: a tab is used for indentation' };
  const waits = { ...broken, message: 'it is waiting to be read', isPassing: true } as const;
  const asked = { origin: WEB.origin, subject: 'Pod default/web', message: 'read', isPassing: true } as const;
  const lines = told([[WEB], [broken], [waits], [asked], [WEB], [broken], []]);
  assert.deepEqual(lines, [
    `warn not taken ${JSON.stringify(WEB)}`,
    `warn not taken ${JSON.stringify(broken)}`,
    'info no longer refused {"origin":"web.yaml"}',
    `warn not taken ${JSON.stringify(broken)}`,
    'info no longer refused {"origin":"web.yaml#1","subject":"Pod default/web"}',
    'info no longer refused {"origin":"web.yaml"}',
  ]);
});

test('of a directory full of refused files so many are logged as somebody reads, and how many more there are', () => {
  const many = Array.from({ length: 300 }, (_, index) => ({ ...WEB, origin: `${index}.yaml#1` }));
  const lines = told([many, many, [], []]);
  assert.equal(lines.length, 66);
  assert.equal(lines[32], 'warn more is not taken {"objects":268,"command":"mooring status"}');
  assert.equal(lines[65], 'info more is no longer refused {"objects":268}');
});
