/** Manifest text as documents and objects: hostile, broken and half-written texts included. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseManifest } from '../../../../../agent/source/manifests/parse/manifest.ts';
import { DEFAULT_MANIFEST_LIMITS as LIMITS } from '../../../../../agent/source/manifests/parse/manifest-limits.ts';
import { readManifestFile } from '../../../../../agent/source/manifests/parse/manifest-reading.ts';
import { identityOf } from '../../../../../kubernetes/objects/objects.ts';
import { resolvePlainScalar } from '../../../../../agent/source/manifests/parse/plain-scalar.ts';
import { failed, podYaml, secretYaml } from '../../../manifests.ts';

const CORPUS = new URL('../../../../corpus/manifests/', import.meta.url);

function corpusFile(name: string): Buffer {
  return readFileSync(new URL(name, CORPUS));
}

function valuesOf(text: string): readonly unknown[] {
  const parsed = parseManifest(text, LIMITS);
  assert.ok(parsed.ok, JSON.stringify(parsed));
  return parsed.value.map((one) => JSON.parse(JSON.stringify(one.value)) as unknown);
}

/** For each file of the corpus: why it is unreadable, or what is taken of it and how many documents are refused. */
const OUTCOMES: Readonly<Record<string, RegExp | readonly [objects: readonly string[], refused: number]>> = {
  'alias-bomb.yaml': [['Pod default/web'], 1],
  'byte-order-mark.yaml': [['Pod default/web'], 0],
  'constructor.yaml': [['Pod default/web'], 1],
  'crlf.yaml': [['Pod default/web'], 0],
  'deep-block.yaml': /^line \d+: nested deeper than 64 levels$/,
  'deep-dashes.yaml': /^line 1: nested deeper than 64 levels$/,
  'deep-flow.yaml': /^line 4: nested deeper than 64 levels$/,
  'deep.json': /^line 1: nested deeper than 64 levels$/,
  'duplicate-key.json': [[], 1],
  'duplicate-key.yaml': [['Pod default/other'], 1],
  'empty.yaml': /^it is empty/,
  'good.yaml': [['Pod default/web'], 0],
  'list-in-list.yaml': [[], 1],
  'list.yaml': [['Pod default/web', 'Pod default/other'], 1],
  'merge-keys.yaml': [['Pod default/web'], 1],
  'not-utf-8.yaml': /^it is not UTF-8 text$/,
  'nul-tail.yaml': /U\+0000 does not belong in text$/,
  'nul.yaml': /^line 9: the character U\+0000/,
  'only-comments.yaml': /^it is empty/,
  'only-separators.yaml': /^it is empty/,
  'path-tricks-in-items.yaml': [[], 11],
  'path-tricks-in-keys.yaml': [[], 26],
  'path-tricks-in-names.yaml': [[], 52],
  'proto.json': [[], 1],
  'proto.yaml': [['Pod default/web'], 1],
  'secret-in-syntax-error.json': /^line 1: something stands where it does not belong$/,
  'secret-in-syntax-error.yaml': /^line 5: something stands where it does not belong$/,
  'spaces.yaml': /^it is empty/,
  'tabs.yaml': /^line 4: a tab is used for indentation/,
  'tags.yaml': [['Pod default/web'], 2],
  'utf-16.yaml': /^it is not UTF-8 text$/,
  'wrong-kinds.yaml': [['Pod default/web'], 8],
  'wrong-types.yaml': [[], 5],
  'yaml-1.1-directive.yaml': [['Pod default/web'], 0],
};

test('a byte order mark before a later document is no text of it, as where files were joined', () => {
  const bom = '\ufeff';
  const text = `${bom}a: 1\r\n---\r\n${bom}b: "2${bom}"\r\n--- # c\n${bom}${bom}c: 3\n`;
  assert.deepEqual(valuesOf(text), [{ a: 1 }, { b: `2${bom}` }, { [`${bom}c`]: 3 }]);
});

test('every file of the corpus is taken or refused as the table says, each document for itself', () => {
  assert.deepEqual(readdirSync(CORPUS).sort(), Object.keys(OUTCOMES).sort());
  for (const [name, outcome] of Object.entries(OUTCOMES)) {
    const reading = readManifestFile(name, corpusFile(name), LIMITS);
    if (outcome instanceof RegExp) {
      assert.match(reading.unreadable ?? 'it was readable', outcome, name);
    } else {
      assert.equal(reading.unreadable, undefined, name);
      assert.deepEqual(
        reading.objects.map((one) => identityOf(one.object)),
        outcome[0],
        name,
      );
      assert.equal(reading.refused.length, outcome[1], name);
    }
  }
});

