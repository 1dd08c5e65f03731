/** Whatever a driver does to a secret before it prints it: nothing of it is shown. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { withoutSecretValues } from '../../../plugins/secret/secret-forms.ts';
import { TOLD_FORMS } from '../told-forms.ts';

const CHARACTERS = [
  ...'abcXYZ019',
  ...' \t\n\r',
  ...'!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~',
  ...'\u0000\u0007\u001b\u007f\u0085\u00a0éß\u2028\u202eあ𝒳😀',
];
/** At least six different ones that are not space, so that no fragment of another form is met by chance. */
const secrets = fc
  .array(fc.oneof(fc.constantFrom(...CHARACTERS), fc.constantFrom(...'qwertzQWERTZ')), {
    minLength: 6,
    maxLength: 60,
  })
  .map((characters) => characters.join(''))
  .filter((text) => text.trim() === text && new Set(text.replace(/\s/gu, '')).size >= 6);
const contexts = fc.constantFrom(
  ['', ''],
  ['mount failed: pass=', ' (exit 32)'],
  ['cannot log in with "', '": denied'],
  ['100%', '%'],
  ['C:\\', '\\'],
  ["'", "'"],
  ['\\\\', ','],
  ['&', ';'],
);
/** Characters: `user:` in hex, or the quotes of quotes. */
const AROUND_MAX = 40;
const splits = fc.constantFrom('\n', '\r\n', '\n    ', '\r\n\t', '\\\n');

/** The secret itself, and what is left of it when space does not count. */
function isIn(text: string, secret: string): boolean {
  const dense = (one: string): string => one.replace(/\s/gu, '');
  return text.includes(secret) || dense(text).includes(dense(secret));
}

for (const [name, told] of Object.entries(TOLD_FORMS)) {
  test(`INV-25: no secret is shown in the form ${name}, in no context, and wherever a line ends in it`, () => {
    fc.assert(
      fc.property(
        secrets,
        contexts,
        fc.option(fc.tuple(fc.nat(), splits), { freq: 2 }),
        (secret, [before = '', behind = ''], split) => {
          const form = told(secret);
          const at = split === null ? 0 : split[0] % (form.length + 1);
          // A shell's line that goes on within an escape of a backslash would mean another one.
          const isAtBackslash = form.slice(Math.max(0, at - 1), at + 1).includes('\\');
          const line = split === null || (isAtBackslash && split[1] === '\\\n') ? '' : split[1];
          const text = `${before}${form.slice(0, at)}${line}${form.slice(at)}${behind}`;
          const shown = withoutSecretValues(text, ['other', secret, 'another one']);
          assert.ok(shown.includes('[redacted]'), shown);
          assert.ok(!isIn(shown, form), shown);
          assert.ok(!isIn(shown, secret), shown);
          const rest = shown.length - before.length - behind.length - '[redacted]'.length;
          assert.ok(rest <= AROUND_MAX, `only quotes, and what was printed with it: ${shown}`);
        },
      ),
      { numRuns: 200 },
    );
  });
}

test('what is no secret is shown as it was said', () => {
  const text =
    'mount: /dev/loop0: can\'t read "superblock" (%2F, \\n, YWJj, 0x61) on 4 of 12 disks: 61 62 63 64';
  assert.equal(withoutSecretValues(text, ['correct horse', 'battery/staple', '']), text);
});

test('a percent sign before a secret, of whose beginning it makes an escape, hides nothing of it', () => {
  const twice = TOLD_FORMS['url.QueryEscape twice'] ?? assert.fail('no such form');
  const secret = '1E qaß\u0007';
  assert.equal(
    withoutSecretValues(`disk full to 100%${twice(secret)}%`, [secret]),
    'disk full to 100%[redacted]%',
  );
});

test('a secret of three characters is left alone', () => {
  assert.equal(withoutSecretValues('the other', ['the']), 'the other');
});

test('every line of a key is taken out by itself, and what a driver has cut off', () => {
  const key = '-----BEGIN KEY-----\nQUJDREVGR0hJSktMTU5P\nUVJTVFVWV1hZWmFiY2Rl\n-----END KEY-----\n';
  assert.equal(withoutSecretValues('bad line UVJTVFVWV1hZWmFiY2Rl!', [key]), 'bad line [redacted]!');
  assert.equal(
    withoutSecretValues('bad key "-----BEGIN KEY-----\\nQUJDREVGR0hJ', [key]),
    'bad key "[redacted]',
  );
});

test('a short line of a secret, however far it is indented, takes no words out of others', () => {
  const text = 'cannot mount - connection refused: {"on": {}, "disk": {}}';
  const secret =
    '{\n            "id": "abcdefgh",\n            on\n          -\n          },\n           }\n}';
  assert.equal(withoutSecretValues(text, [secret]), text);
  assert.equal(withoutSecretValues(`${text} "id": "abcdefgh"`, [secret]), `${text} [redacted]`);
});

test('INV-25: what was cut off in the middle of a sentence, and is marked so, is no more shown than at its end', () => {
  const secret = 'correct-horse-battery-staple';
  const forms = [secret, Buffer.from(secret).toString('base64'), Buffer.from(secret).toString('hex')];
  for (const form of forms) {
    for (const kept of [17, form.length - 1]) {
      for (const mark of ['...', '…', '"...', '\\"...', ' ...', '***', '[...]', '<truncated>', '\\u2026']) {
        const text = `bad password "${form.slice(0, kept)}${mark} (exit 32)`;
        const shown = withoutSecretValues(text, [secret]);
        assert.equal(shown, `bad password "[redacted]${mark} (exit 32)`);
      }
    }
  }
  assert.equal(withoutSecretValues('in the correct... order', [secret]), 'in the correct... order');
});

test('two secrets, one inside the other, leave no rest', () => {
  assert.equal(withoutSecretValues('is hunter2-and-more', ['hunter2', 'hunter2-and-more']), 'is [redacted]');
});

test('a text that is made to take long is not shown; a long one is cut', () => {
  const secret = `${'a'.repeat(8_000)}b`;
  assert.equal(withoutSecretValues('a'.repeat(1_000_000), [secret]), '[redacted]');
  const escaped = '\\n'.repeat(500_000);
  assert.ok(!withoutSecretValues(escaped, ['n'.repeat(4_000)]).includes('n'.repeat(4_000)));
  assert.ok(withoutSecretValues('x'.repeat(1_000_000), ['unseen']).length < 2_500);
});

test('a text in which too many values would have to be looked for is not shown', () => {
  const values = (count: number) => Array.from({ length: count }, (_, at) => `value-number-${at}`);
  assert.equal(withoutSecretValues('it is value-number-999.', values(1_000)), 'it is [redacted].');
  assert.equal(withoutSecretValues('it is none of them', values(1_025)), '[redacted]');
});
