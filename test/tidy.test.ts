/** House rules as a test: floors, one importer per package, effects only behind the port, sizes. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { FAILURE_RETRY } from '../mount/failure.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FLOORS = ['mount', 'plugins', 'kubernetes', 'reconciler', 'agent'] as const;
const LINE_COLUMNS_MAX = 120;
const FILE_LINES_MAX = 400;

interface Source {
  readonly path: string;
  readonly text: string;
  readonly imports: readonly string[];
}

function sourcesBelow(folder: string): Source[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.includes('generated/'))
    .map((name) => {
      const path = join(folder, name);
      const text = readFileSync(join(ROOT, path), 'utf8');
      const imports = [...text.matchAll(/(?:from|import\()\s*'([^']+)'/g)].map((match) => match[1] ?? '');
      return { path, text, imports };
    });
}

const product = FLOORS.flatMap(sourcesBelow);
const floorOf = (path: string): number => FLOORS.findIndex((floor) => path.startsWith(`${floor}/`));
const resolved = (source: Source, name: string): string => normalize(join(dirname(source.path), name));

test('imports only go down the stairs', () => {
  for (const source of product) {
    for (const name of source.imports.filter((one) => one.startsWith('.'))) {
      const target = resolved(source, name);
      assert.ok(floorOf(target) >= 0, `${source.path} imports ${target}, which is on no floor`);
      assert.ok(floorOf(target) <= floorOf(source.path), `${source.path} reaches up to ${target}`);
    }
  }
});

const roomOf = (path: string): string => dirname(path);

/** The entry connects everything. */
const inRooms = product.filter(({ path }) => path !== 'agent/main.ts');
/** Of a room, unless today's is worse. */
const ROOM_FILES_MAX = 20;
const WORST_ROOMS: Readonly<Record<string, number>> = { 'plugins/loopfile': 25 };

test('rooms are small enough to look round in', () => {
  const files = new Map<string, number>();
  for (const { path } of product) files.set(roomOf(path), (files.get(roomOf(path)) ?? 0) + 1);
  for (const [room, count] of files)
    assert.ok(count <= (WORST_ROOMS[room] ?? ROOM_FILES_MAX), `${room}/ has ${count} files`);
  for (const [room, worst] of Object.entries(WORST_ROOMS))
    assert.equal(files.get(room), worst, `${room}/ is better than it was: lower its limit`);
});

test('rooms never import each other in a circle', () => {
  const neighbours = new Map<string, Set<string>>();
  for (const source of inRooms) {
    const from = roomOf(source.path);
    const to = source.imports
      .filter((name) => name.startsWith('.'))
      .map((name) => roomOf(resolved(source, name)));
    neighbours.set(from, new Set([...(neighbours.get(from) ?? []), ...to.filter((room) => room !== from)]));
  }
  const done = new Set<string>();
  const visit = (room: string, way: readonly string[]): void => {
    assert.ok(!way.includes(room), [...way.slice(way.indexOf(room)), room].join(' -> '));
    if (done.has(room)) return;
    for (const next of neighbours.get(room) ?? []) visit(next, [...way, room]);
    done.add(room);
  };
  for (const room of neighbours.keys()) visit(room, []);
});

/** Where each package may be imported: one file, so that it can be replaced in an afternoon. */
const IMPORTER: Readonly<Record<string, string>> = {
  '@grpc/grpc-js': 'plugins/csi/wire/grpc.ts',
  chokidar: 'agent/source/manifests/directory-watcher.ts',
  commander: 'agent/main.ts',
  execa: 'mount/tool.ts',
  'p-queue': 'reconciler/run/executor.ts',
  pino: 'mount/process/journal-log.ts',
  valibot: 'agent/config/config.ts',
  yaml: 'agent/source/manifests/manifest.ts',
};