test('nothing of the corpus reaches the prototype of other objects', () => {
  for (const name of readdirSync(CORPUS)) readManifestFile(name, corpusFile(name), LIMITS);
  assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  assert.equal(Object.hasOwn(Object.prototype, 'polluted'), false);
});

test('no message about the corpus shows a secret or a character that moves a cursor', () => {
  for (const name of readdirSync(CORPUS)) {
    const { unreadable, rejected } = readManifestFile(name, corpusFile(name), LIMITS);
    const shown = `${unreadable ?? ''}${rejected.map((one) => `${one.subject} ${one.field} ${one.message}`).join('')}`;
    assert.doesNotMatch(shown, /hunter2/, name);
    assert.doesNotMatch(shown, /[\u0000-\u001f\u007f-\u009f\u202e]/, name);
    for (const one of rejected) assert.ok(Buffer.byteLength(one.message) <= 1_024, name);
  }
});

test('a good manifest cut short at every byte is read without a throw', () => {
  const whole = Buffer.from(
    `${podYaml('web', { a: 'emptyDir: {}' })}---\n${secretYaml('s', { k: 'hunter2-ü' })}`,
  );
  for (let length = 0; length <= whole.length; length += 1) {
    const reading = readManifestFile('web.yaml', whole.subarray(0, length), LIMITS);
    assert.doesNotMatch(JSON.stringify(reading.rejected) + reading.unreadable, /hunter2/, `${length} bytes`);
  }
});

test('any bytes are read without a throw', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
      readManifestFile('any.yaml', bytes, LIMITS);
    }),
    { numRuns: 500 },
  );
});

test('a good manifest with any one piece replaced by any other text is read without a throw', () => {
  const whole = corpusFile('good.yaml').toString();
  const position = fc.integer({ min: 0, max: whole.length });
  const signs = fc.constantFrom('{', '[', '- ', ': ', '*a', '&a ', '!x ', '|', '\t', '"', '...\n');
  const piece = fc.oneof(fc.string(), signs);
  fc.assert(
    fc.property(position, position, piece, (from, to, text) => {
      readManifestFile('any.yaml', Buffer.from(whole.slice(0, from) + text + whole.slice(to)), LIMITS);
    }),
    { numRuns: 1_000 },
  );
});

test('a JSON value means the same read as JSON and read as YAML', () => {
  const key = fc
    .stringMatching(/^[a-z][a-z0-9-]{0,20}$/)
    .filter((one) => !['constructor', 'prototype'].includes(one));
  const text = fc.stringMatching(/^[ -~äß€]{0,40}$/);
  const number = fc.double({ noNaN: true, noDefaultInfinity: true });
  const leaf = fc.oneof(text, fc.integer(), number, fc.boolean(), fc.constant(null));
  const { tree } = fc.letrec((tie) => {
    const list = fc.array(tie('tree'), { maxLength: 4 });
    return { tree: fc.oneof({ maxDepth: 5 }, leaf, list, fc.dictionary(key, tie('tree'), { maxKeys: 4 })) };
  });
  fc.assert(
    fc.property(fc.dictionary(key, tree, { minKeys: 1, maxKeys: 4 }), (value) => {
      const json = JSON.stringify(value);
      if (value['kind'] === 'List') return;
      const expected = JSON.parse(json) as unknown;
      assert.deepEqual(valuesOf(json), [expected]);
      assert.deepEqual(valuesOf(`---\n${json}\n`), [expected]);
    }),
    { numRuns: 300 },
  );
});

test('what is nested a megabyte deep, an alias bomb too, is refused at its first line; what is wide is read', () => {
  const megabyte = LIMITS.fileBytesMax;
  const bombs = ['[', '{', '- ', '? ', ': ', '{"a":', 'a: [', '- - &a [*a, '].map((one) => {
    return one.repeat(Math.floor(megabyte / one.length));
  });
  const wide = `a:\n${Array.from({ length: 60_000 }, (_, index) => `  k${index}: v\n`).join('')}`;
  const wideJson = `{${Array.from({ length: 60_000 }, (_, index) => `"k${index}":"v"`).join(',')}}`;
  for (const bomb of bombs) {
    assert.equal(failed(parseManifest(bomb, LIMITS)).message, 'line 1: nested deeper than 64 levels');
  }
  // At a cost that grows with the square of the keys this would be minutes.
  for (const text of [wide, wideJson])
    assert.equal(JSON.stringify(valuesOf(text)).split(':"v"').length, 60_001);
});

