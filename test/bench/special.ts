/** What is measured only when it is asked for, in place of the bench's own table. */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { mountsBelow, unmountAll } from '../demo/machine.ts';
import { buildPrograms, programFile } from '../interop/go-program.ts';
import { measureBesideKubelet } from './beside/beside-kubelet.ts';
import { CLUSTER_PROGRAMS, measureCluster } from './cluster/measure-cluster.ts';
import { growthTable, measureGrowth } from './measure-growth.ts';
import { measureProfiles, profileTable } from './measure-profile.ts';
import { createWorld } from './world.ts';

const GO_PROGRAMS = ['bench-kubelet', 'bench-driver'] as const;

interface Common {
  readonly short: boolean;
  readonly asJson: boolean;
}

export type Special = Common &
  (
    | { readonly kind: 'beside-kubelet'; readonly rounds: number }
    | { readonly kind: 'growth' }
    | { readonly kind: 'cluster'; readonly pods: number; readonly reach: 'get' | 'watch' }
    | { readonly kind: 'cpu-prof'; readonly into: string }
  );

export interface SpecialFlags {
  readonly short: boolean;
  readonly output: string;
  readonly besideKubelet: boolean;
  readonly rounds: string;
  readonly growth: boolean;
  readonly cpuProf: string | undefined;
  readonly cluster: boolean;
  readonly pods: string;
  readonly reach: string;
}

/** Undefined: the bench's own table is wanted. */
export function specialOf(flags: SpecialFlags): Special | undefined {
  const common = { short: flags.short, asJson: flags.output === 'json' };
  if (!/^[1-9]\d?$/.test(flags.rounds)) throw new Error('--rounds is a number from 1 to 99');
  if (flags.besideKubelet) return { ...common, kind: 'beside-kubelet', rounds: Number(flags.rounds) };
  if (!/^[1-9]\d{0,2}$/.test(flags.pods)) throw new Error('--pods is a number from 1 to 999');
  const { reach } = flags;
  if (reach !== 'get' && reach !== 'watch') throw new Error('--reach is get or watch');
  if (flags.cluster) return { ...common, kind: 'cluster', pods: Number(flags.pods), reach };
  if (flags.growth) return { ...common, kind: 'growth' };
  if (flags.cpuProf !== undefined) return { ...common, kind: 'cpu-prof', into: resolve(flags.cpuProf) };
  return undefined;
}

/** A line when something has to be installed first. A build with an empty cache takes about ten minutes. */
export function prepareSpecial(special: Special): string | undefined {
  if (special.kind !== 'beside-kubelet' && special.kind !== 'cluster') return undefined;
  process.stderr.write("Building the kubelet's volume manager (minutes, when it is the first time)\n");
  return buildPrograms(special.kind === 'cluster' ? CLUSTER_PROGRAMS : GO_PROGRAMS);
}

/** The exit status. */
export async function measureSpecial(
  special: Special,
  scratch: string,
  interrupted: AbortSignal,
): Promise<number> {
  const startMs = performance.now();
  const progress = (what: string): void => {
    const seconds = ((performance.now() - startMs) / 1_000).toFixed(1);
    process.stderr.write(`${seconds.padStart(6)} s  ${what}\n`);
  };
  try {
    const { table, ...document } = await measured(special, scratch, interrupted, progress);
    process.stdout.write(`${special.asJson ? JSON.stringify(document, null, 2) : table}\n`);
    return 0;
  } catch (error) {
    const reason: unknown = interrupted.aborted ? interrupted.reason : error;
    process.stderr.write(
      `\nThe bench stopped: ${reason instanceof Error ? reason.message : String(reason)}\n`,
    );
    return 1;
  } finally {
    await unmountAll([...mountsBelow(scratch)].reverse());
  }
}

async function measured(
  special: Special,
  scratch: string,
  interrupted: AbortSignal,
  progress: (what: string) => void,
): Promise<{ readonly table: string }> {
  const { short } = special;
  switch (special.kind) {
    case 'beside-kubelet': {
      const programs = {
        'bench-kubelet': programFile('bench-kubelet'),
        'bench-driver': programFile('bench-driver'),
      };
      return measureBesideKubelet({
        scratch,
        programs,
        rounds: special.rounds,
        short,
        interrupted,
        progress,
      });
    }
    case 'cluster': {
      const { reach } = special;
      return measureCluster({ scratch, pods: short ? 10 : special.pods, reach, interrupted, progress });
    }
    case 'growth': {
      const directory = join(scratch, 'growth');
      mkdirSync(directory, { mode: 0o700 });
      const world = await createWorld({ directory, interrupted });
      try {
        const growth = await measureGrowth(world, short, progress);
        return { growth, table: growthTable(growth) } as { readonly table: string };
      } finally {
        await world.close();
      }
    }
    case 'cpu-prof': {
      const phases = await measureProfiles({ scratch, into: special.into, interrupted });
      return { phases, table: profileTable(phases) } as { readonly table: string };
    }
  }
}
