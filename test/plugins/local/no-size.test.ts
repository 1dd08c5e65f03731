/** A disk without a size, as one whose target or medium is not ready: nothing is known of what it holds. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { below, parseAbsolutePath } from '../../../mount/host.ts';
import { scratchDirectory } from '../../mount/scratch.ts';
import { inPrivateNamespace } from '../../real/namespace.ts';
import { stageWorld } from './stage-world.ts';

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
  const file = below(scratch, 'disk');
  writeFileSync(file, '');
  const made = execFileSync('losetup', ['--find', '--show', file], { encoding: 'utf8' }).trim();
  t.after(() => execFileSync('losetup', ['--detach', made]));
  const device = parseAbsolutePath(made) ?? assert.fail(made);
  const { stage, volume, call } = await stageWorld(t, scratch);
  const empty = await stage.stage(volume, device, call);
  assert.deepEqual(!empty.ok && [empty.failure.code, empty.failure.effect], ['input-output', 'none']);
  assert.match(empty.ok ? 'ok' : empty.failure.message, /has no bytes/);
  assert.ok(!existsSync(volume.intent), 'no intent to format');
  writeFileSync(file, LUKS);
  execFileSync('losetup', ['--set-capacity', device]);
  const full = await stage.stage(volume, device, call);
  assert.match(full.ok ? 'ok' : full.failure.message, /holds crypto_LUKS$/);
});
