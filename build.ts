/** Builds dist/: each program as one minified file that runs from anywhere, without node_modules. `npm run build` */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type BuildOptions, type Metafile } from 'esbuild';
import { PROGRAM_FIRST_LINE } from './mount/process/node-start.ts';

const ROOT = dirname(fileURLToPath(import.meta.url));
const DIST = join(ROOT, 'dist');
const PROGRAMS = [
  { entry: 'agent/main.ts', file: 'mooring.mjs' },
  { entry: 'plugins/loopfile/main.ts', file: 'mooring-loopfile.mjs' },
] as const;
/** They travel in the text of the agent, which starts them. */
const BROKERS = {
  path: 'agent/process/path-broker-main.ts',
  tool: 'agent/process/tool-broker-main.ts',
  parser: 'agent/process/parser-broker-main.ts',
} as const;
const EXECUTABLE_MODE = 0o755;

/**
 * `import` comes first, so that Node.js knows a file without `.mjs` for a module at its first word. Bundled CommonJS
 * packages call `require` for Node's own modules.
 */
const BANNER = [
  "import { createRequire as createRequireForBundle } from 'node:module';",
  'const require = createRequireForBundle(import.meta.url);',
].join('\n');

function versionOfPackage(): string {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly version: string;
  };
  return version;
}

/** `unknown` in a source tree without git: a build must not need it. */
function commit(): string {
  const git = (...words: readonly string[]): string => {
    return execFileSync('git', words, {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  };
  try {
    const hash = git('rev-parse', '--short=12', 'HEAD');
    return git('status', '--porcelain') === '' ? hash : `${hash}-dirty`;
  } catch {
    return 'unknown';
  }
}

const COMMON = {
  absWorkingDir: ROOT,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  minify: true,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
} as const satisfies BuildOptions;

async function buildBroker(entry: string): Promise<{ readonly text: string; readonly metafile: Metafile }> {
  const banner = { js: BANNER };
  const built = await build({ ...COMMON, entryPoints: [entry], write: false, banner });
  return { text: built.outputFiles.map(({ text }) => text).join(''), metafile: built.metafile };
}

async function buildProgram(
  { entry, file }: (typeof PROGRAMS)[number],
  commitHash: string,
  brokerPrograms: Readonly<Record<string, string>>,
): Promise<Metafile> {
  const outfile = join(DIST, file);
  const { metafile } = await build({
    ...COMMON,
    entryPoints: [entry],
    outfile,
    banner: { js: `${PROGRAM_FIRST_LINE}\n${BANNER}` },
    define: {
      MOORING_VERSION: JSON.stringify(versionOfPackage()),
      MOORING_COMMIT: JSON.stringify(commitHash),
      MOORING_BROKER_PROGRAMS: JSON.stringify(brokerPrograms),
    },
  });
  chmodSync(outfile, EXECUTABLE_MODE);
  return metafile;
}

/** The licenses of everything that was bundled ask for their text to travel along. */
function licensesOf(metafiles: readonly Metafile[]): string {
  const folders = new Set(
    metafiles
      .flatMap(({ inputs }) => Object.keys(inputs))
      .flatMap((input) => {
        return /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0] ?? [];
      }),
  );
  return [...folders]
    .sort()
    .map((folder) => {
      const path = join(ROOT, folder);
      const { name, version, license } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as {
        readonly name: string;
        readonly version: string;
        readonly license?: string;
      };
      const files = readdirSync(path).filter((one) => /^(licen[cs]e|notice)/i.test(one));
      const texts = files.map((one) => readFileSync(join(path, one), 'utf8').trim());
      return [`${name} ${version} (${license ?? 'see below'})`, ...texts].join('\n\n');
    })
    .join(`\n\n${'-'.repeat(80)}\n\n`);
}

mkdirSync(DIST, { recursive: true });
const commitHash = commit();
const metafiles: Metafile[] = [];
const brokerPrograms: Record<string, string> = {};
for (const [kind, entry] of Object.entries(BROKERS)) {
  const { text, metafile } = await buildBroker(entry);
  brokerPrograms[kind] = text;
  metafiles.push(metafile);
}
for (const program of PROGRAMS) {
  const { entry, file } = program;
  if (!existsSync(join(ROOT, entry))) continue;
  metafiles.push(await buildProgram(program, commitHash, brokerPrograms));
  const kilobytes = Math.round(statSync(join(DIST, file)).size / 1_000);
  process.stdout.write(`dist/${file}  ${kilobytes} kB  ${versionOfPackage()} ${commitHash}\n`);
}
writeFileSync(join(DIST, 'LICENSES.txt'), `${licensesOf(metafiles)}\n`);
