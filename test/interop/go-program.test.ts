/** What the suite says where Go or its modules are missing. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { goPrograms } from './go-program.ts';

const { skip } = goPrograms();
const GO_PROGRAM = new URL('./go-program.ts', import.meta.url).href;
const ASK = `const { goPrograms } = await import('${GO_PROGRAM}');
console.log(JSON.stringify(goPrograms('registrar').skip));`;
/** Listing reads hundreds of packages, beside builds that take both processors. */
const ASK_MS = 600_000;

/** In this namespace, with another environment. */
function ask(environment: Readonly<Record<string, string | undefined>>) {
  const argv = ['--import', import.meta.resolve('tsx'), '--input-type=module', '--eval', ASK];
  const env = { ...process.env, INTEROP_OPTIONAL: undefined, ...environment };
  return spawnSync(process.execPath, argv, { env, encoding: 'utf8', timeout: ASK_MS });
}

test('without Go everything is skipped, loudly, with what is needed', { skip }, () => {
  const empty = mkdtempSync(join(tmpdir(), 'mooring-path-'));
  try {
    const { status, stdout, stderr } = ask({ PATH: empty });
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^"SKIPPED: go is not in the PATH: install/);
    assert.match(stderr, /\*\*\* SKIPPED: go is not/);
  } finally {
    rmSync(empty, { recursive: true });
  }
});

test('modules that cannot be had fail the file, and are skipped, loudly, where that was asked for', {
  skip,
}, () => {
  const empty = mkdtempSync(join(tmpdir(), 'mooring-modules-'));
  const nowhere = { GOMODCACHE: empty, GOPROXY: 'off', GOFLAGS: '-modcacherw' };
  try {
    const failed = ask(nowhere);
    assert.notEqual(failed.status, 0);
    assert.match(
      failed.stderr,
      /modules of registrar .* cannot be fetched[\s\S]*GOPROXY[\s\S]*INTEROP_OPTIONAL=1/,
    );
    const { status, stdout, stderr } = ask({ ...nowhere, INTEROP_OPTIONAL: '1' });
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^"SKIPPED: the Go modules of registrar/);
    assert.match(stderr, /\*\*\* SKIPPED: the Go modules/);
  } finally {
    rmSync(empty, { recursive: true });
  }
});
