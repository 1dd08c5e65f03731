/** A machine without a tool gets it, or its owner is told, before anything has begun. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { findTool } from '../../mount/path-tool.ts';
import { inPrivateNamespace } from '../real/namespace.ts';
import { NEEDED, type ProvideParts, provideTools, type Purpose, type SystemTool } from './system-tools.ts';

const skip = inPrivateNamespace();
const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url));
const ALL = [...new Set(Object.values(NEEDED).flat())] as SystemTool[];

/** A machine without some tools; apt-get brings those of `repository`. */
function machine(without: readonly SystemTool[], more: Partial<ProvideParts> = {}) {
  const hidden = new Set<SystemTool>(without);
  const said: string[] = [];
  const ran: string[] = [];
  const parts: ProvideParts = {
    install: true,
    has: (tool) => !hidden.has(tool),
    run(argv) {
      ran.push(argv.join(' '));
      if (argv.includes('install')) hidden.clear();
      return { code: 0, output: '' };
    },
    rights: 'root',
    hasApt: true,
    say: (line) => said.push(line),
    ...more,
  };
  return { parts, said, ran };
}

describe('the tools of a machine', () => {
  test('what is missing is installed, after one line that says so', () => {
    const { parts, said, ran } = machine(['mkfs.xfs', 'xfs_growfs']);
    assert.equal(provideTools('test', parts), undefined);
    assert.deepEqual(said, ['test needs mkfs.xfs, xfs_growfs: installing xfsprogs (--no-install: do not)']);
    assert.deepEqual(ran, [
      'apt-get update -q',
      'env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends xfsprogs',
    ]);
  });

  test('who is not root has it installed through sudo', () => {
    const { parts, ran } = machine(['blkid'], { rights: 'sudo' });
    assert.equal(provideTools('demo', parts), undefined);
    assert.ok(
      ran.every((line) => line.startsWith('sudo -- ')),
      ran.join('\n'),
    );
  });

  test('with nothing missing nothing is said and nothing is run', () => {
    const { parts, said, ran } = machine([]);
    assert.equal(provideTools('vm', parts), undefined);
    assert.deepEqual([said, ran], [[], []]);
  });

  for (const [why, more] of [
    ['when nothing may be installed', { install: false }],
    ['on a machine that is no Debian', { hasApt: false }],
    ['for somebody who is not root and has no sudo', { rights: 'none' }],
  ] as const) {
    test(`${why}, one error names the tools and the command that helps`, () => {
      const { parts, said, ran } = machine(['mkfs.ext4', 'flock'], more);
      assert.equal(
        provideTools('demo', parts),
        'demo needs flock, mkfs.ext4, which this machine does not have. On Debian, as root: ' +
          'apt-get update && apt-get install -y -q --no-install-recommends e2fsprogs util-linux',
      );
      assert.deepEqual([said, ran], [[], []]);
    });
  }

  test('an installation that brings nothing is an error with its last words', () => {
    const { parts } = machine(['mkfs.xfs'], {
      run: () => ({ code: 100, output: 'E: Unable to locate package' }),
    });
    assert.match(provideTools('test', parts) ?? '', /xfsprogs.*still missing.*E: Unable to locate package/s);
  });
});

/** Hidden as on a machine that never had it: nothing can run what lies there. */
function withoutTool(tool: SystemTool, argv: readonly string[]) {
  const script = 'mount --bind /dev/null "$1" && shift && exec "$@"';
  const file = findTool(tool) ?? assert.fail(`${tool} is not here`);
  return spawnSync('unshare', ['--mount', 'sh', '-c', script, 'sh', file, process.execPath, ...argv], {
    encoding: 'utf8',
    cwd: REPOSITORY,
  });
}

describe('each tool in turn is hidden from this machine', { skip }, () => {
  const TSX = ['--import', import.meta.resolve('tsx')];
  /** Without these the test cannot hide the others; and what is not here hides itself. */
  const hideable = ALL.filter((tool) => !['mount', 'unshare'].includes(tool) && findTool(tool) !== undefined);

  for (const tool of hideable) {
    const purpose = (Object.keys(NEEDED) as Purpose[]).find((one) => NEEDED[one].includes(tool as never));
    test(`without ${tool} nothing begins, and one line says what helps`, () => {
      const told = withoutTool(tool, [...TSX, 'test/machine/provide.ts', String(purpose), '--no-install']);
      assert.equal(told.status, 1, told.stderr);
      assert.equal(told.stderr.trimEnd().split('\n').length, 1, told.stderr);
      assert.ok(told.stderr.includes(tool) && told.stderr.includes('apt-get install'), told.stderr);
    });
  }

  for (const [command, argv] of [
    ['npm test', ['test/run.ts']],
    ['npm run demo', ['test/demo/main.ts']],
    ['npm run bench', ['test/bench/main.ts']],
    ['npm run hostile', ['test/hostile/main.ts']],
  ] as const) {
    test(`${command} asks for its tools before it does anything`, () => {
      const told = withoutTool('blkid', [...TSX, ...argv, '--no-install']);
      assert.equal(told.status, 1, told.stderr);
      assert.match(told.stderr, /needs blkid, which this machine does not have/);
      assert.equal(told.stdout, '', 'nothing was begun');
    });
  }

  test('the gate asks the same list', () => {
    const gate = spawnSync('grep', ['-c', 'test/machine/provide.ts', '.ci/run'], { cwd: REPOSITORY });
    assert.equal(gate.status, 0);
    assert.ok(existsSync(`${REPOSITORY}/test/machine/provide.ts`));
  });
});
