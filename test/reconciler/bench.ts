/** A reconciler over a bench host and a bench plugin, which has read the disk and found nothing. */
import assert from 'node:assert/strict';
import { parseAbsolutePath } from '../../mount/host.ts';
import type { MountEntry } from '../../mount/mount-table.ts';
import { createLayout } from '../../plugins/layout/layout.ts';
import type { ActualState } from '../../reconciler/model/actual-state.ts';
import type { Reconstruction } from '../../reconciler/recovery/reconstruct.ts';
import { createReconciler } from '../../reconciler/reconciler.ts';
import { parseRecord, type VolumeRecord } from '../../reconciler/recovery/record.ts';
import { createRecords, type RecordForm } from '../../reconciler/journal/record-forms.ts';
import { createRecordStore } from '../../reconciler/recovery/record-store.ts';
import { type BenchHost, createBenchHost } from './bench-host.ts';
import { createBenchPlugin } from './bench-plugin.ts';

const root = parseAbsolutePath('/state');
assert.ok(root);
export const layout = createLayout(root);

const RESYNC_MS = 60_000;

/** All of the disk was read, and nothing was found that is not known. */
export const READ_WHOLE: Reconstruction = {
  volumes: [],
  gone: [],
  placesRead: true,
  driversHidden: false,
  unreadPlaces: [],
  complete: true,
  unknown: undefined,
};

export interface BenchOptions {
  readonly recovered?: ActualState;
  readonly resyncMs?: number;
  /** False: the places on the disk are not read yet. */
  readonly isRead?: boolean;
  /** Records in a journal are to be loaded and taken over by the test. */
  readonly form?: RecordForm;
  /** Nothing is begun. */
  readonly plansOnly?: boolean;
  /** For how long the machine has been up as the agent begins, and what the wall clock shows then. */
  readonly nowMs?: number;
  readonly wallMs?: number;
}

export function createBench({
  recovered = new Map(),
  resyncMs = RESYNC_MS,
  isRead = true,
  form = 'files',
  plansOnly = false,
  nowMs = 0,
  wallMs = nowMs,
}: BenchOptions = {}) {
  const host = createBenchHost(nowMs);
  host.wallStepMs = wallMs - nowMs;
  const plugins = createBenchPlugin();
  const told: string[] = [];
  const tell = (event: string): void => void told.push(event);
  const records =
    form === 'files'
      ? createRecordStore(host, layout)
      : createRecords({ form, host, layout, log: { warn: tell } });
  const reconciler = createReconciler({
    host,
    layout,
    plugins,
    records,
    recovered,
    log: { debug: tell, info: tell, warn: tell, error: tell },
    backOff: { firstMs: 500, maxMs: 8_000 },
    laneWidth: () => 4,
    resyncMs,
    plansOnly,
  });
  if (isRead) reconciler.takeReconstructed(READ_WHOLE);
  return { host, plugins, records, reconciler, told };
}

/** The only record that the bench has. */
export function onlyRecord(host: BenchHost): VolumeRecord {
  const parsed = parseRecord([...host.files.values()][0] ?? '');
  assert.ok(parsed.ok);
  return parsed.value;
}

/** Without an id: the mount that the bench plugin answers a publish with. */
export function mountAt(target: MountEntry['target'], mountId = 8): MountEntry {
  return {
    mountId,
    parentId: 1,
    device: '7:1',
    root: '/',
    target,
    options: ['rw'],
    propagation: [],
    fsType: 'ext4',
    source: '/dev/loop1',
    superOptions: ['rw'],
  } as MountEntry;
}
