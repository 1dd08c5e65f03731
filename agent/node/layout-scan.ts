/** Looks for what no record explains: the whole layout at the start, then at each resync what nobody knows. */
import type { Failure } from '../../mount/failure.ts';
import type { Ground } from '../../mount/ground.ts';
import type { Cancel, Host } from '../../mount/host.ts';
import { Retries } from '../../mount/process/back-off.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { PodUid } from '../../plugins/volume.ts';
import type { Reconciler } from '../../reconciler/reconciler.ts';
import { type Reconstruction, reconstruct } from '../../reconciler/recovery/reconstruct.ts';
import type { DesiredObjectsReader } from './desired-objects-reader.ts';

export interface LayoutScanParts {
  readonly host: Host;
  readonly layout: Layout;
  readonly ground: Ground;
  readonly reader: Pick<DesiredObjectsReader, 'current' | 'read'>;
  readonly reconciler: Pick<Reconciler, 'actual' | 'takeReconstructed'>;
  readonly resyncMs: number;
  /** What a look has found has joined what stands, whole or not. */
  readonly onScanned: () => void;
  /**
   * As `onScanned`: `places` when nothing of a driver's may be in what was left unread, or several looks could not read
   * it, or what is left unread.
   */
  readonly onPlaces: (read: 'places' | Failure) => void;
  /** All that was found when everything could be read has joined what stands. */
  readonly onWhole: () => void;
}

export interface LayoutScan {
  start(): void;
  /** What is found from now on is dropped. */
  stop(): void;
}

/**
 * How soon the layout is looked at again when a part of it could not be read, or when somebody's mount lies in it. The
 * wait doubles up to a resync: such a mount may stay for ever, and each look is one at every pod.
 */
const UNREAD_FIRST_MS = 5_000;
/** Then a directory that cannot be read keeps nobody waiting any more: it may stay so for ever. 35 s. */
const UNREAD_LOOKS_MAX = 4;

export function createLayoutScan(parts: LayoutScanParts): LayoutScan {
  const { host, layout, ground, reader, reconciler, resyncMs } = parts;
  let cancel: Cancel = () => {};
  let stopped = false;
  const retries = new Retries({ firstMs: UNREAD_FIRST_MS, maxMs: resyncMs });
  let looks = 0;

  /** Leftovers never wait for a restart. */
  async function scan(extent: 'whole' | 'strangers'): Promise<void> {
    const isWanted = (pod: PodUid): boolean => reader.current().pods.has(pod);
    const known = reconciler.actual();
    const found = await reconstruct({ host, layout, ground, known, isWanted }, extent);
    if (stopped) return;
    looks += 1;
    const why = whyUnread(found, looks);
    const join = (): void => {
      reconciler.takeReconstructed(found);
      parts.onScanned();
      parts.onPlaces(why ?? 'places');
      if (found.complete) parts.onWhole();
    };
    if (found.volumes.length > 0) reader.read({ found: found.volumes, join });
    else join();
    const waitMs = found.complete ? resyncMs : retries.nextMs();
    if (found.complete) retries.reset();
    cancel = host.timer(waitMs, () => {
      void scan(found.complete ? 'strangers' : extent);
    });
  }

  return {
    start: () => void scan('whole'),
    stop() {
      stopped = true;
      cancel();
    },
  };
}

/**
 * A mount of somebody's stays until a person unmounts it, and nobody else can tell what it hides: what a driver may
 * have there is waited for, however long, and another look shows no more of all else (seeds 477793436, 17099).
 */
function whyUnread(
  { unreadPlaces, unknown, driversHidden }: Reconstruction,
  looks: number,
): Failure | undefined {
  const isLearnt = unreadPlaces !== undefined && unknown !== undefined;
  const failures = isLearnt
    ? [...unreadPlaces.map(({ failure }) => failure), ...unknown.unread]
    : [UNREADABLE];
  if (driversHidden) return failures.find(isCover);
  return looks >= UNREAD_LOOKS_MAX ? undefined : failures.find((one) => !isCover(one));
}

function isCover({ code }: Failure): boolean {
  return code === 'mount-foreign' || code === 'mount-stacked';
}

const UNREADABLE: Failure = {
  code: 'table-unreadable',
  message: 'what is mounted could not be read',
  effect: 'none',
};
