/** What a driver wrote down of the calls it got, and the order they must have had (CSI, "Volume Lifecycle"). */
import assert from 'node:assert/strict';
import { watch } from 'node:fs/promises';
import { readOrNothing } from '../demo/machine.ts';

/** A line of mock-driver/record.go. */
export interface CallLine {
  readonly begin?: string;
  readonly end?: string;
  readonly code?: string;
  readonly volume?: string;
  readonly staging?: string;
  readonly target?: string;
  readonly path?: string;
  readonly readOnly?: boolean;
  readonly publishContext?: Readonly<Record<string, string>>;
  readonly volumeContext?: Readonly<Record<string, string>>;
  readonly secretKeys?: readonly string[];
  readonly requiredBytes?: number;
}

export function readCalls(file: string): readonly CallLine[] {
  return (readOrNothing(file) ?? '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as CallLine);
}

const CALL_MS = 30_000;

/** The first line for which `holds`; the file's growth is the event. */
export async function untilCalled(file: string, holds: (line: CallLine) => boolean): Promise<CallLine> {
  const found = new AbortController();
  const signal = AbortSignal.any([found.signal, AbortSignal.timeout(CALL_MS)]);
  const growth = watch(file, { signal });
  try {
    for (;;) {
      const line = readCalls(file).find(holds);
      if (line !== undefined) return line;
      await growth[Symbol.asyncIterator]().next();
    }
  } finally {
    found.abort();
  }
}

const LADDER = new Set([
  'ControllerPublishVolume',
  'ControllerUnpublishVolume',
  'NodeStageVolume',
  'NodeUnstageVolume',
  'NodePublishVolume',
  'NodeUnpublishVolume',
]);

/** The calls that move a volume, in the order in which they began. */
export function ladderCalls(calls: readonly CallLine[], volume?: string): readonly CallLine[] {
  return calls.filter((one) => {
    return (
      one.begin !== undefined && LADDER.has(one.begin) && (volume === undefined || one.volume === volume)
    );
  });
}

export function ladderNames(calls: readonly CallLine[], volume?: string): readonly string[] {
  return ladderCalls(calls, volume).map(({ begin = '' }) => begin);
}

/** Fails on the first call that a conforming orchestrator may not make: overlap, wrong rung, foreign path. */
export function assertLegal(calls: readonly CallLine[], rungs: { readonly attach: boolean }): void {
  const open = new Map<string, string>();
  const attached = new Set<string>();
  const staged = new Map<string, string>();
  const published = new Map<string, Set<string>>();
  for (const call of calls) {
    const { volume } = call;
    if (volume === undefined) continue;
    if (call.end !== undefined) {
      open.delete(volume);
      continue;
    }
    const method = call.begin ?? '';
    assert.equal(open.get(volume), undefined, `${method} of ${volume} while ${open.get(volume)} was running`);
    open.set(volume, method);
    const targets = published.get(volume) ?? new Set();
    published.set(volume, targets);
    if (method === 'ControllerPublishVolume') attached.add(volume);
    if (method === 'NodeStageVolume') {
      assert.ok(!rungs.attach || attached.has(volume), `${volume} staged before it was attached`);
      staged.set(volume, call.staging ?? '');
    }
    if (method === 'NodePublishVolume' && call.volumeContext?.['csi.storage.k8s.io/ephemeral'] !== 'true') {
      assert.equal(call.staging, staged.get(volume), `${volume} published from where it is not staged`);
    }
    if (method === 'NodePublishVolume') targets.add(call.target ?? '');
    if (method === 'NodeUnpublishVolume') targets.delete(call.target ?? '');
    if (method === 'NodeUnstageVolume') {
      assert.equal(targets.size, 0, `${volume} unstaged while it is published at ${[...targets]}`);
      assert.equal(call.staging, staged.get(volume) ?? call.staging);
      staged.delete(volume);
    }
    if (method === 'ControllerUnpublishVolume') {
      assert.ok(!staged.has(volume), `${volume} detached while it is staged`);
      attached.delete(volume);
    }
  }
  assert.deepEqual([...open], [], 'calls that never ended');
}
