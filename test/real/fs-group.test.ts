/** The pod's group on secrets and emptyDirs, on the real kernel. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { AbsolutePath } from '../../mount/host.ts';
import { createLinuxHost } from '../../mount/agent-side/linux-host.ts';
import { createMounter } from '../../mount/mounter.ts';
import { createContentPlugin } from '../../plugins/pod/content.ts';
import { createEmptyDirPlugin } from '../../plugins/pod/empty-dir.ts';
import { createLayout } from '../../plugins/layout/layout.ts';
import type { PublicationCall } from '../../plugins/plugin.ts';
import { accept } from '../plugins/accept.ts';
import { callOf, content, emptyDir, filesOf } from '../plugins/local-world.ts';
import { BROKER_COMMAND } from './broker-command.ts';
import { inPrivateNamespace } from './namespace.ts';

const skip = inPrivateNamespace();

const GID = 2_000;
const root = mkdtempSync(join(tmpdir(), 'mooring-fs-group-')) as AbsolutePath;
const layout = createLayout(root);
const host = await createLinuxHost({
  remote: async () => ({ kind: 'broken', because: 'unreachable', message: 'no driver in this test' }),
  watch: () => () => {},
  brokerCommand: BROKER_COMMAND,
});
const mounter = createMounter(host, root);
mkdirSync(join(root, 'pods'), { recursive: true, mode: 0o750 });

after(async () => {
  await host.close();
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  for (const line of mounts.reverse()) {
    const target = line.split(' ')[4] ?? '';
    if (target.startsWith(`${root}/`)) spawnSync('umount', [target]);
  }
  rmSync(root, { recursive: true, force: true });
});

function grouped(call: PublicationCall): PublicationCall {
  const fsGroup = { gid: GID, changePolicy: 'Always' } as const;
  return { ...call, publication: { ...call.publication, fsGroup } };
}

function seen(path: string): string {
  const { gid, mode } = lstatSync(path);
  return `${gid} ${(mode & 0o7777).toString(8)}`;
}

test('KV-C14: a secret of mode 0400 may be read by the pod’s group, generation after generation', {
  skip,
}, async () => {
  const call = grouped(callOf(content('secret'), { 'tls/key': { text: 'one', mode: 0o400 } }));
  const target = layout.volumeDirectory(call.spec, call.publication);
  const plugin = createContentPlugin('secret', host, layout, mounter);
  for (const text of ['one', 'two']) {
    accept(await plugin.publish({ ...call, files: filesOf({ 'tls/key': { text, mode: 0o400 } }) }));
    const [generation = assert.fail()] = readdirSync(target).filter((name) => /^\.\.[0-9]/.test(name));
    assert.equal(seen(target), '2000 2755');
    assert.equal(seen(join(target, generation)), '2000 2755');
    assert.equal(seen(join(target, generation, 'tls')), '2000 2755');
    assert.equal(seen(join(target, generation, 'tls/key')), '2000 440');
    assert.equal(lstatSync(join(target, '..data')).gid, GID);
    assert.equal(readFileSync(join(target, 'tls/key'), 'utf8'), text);
  }
  accept(await plugin.unpublish(call));
});

for (const medium of ['disk', 'memory'] as const) {
  test(`KV-C14: what is made in an emptyDir (${medium}) is the group’s`, { skip }, async () => {
    const call = grouped(callOf(emptyDir(medium)));
    const target = layout.volumeDirectory(call.spec, call.publication);
    const plugin = createEmptyDirPlugin(host, layout, mounter);
    accept(await plugin.publish(call));
    assert.equal(seen(target), '2000 2777');
    writeFileSync(join(target, 'made'), '');
    assert.equal(lstatSync(join(target, 'made')).gid, GID);
    accept(await plugin.publish(call));
    assert.equal(seen(target), '2000 2777');
    accept(await plugin.unpublish(call));
  });
}