test('each third-party package is imported in exactly one place', () => {
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    dependencies: object;
  };
  for (const source of product) {
    for (const name of source.imports) {
      if (name.startsWith('.') || name.startsWith('node:')) continue;
      assert.equal(source.path, IMPORTER[name], `${source.path} imports ${name}`);
    }
  }
  for (const [name, path] of Object.entries(IMPORTER)) {
    assert.ok(name in dependencies, `${name} is not a dependency`);
    assert.ok(
      product.some((source) => source.path === path && source.imports.includes(name)),
      `${path} does not import ${name}`,
    );
  }
});

/** Effects outside the port: only these files may reach for them (INV-26, INV-29, INV-36). */
const EFFECT_MODULES =
  /^node:(fs|fs\/promises|child_process|net|http|https|dgram|timers.*|worker_threads|cluster|process)$/;
const EFFECT_FILES =
  /^(mount\/(tool|path-tool|mount-info|broker\/.*|agent-side\/(linux-host|broker-.*|.*-broker)|process\/.*)|plugins\/loopfile\/.*|plugins\/csi\/wire\/grpc|agent\/(main|api\/(metrics-server|api-server)|cli\/(api-client|process-screen|.*-command)|source\/manifests\/directory-watcher|drive\/(rig\/(machine|namespace|driver-child)|drive-command)))\.ts$/;
const EFFECT_CALLS =
  /\b(Date\.now|Math\.random|setTimeout|setInterval|performance\.now|console\.|process\.(?!getuid))/;

test('no effect bypasses the port', () => {
  for (const source of product.filter(({ path }) => !EFFECT_FILES.test(path))) {
    for (const name of source.imports)
      assert.ok(!EFFECT_MODULES.test(name), `${source.path} imports ${name}`);
    const code = source.text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
    const call = EFFECT_CALLS.exec(code);
    assert.equal(call, null, `${source.path} calls ${call?.[0]} itself`);
  }
});

/** A regular expression cannot be broken over lines. */
const UNBREAKABLE = /^ *\/\^.*\$\/[a-z]*;$/;

test('lines, files and exports keep to the house', () => {
  for (const source of [...product, ...sourcesBelow('test')]) {
    const lines = source.text.split('\n');
    assert.ok(
      lines.length <= FILE_LINES_MAX || source.path.startsWith('test/'),
      `${source.path} has ${lines.length} lines`,
    );
    lines.forEach((line, index) => {
      if (UNBREAKABLE.test(line)) return;
      assert.ok(line.length <= LINE_COLUMNS_MAX, `${source.path}:${index + 1} has ${line.length} columns`);
    });
    assert.ok(!/^export default/m.test(source.text), `${source.path} has a default export`);
  }
});

test('no test asserts how long something took', () => {
  for (const { path, text } of sourcesBelow('test')) {
    const asserted = /\bassert\b[^;]*?\b(?:performance|Date)\.now\(\)[^;]*;/.exec(text);
    assert.equal(asserted, null, `${path}: ${asserted?.[0]}`);
  }
});

test('nothing in the product imports a test', () => {
  for (const source of product) {
    for (const name of source.imports)
      assert.ok(!resolved(source, name).startsWith('test/'), `${source.path} imports ${name}`);
  }
});

test('every source file is imported by something', () => {
  const entries = new Set(['agent/main.ts', 'mount/broker/broker-main.ts', 'plugins/loopfile/main.ts']);
  const imported = new Set(
    [...product, ...sourcesBelow('test')].flatMap((source) =>
      source.imports.map((name) => resolved(source, name)),
    ),
  );
  for (const { path } of product) assert.ok(entries.has(path) || imported.has(path), `${path} is dead`);
});

test('every failure code has its cure in docs/OPERATING.md, and no cure is left without a code', () => {
  const text = readFileSync(join(ROOT, 'docs/OPERATING.md'), 'utf8');
  const documented = [...text.matchAll(/^### `([a-z-]+)`/gm)].map((match) => match[1]);
  assert.deepEqual([...documented].sort(), Object.keys(FAILURE_RETRY).sort());
});
