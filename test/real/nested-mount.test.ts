/** A volume that a container has mounted below a read-only configMap, on the real kernel: it outlives each refresh. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createLinuxHost } from '../../mount/agent-side/linux-host.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import { createMounter } from '../../mount/mounter.ts';
import { createLayout } from '../../plugins/layout/layout.ts';
import { createContentPlugin } from '../../plugins/pod/content.ts';
import { Sensitive } from '../../plugins/secret/sensitive.ts';
import { accept } from '../plugins/accept.ts';
import { callOf, content } from '../plugins/local-world.ts';
import { BROKER_COMMAND } from './broker-command.ts';
import { inPrivateNamespace } from './namespace.ts';

const skip = inPrivateNamespace();

const scratch = mkdtempSync(join(tmpdir(), 'mooring-nested-'));
const root = join(scratch, 'root') as AbsolutePath;
const layout = createLayout(root);
const host = await createLinuxHost({
  remote: async () => ({ kind: 'broken', because: 'unreachable', message: 'no driver in this test' }),
  watch: () => () => {},
  brokerCommand: BROKER_COMMAND,
});
mkdirSync(join(root, 'pods'), { recursive: true, mode: 0o750 });
const base = callOf(content('config-map'), {});
const target = layout.target(base.spec, base.publication);

after(async () => {
  await host.close();
  spawnSync('umount', [target]);
  rmSync(scratch, { recursive: true, force: true });
});

/** For a group, whose walk goes through the directory as well. */
function callWith(text: string) {
  const files = new Sensitive(
    new Map([
      ['app.conf', { content: Buffer.from(text), mode: 0o644 }],
      ['run/cache', { content: new Uint8Array(), mode: 0o755, isMountPoint: true as const }],
    ]),
  );
  const fsGroup = { gid: 4_711, changePolicy: 'Always' } as const;
  return { ...base, publication: { ...base.publication, fsGroup }, files };
}

test('what is mounted below a configMap stays mounted in the container when the files change', {
  skip,
}, async () => {
  const plugin = createContentPlugin('config-map', host, layout, createMounter(host, root));
  accept(await plugin.publish(callWith('one')));
  const [app, cache] = [join(scratch, 'app'), join(scratch, 'cache')];
  for (const directory of [app, cache]) mkdirSync(directory);
  writeFileSync(join(cache, 'data'), 'kept');
  // As a runtime does it: the files read-only first, then what lies below them.
  const binds = [
    `mount --bind ${target} ${app}`,
    `mount -o remount,bind,ro ${app}`,
    `mount --bind ${cache} ${app}/run/cache`,
  ].join(' && ');
  const script = `${binds} && echo ready && read -r line && cat ${app}/app.conf ${app}/run/cache/data`;
  const container = spawn('unshare', ['-m', '--propagation', 'private', 'sh', '-c', script]);
  let said = '';
  container.stdout.setEncoding('utf8').on('data', (text: string) => {
    const wasReady = said !== '';
    said += text;
    if (wasReady) return;
    void plugin.publish(callWith('two')).then(() => container.stdin.end('go on\n'));
  });
  const status = await new Promise((settle) => container.on('close', settle));
  assert.deepEqual([status, said], [0, 'ready\ntwokept']);
  assert.equal(readFileSync(join(target, 'app.conf'), 'utf8'), 'two');
  accept(await plugin.publish(callWith('two')));
  assert.equal(await plugin.isUpToDate?.(callWith('two')), true);
  accept(await plugin.unpublish(callWith('two')));
});
