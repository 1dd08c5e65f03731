/** What `mooring drive` does on the machine by itself is done to its own things alone. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readProbe, removeScratch, writeProbe } from '../../agent/drive/rig/machine.ts';
import { inPrivateNamespace } from '../real/namespace.ts';

const skip = inPrivateNamespace();

function directory(t: TestContext): string {
  const made = mkdtempSync(join(realpathSync(tmpdir()), 'mooring-machine-'));
  t.after(() => rmSync(made, { recursive: true }));
  return made;
}

test('SE-01: a link in a volume, where the file of a probe is, leads nobody out of the volume', async (t) => {
  const outside = join(directory(t), 'outside');
  const volume = directory(t);
  writeFileSync(outside, 'of the machine');
  symlinkSync(outside, join(volume, 'mooring-drive'));
  assert.equal(await writeProbe(join(volume, 'mooring-drive'), 'written'), 'ELOOP');
  assert.equal(readFileSync(outside, 'utf8'), 'of the machine');
  assert.deepEqual(await readProbe(join(volume, 'mooring-drive')), { ok: false, errno: 'ELOOP' });
});

test('INV-8: where the mount table cannot be read, nothing of a scratch directory is removed', {
  skip,
}, async (t) => {
  const scratch = directory(t);
  const volume = join(scratch, 'pod-1', 'mount');
  mkdirSync(volume, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', 'volume', volume]);
  const file = join(volume, 'data');
  writeFileSync(file, 'of the volume');
  const garbage = join(directory(t), 'mountinfo');
  writeFileSync(garbage, 'no mount\n');
  execFileSync('mount', ['--bind', garbage, `/proc/${process.pid}/mountinfo`]);
  try {
    assert.deepEqual(await removeScratch(scratch), [scratch]);
    assert.ok(existsSync(file), 'what a volume has is not removed');
  } finally {
    execFileSync('umount', [`/proc/${process.pid}/mountinfo`]);
    execFileSync('umount', [volume]);
  }
});
