/** What the driver says of itself and of what it cannot keep, in words that help. Needs no machine. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { VolumeCapability_AccessMode_Mode as Mode } from '../../../../plugins/csi/wire/generated/csi.ts';
import { parseAccess } from '../../../../plugins/loopfile/device/capability.ts';
import { createIdentityService } from '../../../../plugins/loopfile/identity-service.ts';
import type { Pool } from '../../../../plugins/loopfile/pool/pool.ts';

test('an access mode that cannot be kept is refused by its name, with those that can', () => {
  const refused = (mode: number | undefined): string => {
    const access = parseAccess({
      accessMode: mode === undefined ? undefined : { mode: mode as Mode },
      accessType: { $case: 'block', value: {} },
    });
    return access.ok ? assert.fail('it was taken') : access.failure.message;
  };
  const offered =
    'only SINGLE_NODE_WRITER, SINGLE_NODE_READER_ONLY, SINGLE_NODE_SINGLE_WRITER, SINGLE_NODE_MULTI_WRITER';
  assert.equal(refused(Mode.MULTI_NODE_READER_ONLY), `access mode MULTI_NODE_READER_ONLY: ${offered}`);
  assert.equal(refused(Mode.UNKNOWN), `access mode UNKNOWN: ${offered}`);
  assert.equal(refused(99), `access mode 99: ${offered}`);
  assert.equal(refused(undefined), 'access mode missing');
});

test('the version of the driver is that of the package, and a run from source says so', async () => {
  const identity = createIdentityService('a.example', undefined as unknown as Pool);
  const info = await identity.getPluginInfo?.({});
  assert.equal(info?.vendorVersion, '0.0.0-source');
  // What build.ts sets it to: by name, so that a new name there is a red test here.
  const build = readFileSync(new URL('../../../../build.ts', import.meta.url), 'utf8');
  assert.match(build, /MOORING_VERSION: JSON\.stringify\(versionOfPackage\(\)\)/);
});
