/** What every parser of manifests says: the one in a process of its own, and the one that tests and simulation use. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FileReading } from '../../agent/source/manifests/parse/file-reading.ts';
import { DEFAULT_MANIFEST_LIMITS } from '../../agent/source/manifests/parse/manifest-limits.ts';
import type { ManifestParser } from '../../agent/source/manifests/parse/manifest-parser.ts';
import { readManifestFile } from '../../agent/source/manifests/parse/manifest-reading.ts';
import { identityOf } from '../../kubernetes/objects/objects.ts';
import { HOSTILE } from '../agent/hostile-manifests.ts';
import { configMapYaml, podYaml, secretYaml, volumeYaml } from '../agent/manifests.ts';

const HOSTILE_BYTES = 20_000;

export function manifestParserContract(name: string, parser: ManifestParser): void {
  async function read(text: string): Promise<FileReading> {
    const request = { origin: 'a.yaml', bytes: Buffer.from(text), limits: DEFAULT_MANIFEST_LIMITS };
    const said = await parser.parse(request);
    assert.ok(said.ok, JSON.stringify(said));
    return said.value;
  }
  const direct = (text: string): FileReading =>
    readManifestFile('a.yaml', Buffer.from(text), DEFAULT_MANIFEST_LIMITS);

  test(`${name}: every kind of object arrives as it was read, its secrets sealed`, async () => {
    const text = [
      podYaml('web', { tmp: 'emptyDir: {}' }),
      secretYaml('s', { user: 'me', password: 'hunter2' }),
      configMapYaml('c', { a: '', b: 'x', 'c.txt': 'längér' }),
      volumeYaml('v'),
      'kind: Pod\napiVersion: v1\nmetadata: {name: bad, uid: u}\nspec: {}\n',
    ].join('---\n');
    const reading = await read(text);
    assert.deepEqual({ ...reading }, { ...direct(text) });
    const secret = reading.objects.map(({ object }) => object).find(({ kind }) => kind === 'Secret');
    assert.doesNotMatch(JSON.stringify(reading), /hunter2/);
    const data = secret?.kind === 'Secret' ? secret.data.reveal() : new Map<string, Uint8Array>();
    assert.deepEqual(
      [...data].map(([key, bytes]) => [key, String(bytes)]),
      [
        ['user', 'me'],
        ['password', 'hunter2'],
      ],
    );
  });

  test(`${name}: a long file arrives whole and in order`, async () => {
    const text = Array.from({ length: 900 }, (_, index) => configMapYaml(`c${index}`, { a: 'x' })).join(
      '---\n',
    );
    const { objects } = await read(text);
    assert.deepEqual(
      objects.map(({ object }) => identityOf(object)),
      direct(text).objects.map(({ object }) => identityOf(object)),
    );
  });

  test(`${name}: what is hostile is judged as it is everywhere`, async () => {
    for (const [kind, make] of Object.entries(HOSTILE)) {
      const text = make(HOSTILE_BYTES);
      assert.deepEqual({ ...(await read(text)) }, { ...direct(text) }, kind);
    }
  });
}
