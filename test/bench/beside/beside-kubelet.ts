/** `--beside-kubelet`: rounds in turn, Mooring first, each with processes and a state root of its own. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NUMBERS } from '../../../agent/config/setting.ts';
import { AGENT_BUNDLE } from '../../demo/bundles.ts';
import { runCommand } from '../../demo/child-process.ts';
import { machineFacts } from '../figures.ts';
import { NODE_PODS } from '../measure-node.ts';
import type { KubeletPrograms } from '../kubelet-program.ts';
import { startKubelet } from './kubelet-subject.ts';
import { startMooring } from './mooring-subject.ts';
import { type Extent, MANY, measureRound, type Round } from './round.ts';
import { rowsOf, rowTable } from './rows.ts';
import type { Subject, SubjectName } from './subject.ts';

export interface BesideOptions {
  readonly scratch: string;
  readonly programs: KubeletPrograms;
  readonly rounds: number;
  readonly short: boolean;
  readonly interrupted: AbortSignal;
  readonly progress: (what: string) => void;
}

export interface BesideDocument {
  readonly rows: ReturnType<typeof rowsOf>;
  readonly table: string;
}

const FULL: Extent = { singles: 30, idleSeconds: 20 };
const SHORT: Extent = { singles: 5, idleSeconds: 5 };
const IN_TURN: readonly SubjectName[] = ['mooring', 'kubelet'];

/** Rejects when a subject does not do what it was asked for, or says so too early. */
export async function measureBesideKubelet(options: BesideOptions): Promise<BesideDocument> {
  const { rounds, short, progress } = options;
  const extent = short ? SHORT : FULL;
  const product: unknown = JSON.parse((await runCommand([AGENT_BUNDLE, 'version', '-o', 'json'])).output);
  const loads = [loadNow()];
  const measured = { kubelet: [] as Round[], mooring: [] as Round[] };
  for (let index = 1; index <= rounds; index += 1) {
    for (const name of IN_TURN) {
      progress(`round ${index} of ${rounds}: ${name}`);
      measured[name].push(await oneRound(options, name, `${name}-${index}`, extent));
      loads.push(loadNow());
    }
  }
  const rows = rowsOf(measured, extent.idleSeconds, NUMBERS.settle_ms.default);
  const document = {
    rows,
    rounds: measured,
    extent,
    // One-minute averages, before the first round and after each.
    loads,
    product,
    machine: machineFacts(),
    at: new Date().toISOString(),
  };
  const load = loads.map((one) => one.toFixed(1)).join(', ');
  return { ...document, table: `${rowTable(rows)}\n\nload average before, and after each round: ${load}` };
}

async function oneRound(
  { scratch, programs, interrupted }: BesideOptions,
  name: SubjectName,
  directory: string,
  extent: Extent,
): Promise<Round> {
  let subject: Subject | undefined;
  try {
    subject = await startSubject(name, join(scratch, directory), programs, interrupted);
    return await measureRound(subject, extent, interrupted);
  } finally {
    await subject?.close();
  }
}

function startSubject(
  name: SubjectName,
  directory: string,
  programs: KubeletPrograms,
  interrupted: AbortSignal,
): Promise<Subject> {
  if (name === 'kubelet') return startKubelet(directory, programs);
  return startMooring({
    directory,
    driver: programs['bench-driver'],
    interrupted,
    bystanders: 2 * Math.max(MANY, NODE_PODS),
  });
}

function loadNow(): number {
  return Number(readFileSync('/proc/loadavg', 'utf8').split(' ')[0]);
}
