/** Programs nobody here wrote, or a thin main over their packages: built by the ordinary Go client, never committed. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inPrivateNamespace } from '../real/namespace.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
/** Ignored by git. What is up to date there is not linked again; Go's own cache keeps the packages. */
const BUILD = join(HERE, 'build');
/** Cold, on two cores with other work on them: five minutes in all, and a quarter of an hour for the control plane. */
const BUILD_MS = 3_600_000;

interface Source {
  readonly module: string;
  readonly package: string;
  /** Further ones of `go build`. */
  readonly flags?: readonly string[];
}

/**
 * Compiled without inlining, which takes 28 % less of the compiler's time (measured): they are built for tests. Each
 * set of flags has entries of its own in Go's cache, so all share this one, but for what is measured, which is built
 * as its users build it.
 */
const QUICKLY = ['-gcflags', 'all=-l'] as const;

const SIDECARS = join(HERE, 'sidecars');
const SIDECAR_SOURCE = 'github.com/kubernetes-csi/external-';

/** They want different releases of the CSI specification's Go code and of Kubernetes, so there are five modules. */
const PROGRAMS = {
  'csi-sanity': {
    module: join(HERE, 'sanity'),
    package: 'github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity',
    flags: QUICKLY,
  },
  'mock-driver': { module: HERE, package: './mock-driver', flags: QUICKLY },
  registrar: { module: HERE, package: './registrar', flags: QUICKLY },
  'example-plugin': { module: HERE, package: './example-plugin', flags: QUICKLY },
  kubelet: { module: HERE, package: './kubelet', flags: QUICKLY },
  // For `npm run cluster` and `npm run test:k8s`: the largest by far, minutes of compiling when it was never built.
  'control-plane': { module: HERE, package: './control-plane', flags: [...QUICKLY, '-ldflags', '-s -w'] },
  certificates: { module: HERE, package: './certificates', flags: QUICKLY },
  // What a cluster runs beside a driver, each with its own main; for `npm run test:k8s`.
  'csi-attacher': {
    module: SIDECARS,
    package: `${SIDECAR_SOURCE}attacher/v4/cmd/csi-attacher`,
    flags: QUICKLY,
  },
  'csi-provisioner': {
    // It has an older Kubernetes than the other two.
    module: join(HERE, 'provisioner'),
    package: `${SIDECAR_SOURCE}provisioner/v6/cmd/csi-provisioner`,
    flags: QUICKLY,
  },
  'csi-resizer': { module: SIDECARS, package: `${SIDECAR_SOURCE}resizer/v2/cmd/csi-resizer`, flags: QUICKLY },
  // For `npm run bench -- --beside-kubelet` and `--cluster`.
  'bench-kubelet': { module: HERE, package: './bench-kubelet' },
  'bench-driver': { module: HERE, package: './bench-driver' },
  'pd-driver': {
    module: join(HERE, 'pd-driver'),
    package: 'sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/cmd/gce-pd-csi-driver',
    // It refuses to start without one; its own Makefile gives it so, too.
    flags: [...QUICKLY, '-ldflags', '-X main.version=v1.28.1'],
  },
} as const satisfies Readonly<Record<string, Source>>;

export type GoProgram = keyof typeof PROGRAMS;

export const PROGRAM_NAMES = Object.keys(PROGRAMS) as readonly GoProgram[];

export interface GoPrograms<Name extends GoProgram> {
  /** The reason, said loudly; false when all are there. For the tests' `skip`. */
  readonly skip: string | false;
  /** Files; empty when skipped. */
  readonly files: Readonly<Record<Name, string>>;
}

/**
 * Call it first in a test file. Without Go, root or the right to mount the tests are skipped. With Go
 * here and its modules not to be had, or a build that fails, it throws; `INTEROP_OPTIONAL=1` forgives the modules.
 */
export function goPrograms<Name extends GoProgram>(...names: readonly Name[]): GoPrograms<Name> {
  const obstacle = inPrivateNamespace() || withoutGo() || withoutModules(names);
  const files = names.map((name) => [name, obstacle === false ? build(name) : ''] as const);
  return { skip: obstacle, files: Object.fromEntries(files) as Record<Name, string> };
}

/** Where a program is when it was built. */
export function programFile(name: GoProgram): string {
  return join(BUILD, name);
}

/** As whoever calls it and in any namespace, for other suites; else one line that says what has to be installed. */
export function buildPrograms(names: readonly GoProgram[]): string | undefined {
  const lacking = lackingGo() ?? lackingModules(names)?.need;
  if (lacking === undefined) for (const name of names) build(name);
  return lacking;
}

function lackingGo(): string | undefined {
  if (spawnSync('go', ['version']).status === 0) return undefined;
  return 'go is not in the PATH: install the Go release that test/interop/go.mod names, or a newer one';
}

function withoutGo(): string | false {
  const lacking = lackingGo();
  return lacking === undefined ? false : skipLoudly(lacking);
}

/**
 * Listing what is to be built reads all of its packages, and so fetches their modules. It compiles nothing, so it waits
 * for no build, which takes minutes when nothing is in Go's cache.
 */
function lackingModules(
  names: readonly GoProgram[],
): { readonly need: string; readonly words: string } | undefined {
  for (const name of names) {
    const { module, package: source } = PROGRAMS[name];
    const listed = runGo(module, 'go', ['list', '-deps', '-f', '', source]);
    if (listed.status === 0) continue;
    const need =
      `the Go modules of ${name} are not in the module cache and cannot be fetched: ` +
      'a Go module proxy is needed (go env GOPROXY), or a filled module cache (go env GOMODCACHE)';
    return {
      need,
      words: listed.error?.message ?? listed.stderr.trim().split('\n').slice(-3).join('\n'),
    };
  }
  return undefined;
}

function withoutModules(names: readonly GoProgram[]): string | false {
  const lacking = lackingModules(names);
  if (lacking === undefined) return false;
  const { need, words } = lacking;
  if (process.env['INTEROP_OPTIONAL'] !== '1')
    throw new Error(`${need}; INTEROP_OPTIONAL=1 skips instead\n${words}`);
  return skipLoudly(`${need}\n${words}`);
}

function skipLoudly(reason: string): string {
  process.stderr.write(`\n*** SKIPPED: ${reason} ***\n\n`);
  return `SKIPPED: ${reason}`;
}

function build(name: GoProgram): string {
  const { module, package: source, flags = [] }: Source = PROGRAMS[name];
  mkdirSync(BUILD, { recursive: true });
  const file = programFile(name);
  const startMs = performance.now();
  // One at a time: test files run side by side, and two must not link the same file, nor compile everything twice.
  const build = ['go', 'build', '-p', '2', ...flags, '-o', file, source];
  const ran = runGo(module, 'flock', [join(BUILD, '.lock'), ...build]);
  if (ran.status !== 0) throw new Error(`go build ${source}: ${ran.error?.message ?? ran.stderr}`);
  process.stderr.write(`built ${name} in ${((performance.now() - startMs) / 1_000).toFixed(1)} s\n`);
  return file;
}

function runGo(module: string, command: string, argv: readonly string[]) {
  return spawnSync(command, argv, {
    cwd: module,
    env: { ...process.env, GOMAXPROCS: '1', CGO_ENABLED: '0', GOWORK: 'off' },
    encoding: 'utf8',
    timeout: BUILD_MS,
    maxBuffer: 64 * 1_024 * 1_024,
  });
}
