/** A disk without a size, as one whose target or medium is not ready: nothing is known of what it holds. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { below, parseAbsolutePath } from '../../../mount/host.ts';
import { createMounter } from '../../../mount/mounter.ts';
import { DeviceStage } from '../../../plugins/local/device-stage.ts';
import { realHost, scratchDirectory } from '../../mount/scratch.ts';
import { inPrivateNamespace } from '../../real/namespace.ts';
import { callOf } from '../local-world.ts';
import { localVolume } from './local-world.ts';

const LUKS = Buffer.concat([
  Buffer.from('LUKS\xba\xbe', 'latin1'),
  Buffer.from([0, 1]),
  Buffer.alloc(1024 * 1024),
]);
const skip = inPrivateNamespace();

test('INV-9: a disk of no size is not taken for a blank one, and nobody is told to wipe it', {
  skip,
}, async (t) => {
  const scratch = scratchDirectory(t);
  const [file, root] = [below(scratch, 'disk'), below(scratch, 'root')];
  mkdirSync(root);
  writeFileSync(file, '');
  const made = execFileSync('losetup', ['--find', '--show', file], { encoding: 'utf8' }).trim();
  t.after(() => execFileSync('losetup', ['--detach', made]));
  const device = parseAbsolutePath(made) ?? assert.fail(made);
  const host = await realHost(t);
  const stage = new DeviceStage({ host, layout: { root }, mounter: createMounter(host, root) });
  const [target, intent] = [below(root, 'mounts', 'data'), below(root, 'formats', 'data')];
  const volume = { title: 'the disk', fsType: '', mountOptions: [], target, intent };
  const empty = await stage.stage(volume, device, callOf(localVolume()));
  assert.deepEqual(!empty.ok && [empty.failure.code, empty.failure.effect], ['input-output', 'none']);
  assert.match(empty.ok ? 'ok' : empty.failure.message, /has no bytes/);
  assert.ok(!existsSync(intent), 'no intent to format');
  writeFileSync(file, LUKS);
  execFileSync('losetup', ['--set-capacity', device]);
  const full = await stage.stage(volume, device, callOf(localVolume()));
  assert.match(full.ok ? 'ok' : full.failure.message, /holds crypto_LUKS$/);
});
