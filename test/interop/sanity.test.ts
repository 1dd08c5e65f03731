/**
 * csi-sanity of kubernetes-csi/csi-test, unmodified, against the bundled driver: identity, controller and node suites,
 * with and without ControllerPublishVolume. A case that csi-sanity itself skips is listed with its name.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { goPrograms } from './go-program.ts';
import { inWorld, type World } from './world.ts';

const { skip, files } = goPrograms('csi-sanity');
const SUITE_MS = 300_000;

/** What is used of a Ginkgo report. */
interface Spec {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeType: string;
  readonly LeafNodeText: string;
  readonly State: 'passed' | 'failed' | 'skipped' | 'pending' | 'panicked' | 'interrupted' | 'timedout';
  readonly Failure?: { readonly Message: string };
}

function runSanity(world: World): readonly Spec[] {
  const report = join(world.scratch, 'report.json');
  const argv = [
    `-csi.endpoint=unix://${world.socketOf('loopfile.mooring.dev')}`,
    `-csi.mountdir=${join(world.scratch, 'mount')}`,
    `-csi.stagingdir=${join(world.scratch, 'staging')}`,
    `-ginkgo.json-report=${report}`,
    '-ginkgo.no-color',
  ];
  const ran = spawnSync(files['csi-sanity'], argv, {
    cwd: world.scratch,
    encoding: 'utf8',
    timeout: SUITE_MS,
  });
  const [suite] = JSON.parse(readFileSync(report, 'utf8')) as readonly {
    readonly SpecReports: readonly Spec[];
  }[];
  const specs = suite?.SpecReports.filter(({ LeafNodeType }) => LeafNodeType === 'It') ?? [];
  const failed = specs.filter(({ State }) => !['passed', 'skipped', 'pending'].includes(State));
  const words = failed.map((spec) => `${nameOf(spec)}: ${spec.Failure?.Message ?? spec.State}`);
  assert.equal(
    ran.status,
    0,
    `csi-sanity ended with ${ran.status}:\n${words.join('\n')}\n${ran.stdout.slice(-3_000)}`,
  );
  assert.deepEqual(words, []);
  return specs;
}

function nameOf({ ContainerHierarchyTexts: above, LeafNodeText: leaf }: Spec): string {
  return [...(above ?? []), leaf].join(' ');
}

function tell(title: string, specs: readonly Spec[]): void {
  const count = (state: Spec['State']): number => specs.filter(({ State }) => State === state).length;
  const [passed, skipped, pending] = [count('passed'), count('skipped'), count('pending')];
  const totals = `${passed} passed, ${skipped} skipped, ${pending} pending of ${specs.length}`;
  process.stdout.write(`csi-sanity v5.6.0, ${title}: ${totals}\n`);
  for (const spec of specs.filter(({ State }) => State === 'skipped' || State === 'pending')) {
    process.stdout.write(
      `  ${spec.State} by csi-sanity (${spec.Failure?.Message ?? 'no reason'}): ${nameOf(spec)}\n`,
    );
  }
}

const SUITES = ['Identity Service', 'Controller Service', 'Node Service'] as const;
/** Counted when this was written; a driver that loses a capability would make csi-sanity skip, and so pass, more. */
const PASSED_MIN = { plain: 49, attach: 57 } as const;

for (const mode of ['plain', 'attach'] as const) {
  test(
    `csi-sanity is green against loopfile, ${mode === 'attach' ? 'with' : 'without'} --attach`,
    { skip },
    () =>
      inWorld(async (world) => {
        const flags = mode === 'attach' ? ['--attach'] : [];
        const driver = await world.startLoopfile(world.socketOf('loopfile.mooring.dev'), ...flags);
        const specs = runSanity(world);
        tell(mode === 'attach' ? 'loopfile --attach' : 'loopfile', specs);
        const passed = specs.filter(({ State }) => State === 'passed');
        for (const suite of SUITES) {
          assert.ok(
            passed.some((spec) => nameOf(spec).startsWith(suite)),
            `nothing passed in ${suite}`,
          );
        }
        assert.ok(passed.length >= PASSED_MIN[mode], `only ${passed.length} passed`);
        assert.ok(driver.running(), 'the driver lives on');
      }),
  );
}
