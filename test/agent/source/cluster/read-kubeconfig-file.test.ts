import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readKubeconfigFile } from '../../../../agent/source/cluster/read-kubeconfig-file.ts';
import { parseManifest } from '../../../../agent/source/manifests/parse/manifest.ts';
import { createMemoryHost } from '../../../plugins/memory-host.ts';
import { path } from '../../manifests.ts';

const FILE = path('/etc/mooring/kubeconfig');

function kubeconfig(user: object): string {
  return JSON.stringify({
    'current-context': 'c',
    clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443' } }],
    users: [{ name: 'c', user }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
  });
}

/** The server, or the failure; and what is said of the file. */
async function read(mode: number, user: object = { token: 'canary' }) {
  const host = createMemoryHost();
  host.plant(FILE, { kind: 'file', mode, content: kubeconfig(user) });
  const warnings: string[] = [];
  const said = (message: string): void => void warnings.push(message);
  const rest = [async () => parseManifest, said] as const;
  const access = await readKubeconfigFile(host, FILE, ...rest);
  const answer = access.ok ? access.value.server : `${access.failure.code}: ${access.failure.message}`;
  return { answer, warnings };
}

test('SE-38: a kubeconfig that others can write is refused with the cure, and no byte of it is told', async () => {
  for (const mode of [0o620, 0o602, 0o666]) {
    const { answer } = await read(mode);
    assert.match(
      answer,
      /^path-unsafe: .*\/etc\/mooring\/kubeconfig.* can be written by others .*chmod go-w/,
    );
    assert.doesNotMatch(answer, /canary/);
  }
  assert.equal((await read(0o600)).answer, 'https://10.0.0.1:6443');
});

test('SE-38: a kubeconfig that others can read is warned of where it holds what proves who we are', async () => {
  const { answer, warnings } = await read(0o644);
  assert.equal(answer, 'https://10.0.0.1:6443');
  assert.equal(warnings.length, 1);
  assert.match(
    warnings[0] ?? '',
    /\/etc\/mooring\/kubeconfig.* can be read by others .*mode 0644.*chmod go-r/,
  );
  assert.deepEqual((await read(0o600)).warnings, []);
  assert.deepEqual((await read(0o644, { tokenFile: 'token' })).warnings, []);
});

test('a kubeconfig that is not there, or is no file, is told as that', async () => {
  const host = createMemoryHost();
  const told = async (file: string): Promise<string> => {
    const access = await readKubeconfigFile(
      host,
      path(file),
      async () => parseManifest,
      () => {},
    );
    return access.ok ? 'read' : `${access.failure.code}: ${access.failure.message}`;
  };
  for (const file of [FILE, '/etc/kubernetes/nowhere/kubeconfig'])
    assert.equal(await told(file), `spec-invalid: kubeconfig ${file} cannot be used: it is not there`);
  host.plant(FILE, { kind: 'directory', mode: 0o700 });
  assert.equal(
    await told(FILE),
    `spec-invalid: kubeconfig ${FILE} cannot be used: it is a directory; expected a file`,
  );
});
