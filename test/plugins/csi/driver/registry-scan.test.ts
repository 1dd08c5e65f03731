import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { below } from '../../../../mount/host.ts';
import { scanRegistry } from '../../../../plugins/csi/driver/registry-scan.ts';
import { realHost, scratchDirectory } from '../../../mount/scratch.ts';
import { inPrivateNamespace } from '../../../real/namespace.ts';
import { value } from '../../../value.ts';

const skip = inPrivateNamespace();

test('an empty file in the registry directory keeps no driver from being found', { skip }, async (t) => {
  const host = await realHost(t);
  const registry = scratchDirectory(t);
  writeFileSync(below(registry, 'empty'), '');
  const registrar = createServer();
  t.after(() => registrar.close());
  await new Promise<void>((resolve) => registrar.listen(below(registry, 'd-reg.sock'), resolve));
  const { sockets, refusal } = value(await scanRegistry(host, registry, () => false));
  assert.deepEqual([...sockets.keys()], [below(registry, 'd-reg.sock'), below(registry, 'empty')]);
  assert.equal(refusal, undefined);
});