test('a file beyond its bounds is unreadable as a whole', () => {
  const tooLong = failed(parseManifest('a'.repeat(LIMITS.fileBytesMax + 1), LIMITS));
  assert.equal(tooLong.code, 'source-unreadable');
  assert.match(
    failed(parseManifest('---\na: 1\n'.repeat(1_001), LIMITS)).message,
    /more than 1000 documents/,
  );
  assert.match(
    failed(parseManifest(`[${'a,'.repeat(300_000)}]`, LIMITS)).message,
    /more than 524288 words and signs/,
  );
});

test('documents know their number and line, and a List is as many documents', () => {
  const text = '# first\n---\nkind: A\n---\n\n---\nkind: List\nitems:\n- kind: B\n- kind: C\n';
  const parsed = parseManifest(text, LIMITS);
  assert.ok(parsed.ok);
  assert.deepEqual(
    parsed.value.map(({ number, line, field }) => ({ number, line, field })),
    [
      { number: 1, line: 3, field: '' },
      { number: 3, line: 7, field: 'items[0]' },
      { number: 3, line: 7, field: 'items[1]' },
    ],
  );
});

test('several JSON objects in one file, with separators, are as many documents', () => {
  assert.deepEqual(valuesOf('{"a": 1}\n---\n{"b": 2}\n'), [{ a: 1 }, { b: 2 }]);
});

test('an unquoted scalar is what Kubernetes takes it for, octal included, and otherwise text', () => {
  const meanings: readonly (readonly [string, unknown])[] = [
    ['0644', 420],
    ['0o644', 420],
    ['644', 644],
    ['0', 0],
    ['08', 8],
    ['-0644', -420],
    ['0x1f', 31],
    ['1e3', 1_000],
    ['1.50', 1.5],
    ['', null],
    ['~', null],
    ['null', null],
    ['true', true],
    ['False', false],
    ['yes', 'yes'],
    ['on', 'on'],
    ['.nan', '.nan'],
    ['.inf', '.inf'],
    ['2026-01-01', '2026-01-01'],
    ['1_000', '1_000'],
    ['1Gi', '1Gi'],
    ['9e999', '9e999'],
  ];
  for (const [text, meaning] of meanings) assert.equal(resolvePlainScalar(text), meaning, text);
});

/** By what is written: where it is, and what would be right. */
const MISSPELT: readonly (readonly [change: readonly [string, string], field: string, right: string])[] = [
  [['emptyDir', 'emptydir'], 'spec.volumes[0].emptydir', 'emptyDir'],
  [['readOnly: true}}', 'readonly: true}}'], 'spec.volumes[1].persistentVolumeClaim.readonly', 'readOnly'],
  [['ReadOnly: false', 'readonly: false'], 'spec.containers[0].volumeMounts[0].readonly', 'readOnly'],
  [['securityContext', 'securitycontext'], 'spec.securitycontext', 'securityContext'],
  [['apiVersion', 'apiversion'], 'apiversion', 'apiVersion'],
];
const SPELT = `
apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {Example.com/name: x, Name: y}, labels: {Namespace: z, UID: "1"}}
spec:
  Tty: null
  volumes:
    - {name: cache, emptyDir: {medium: Memory}}
    - {name: data, persistentVolumeClaim: {claimName: data, readOnly: true}}
  containers:
    - name: main
      volumeMounts: [{name: data, mountPath: /data, ReadOnly: false}, {name: cache, mountPath: /cache}]
  securityContext: {fsGroup: 1000}
`;

test('a field in other capitals is refused with its right name: Kubernetes drops it without a word', () => {
  const right = SPELT.replace('ReadOnly', 'readOnly');
  assert.equal(readManifestFile('web.yaml', Buffer.from(right), LIMITS).objects.length, 1);
  for (const [[written, instead], field, meant] of MISSPELT) {
    const text = SPELT.replace(written, instead).replace('ReadOnly', 'readOnly');
    const { objects, rejected } = readManifestFile('web.yaml', Buffer.from(text), LIMITS);
    assert.deepEqual([objects, rejected[0]?.field], [[], field]);
    assert.match(rejected[0]?.message ?? '', new RegExp(`^is no field; did you mean "${meant}"\\?`));
  }
});
