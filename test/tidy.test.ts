/** House rules as a test: floors, one importer per package, effects only behind the port, sizes, what is dead. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { FAILURE_RETRY } from '../mount/failure.ts';
import {
  arrowsOfRooms,
  FLOORS,
  floorOf,
  inRooms,
  neighboursOfRooms,
  product,
  resolved,
  ROOT,
  roomOf,
  type Source,
  sourcesBelow,
} from './house-plan.ts';

const LINE_COLUMNS_MAX = 120;

/** A process may end itself. */
const OWN_END = /process\.kill\(process\.pid,/;

test('the tests signal by signal.ts, which knows one process from a group and from the machine', () => {
  for (const { path, text } of sourcesBelow('test')) {
    if (path === 'test/signal.ts' || path === 'test/tidy.test.ts') continue;
    for (const line of text.split('\n'))
      assert.ok(!line.includes('process.kill(') || OWN_END.test(line), `${path}: ${line.trim()}`);
  }
});

test('imports only go down the stairs', () => {
  for (const source of product) {
    for (const name of source.imports.filter((one) => one.startsWith('.'))) {
      const target = resolved(source, name);
      assert.ok(floorOf(target) >= 0, `${source.path} imports ${target}, which is on no floor`);
      assert.ok(floorOf(target) <= floorOf(source.path), `${source.path} reaches up to ${target}`);
    }
  }
});

/** Only agent/ and kubernetes/ know where a wish comes from. Comments may name what a rule was made for. */
const CLUSTER_WORDS =
  /\b(?:resourceVersion|finalizers?|volumesInUse|volumesAttached|kubeconfig|apiserver|StorageClass|CSINode)\b/;

test('nothing below agent/ knows of an API server', () => {
  for (const { path, text } of product) {
    if (!/^(?:reconciler|plugins|mount)\//.test(path)) continue;
    const code = text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
    assert.equal(CLUSTER_WORDS.exec(code)?.[0], undefined, `${path} speaks of a cluster`);
  }
});

const ROOM_FILES_MAX = 20;

test('rooms are small enough to look round in', () => {
  const files = new Map<string, number>();
  for (const { path } of product) files.set(roomOf(path), (files.get(roomOf(path)) ?? 0) + 1);
  for (const [room, count] of files) assert.ok(count <= ROOM_FILES_MAX, `${room}/ has ${count} files`);
});

test('rooms of one floor import along the arrows that ARCHITECTURE.md draws, and no others', () => {
  const text = readFileSync(join(ROOT, 'docs/ARCHITECTURE.md'), 'utf8');
  const drawn = text.split('\n').filter((line) => / → /.test(line) && /^[a-z]/.test(line));
  assert.deepEqual(drawn, arrowsOfRooms());
});

test('every room has its line in ARCHITECTURE.md, which says what is looked for there', () => {
  const text = readFileSync(join(ROOT, 'docs/ARCHITECTURE.md'), 'utf8');
  for (const room of new Set(inRooms.map(({ path }) => roomOf(path))))
    assert.ok(text.includes(`\n| \`${room}/\` | `), `${room}/ has no line`);
});

test('rooms never import each other in a circle', () => {
  const neighbours = neighboursOfRooms();
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
  valibot: 'agent/config/parse-config.ts',
  yaml: 'agent/source/manifests/parse/manifest.ts',
};

/** Kinds of volume by name: only plugins/ knows them, and what the reconciler asks is a trait of theirs. */
const KIND_NAMES =
  /csi|empty-?dir|host-?path|config-?map|projected|downward|'(secret|orphan)'|SPEC_PLUGIN|plugins\/(pod|orphan)\//i;

test('the reconciler names no kind of volume', () => {
  for (const source of product.filter(({ path }) => path.startsWith('reconciler/'))) {
    const named = KIND_NAMES.exec(withoutComments(source.text));
    assert.equal(named, null, `${source.path} names ${named?.[0]}`);
  }
});

/** What is said of volumes, and what stands before the verbs of all kinds: a kind is asked, never compared. */
const KIND_COMPARED = /spec\??\.kind\b|'(?:csi|orphan|empty-dir|host-path|content|local|nfs)'/;
const OF_ALL_KINDS = /^(?:agent\/(?:status|metrics|mounts|event|node|timing|api|cli)|plugins\/guard)\//;

test('what is shown of volumes, and what guards them, is asked of their traits', () => {
  for (const source of product.filter(({ path }) => OF_ALL_KINDS.test(path))) {
    const named = KIND_COMPARED.exec(withoutComments(source.text));
    assert.equal(named, null, `${source.path} names ${named?.[0]}`);
  }
});

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
  /^node:(fs|fs\/promises|child_process|net|tls|http|http2|https|dgram|timers.*|worker_threads|cluster|process)$/;
const EFFECT_FILES =
  /^(mount\/(tool|path-tool|broker\/.*|agent-side\/(linux-host|mount-effects|broker-.*|.*-broker)|process\/.*)|plugins\/loopfile\/.*|plugins\/csi\/wire\/grpc|kubernetes\/api\/wire\/.*|agent\/(main|process\/(process-facts|kubelet-beside)|api\/api-(server|socket|routes)|cli\/(api-client|process-screen|.*-command)|source\/manifests\/directory-watcher|drive\/(rig\/(machine|namespace|driver-child)|drive-command)))\.ts$/;
const EFFECT_CALLS =
  /\b(Date\.now|Math\.random|setTimeout|setInterval|performance\.now|console\.|process\.(?!getuid))/;

/** Where a table that changes while it is read is read until it stays the same, however old the kernel. */
const TABLE_READER = 'mount/process/mount-info.ts';

test('the mount table has one reader', () => {
  const readers = product.filter(({ text }) => withoutComments(text).includes('proc/self/mountinfo'));
  assert.deepEqual(
    readers.map(({ path }) => path),
    [TABLE_READER],
  );
});

const withoutComments = (text: string): string => text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');

test('no effect bypasses the port', () => {
  for (const source of product.filter(({ path }) => !EFFECT_FILES.test(path))) {
    for (const name of source.imports)
      assert.ok(!EFFECT_MODULES.test(name), `${source.path} imports ${name}`);
    const call = EFFECT_CALLS.exec(withoutComments(source.text));
    assert.equal(call, null, `${source.path} calls ${call?.[0]} itself`);
  }
});

/** Components of the layout that say what they are wherever they stand. */
const LAYOUT_NAMES =
  /kubernetes\.io~|globalmount|vol_data|volume-subpaths|wrapped_|plugins_registry|agent\.lock|source\.json/;
/** The others count where a path is put together; `volumeDevices` alone is a field of a container. */
const LAYOUT_WORDS = 'pods|volumes|volumeDevices|plugins|mooring|records|staging|publish';
const LAYOUT_PATHS = new RegExp(`['"\`/](?:${LAYOUT_WORDS})/`);
const LAYOUT_CALLS = new RegExp(`\\b(?:below|join)\\([^;]*?['"\`](?:${LAYOUT_WORDS}|kubernetes\\.io)['"\`]`);
/** What looks like it and is below no root: plugins, versions, paths of the agent's own files and of the API. */
const ON_NO_ROOT = ["'mooring/orphan'", "'mooring/v1'", "'/run/mooring/", "'/etc/mooring/", '/v1/pods/'];

test('only plugins/layout spells the layout on disk', () => {
  const others = product.filter(({ path }) => !path.startsWith('plugins/layout/'));
  for (const source of others) {
    const code = withoutComments(source.text).replaceAll(/(?:from|import\()\s*'[^']+'/g, '');
    const allowed = ON_NO_ROOT.reduce((text, one) => text.replaceAll(one, "'"), code);
    for (const spelling of [LAYOUT_NAMES, LAYOUT_PATHS, LAYOUT_CALLS]) {
      const spelled = spelling.exec(allowed)?.[0];
      assert.equal(spelled, undefined, `${source.path} spells ${spelled}`);
    }
  }
});

/** A regular expression cannot be broken over lines. */
const UNBREAKABLE = /^ *\/\^.*\$\/[a-z]*;$/;

test('lines and exports keep to the house', () => {
  for (const source of [...product, ...sourcesBelow('test')]) {
    source.text.split('\n').forEach((line, index) => {
      if (UNBREAKABLE.test(line)) return;
      assert.ok(line.length <= LINE_COLUMNS_MAX, `${source.path}:${index + 1} has ${line.length} columns`);
    });
    assert.ok(!/^export default/m.test(source.text), `${source.path} has a default export`);
  }
});

/** What a table of exceptions holds is today's worst: it may only get better, and then the table says so. */
function ratchet(
  what: string,
  found: ReadonlyMap<string, number>,
  max: number,
  worst: Readonly<Record<string, number>>,
): void {
  for (const [path, count] of found)
    assert.ok(
      count <= (worst[path] ?? max),
      `${path}: ${what} has ${count} lines, more than ${worst[path] ?? max}`,
    );
  for (const [path, limit] of Object.entries(worst)) {
    const count = found.get(path) ?? 0;
    const cure = count <= max ? 'take it out of the table' : `lower its limit to ${count}`;
    assert.equal(count <= max ? undefined : count, limit, `${path}: ${what} is better than it was: ${cure}`);
  }
}

const FILE_LINES_MAX = 300;
const WORST_FILES: Readonly<Record<string, number>> = {};

test('files are short enough to be read at one sitting', () => {
  const lines = product.map(({ path, text }) => [path, text.split('\n').length - 1] as const);
  ratchet('the file', new Map(lines), FILE_LINES_MAX, WORST_FILES);
});

/**
 * As biome counts them: the lines of the body with those of what is declared within, blank ones and comments, but
 * without the brackets that close a block. The longest function of a file counts. biome.json names the limit.
 */
const FUNCTION_LINES_MAX = 60;
const WORST_FUNCTIONS: Readonly<Record<string, number>> = {};

interface Diagnostic {
  readonly category: string;
  readonly message: string;
  readonly location: { readonly path: string };
}

test('functions are short enough to be seen whole', () => {
  const asked = [
    'lint',
    '--only=complexity/noExcessiveLinesPerFunction',
    '--max-diagnostics=none',
    '--reporter=json',
  ];
  const run = spawnSync(join(ROOT, 'node_modules/.bin/biome'), [...asked, ...FLOORS], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const { diagnostics } = JSON.parse(run.stdout) as { readonly diagnostics: readonly Diagnostic[] };
  const longest = new Map<string, number>();
  for (const { category, message, location } of diagnostics) {
    if (category !== 'lint/complexity/noExcessiveLinesPerFunction') continue;
    const [, lines, max] = /too many lines \((\d+)\)\. Maximum allowed is (\d+)/.exec(message) ?? [];
    assert.equal(
      Number(max),
      FUNCTION_LINES_MAX,
      `biome.json has another limit, or biome other words: ${message}`,
    );
    longest.set(location.path, Math.max(Number(lines), longest.get(location.path) ?? 0));
  }
  ratchet('a function', longest, FUNCTION_LINES_MAX, WORST_FUNCTIONS);
});

/** The files that `from` leads to, itself only when there is a way back to it. */
function reached(from: string, ways: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const seen = new Set<string>();
  const next = [...(ways.get(from) ?? [])];
  for (let path = next.pop(); path !== undefined; path = next.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    next.push(...(ways.get(path) ?? []));
  }
  return seen;
}

test('files never import each other in a circle', () => {
  const ways = new Map(
    product.map((source) => {
      const near = source.imports.filter((name) => name.startsWith('.'));
      return [source.path, near.map((name) => resolved(source, name))] as const;
    }),
  );
  const far = new Map([...ways.keys()].map((path) => [path, reached(path, ways)] as const));
  const circles = [...far].map(([path, to]) =>
    [...to]
      .filter((other) => far.get(other)?.has(path))
      .sort()
      .join(' '),
  );
  assert.deepEqual(
    circles.filter((circle) => circle !== ''),
    [],
  );
});

/** Exports that are there for a test alone: each is a door into something that has no file of its own yet. */
const ONLY_TESTS_IMPORT: readonly string[] = [
  'agent/token/signing-key.ts#parseSigningKey',
  'agent/drive/oracle/oracle-history.ts#REFUSALS',
  'agent/drive/oracle/oracle-history.ts#doubtRung',
  'agent/drive/oracle/recorded-call.ts#redactedRequest',
  'agent/drive/rig/machine.ts#attempt',
  'agent/config/config-complaint.ts#describeProblem',
  'agent/process/cluster.ts#joinCluster',
  'agent/process/mount-namespace.ts#mountHolding',
  'kubernetes/objects/attachment-name.ts#attachmentNameOf',
  'mount/agent-side/broker-process.ts#NODE_FLAGS',
  'mount/agent-side/host-brokers.ts#WAITING_TOOLS_MAX',
  'mount/agent-side/tool-broker.ts#ABANDONED_MAX',
  'mount/process/node-start.ts#PROGRAM_FIRST_LINE',
  'plugins/csi/call/fs-group.ts#isFsGroupOurs',
  'plugins/csi/statistics.ts#QUESTION_DEADLINE_MS',
  'plugins/kinds/kinds.ts#registerKind',
  'reconciler/recovery/record-duty.ts#RECORDLESS_MS',
  'reconciler/recovery/record.ts#formatRecord',
  'reconciler/recovery/record.ts#parseRecord',
];

const NAMED_IMPORT =
  /(?:import|export)\s+(?:type\s+)?\{([^}]*)\}\s*from\s*'(\.[^']+)'|\{([^}]*)\}\s*=\s*await import\('(\.[^']+)'\)/g;
const WHOLE_IMPORT = /import\('(\.[^']+)'\)|\* as \w+ from '(\.[^']+)'/g;
const EXPORT = /^export (?:async )?(?:(const|let|function\*?|class)|interface|type) ([\w$]+)/gm;

/** `file#name` of all that the files import from others; of what is imported whole, every word of the importer. */
function importedNames(sources: readonly Source[]): ReadonlySet<string> {
  const used = new Set<string>();
  for (const source of sources) {
    for (const [, names, from, loadedNames, loadedFrom] of source.text.matchAll(NAMED_IMPORT)) {
      for (const given of (names ?? loadedNames ?? '').split(',')) {
        const [name] = given
          .trim()
          .replace(/^type\s+/, '')
          .split(/\s+as\s+|\s*:\s*/);
        used.add(`${resolved(source, from ?? loadedFrom ?? '')}#${name}`);
      }
    }
    for (const [, loaded, named] of source.text.matchAll(WHOLE_IMPORT)) {
      const target = resolved(source, loaded ?? named ?? '');
      for (const [word] of source.text.matchAll(/\b[\w$]+\b/g)) used.add(`${target}#${word}`);
    }
  }
  return used;
}

test('nothing is exported that nobody imports', () => {
  const byProduct = importedNames(product);
  const byTests = importedNames(sourcesBelow('test'));
  const onlyTests: string[] = [];
  for (const { path, text } of product) {
    for (const [, value, name = ''] of text.matchAll(EXPORT)) {
      if (byProduct.has(`${path}#${name}`)) continue;
      // A type that another export of the file speaks of is part of what that one says.
      const isSpokenOf = text.split(new RegExp(`\\b${name}\\b`)).length > 2;
      if (value === undefined && isSpokenOf) continue;
      assert.ok(byTests.has(`${path}#${name}`), `${path} exports ${name}, which nobody imports`);
      onlyTests.push(`${path}#${name}`);
    }
  }
  assert.deepEqual(onlyTests.sort(), [...ONLY_TESTS_IMPORT].sort());
});

/** Words that are cut short, and those that say nothing; not those that everybody cuts short (uid, stat, fs). */
const CUT_SHORT =
  'arr attr buf cb cfg cmd cnt ctx cur desc dest dst elem err evt fn helper idx impl lib mgr msg num obj opts param ' +
  'pkg prev ptr pvc req res resp src str temp util utils val vals vols';
/** Names that were given up for those of the field (docs/GLOSSARY.md has the ones that remain). */
const GIVEN_UP = 'adopt adopted discharge forgive forgiveness forgiven notebook suspicion ward wished';
const NO_NAMES = new Set([...CUT_SHORT.split(' '), ...GIVEN_UP.split(' ')]);
const TEXTS = /'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|"(?:[^"\\\n]|\\.)*"/g;

test('names are made of whole words, and of none that was given up', () => {
  for (const { path, text } of product) {
    const code = withoutComments(text).replaceAll(TEXTS, '');
    for (const name of new Set([path, ...(code.match(/[A-Za-z_$][\w$]*/g) ?? [])])) {
      const words = name.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? [];
      const bad = words.find((word) => NO_NAMES.has(word.toLowerCase()));
      assert.equal(bad, undefined, `${path} has the name ${name}`);
    }
  }
});

/** A fragment that begins so leaves to the reader what it is of. */
const FRAGMENT = /(?:\/\*\*|\/\/|\*) Of \S.*/;
/** So do a few words behind a preposition: "By uid." Whose uid, and what is found by it? */
const FEW_WORDS =
  /\/\*\* (?:At|Below|Between|By|For|From|In|On|To|With|Within|Without)(?: [^ .,:;]+){1,5}\. \*\//;

test('every comment names its subject, and none begins with a bare "Of"', () => {
  for (const { path, text } of [...product, ...sourcesBelow('test')])
    assert.equal(FRAGMENT.exec(text)?.[0], undefined, `${path} has a comment without a subject`);
  for (const { path, text } of product)
    assert.equal(FEW_WORDS.exec(text)?.[0], undefined, `${path} has a comment without a subject`);
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
  const built = readFileSync(join(ROOT, 'build.ts'), 'utf8').matchAll(/'((?:agent|plugins)\/[^']+\.ts)'/g);
  const entries = new Set([...built].map(([, entry]) => entry));
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
