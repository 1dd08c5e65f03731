/** Most pods vanish from the manifests at once: more often a mistake than a wish (AP-12), so it has to last. Pure. */
import type { PodUid } from '../../../plugins/volume.ts';
import type { MassRemoval } from '../objects-source.ts';
import { podsOf } from './known-objects.ts';
import { dueMs, type Listing, type ManifestFile, waitLonger } from './manifest-file.ts';
import { saidIn } from './moved-objects.ts';

const SHRINK_SETTLE_MS = 10_000;
const SHRINK_PODS_MIN = 4;

/** What the guard knows beside the files. */
export interface GuardFacts {
  /** Pods that the records know and no manifest has: they have vanished, too. */
  readonly missing: number;
  /** Whatever may be gone by mistake waits so long; undefined: it was seen to go. */
  readonly holdMs: number | undefined;
  /** Pods of which an operator has said that they are gone. */
  readonly forgotten: ReadonlySet<PodUid>;
}

/**
 * The same files; what may be gone by mistake waits longer when it is more than half of the pods, and not just a few,
 * or was not seen to go. What another file says is not gone.
 */
export function guard(
  files: readonly ManifestFile[],
  { settleMs }: Pick<Listing, 'settleMs'>,
  { missing, holdMs, forgotten }: GuardFacts,
): readonly ManifestFile[] {
  const said = files.some(({ pending }) => (pending?.dropped.size ?? 0) > 0)
    ? saidIn(files)
    : new Set<string>();
  const pods = new Set<PodUid>();
  const losing = new Set<PodUid>();
  for (const { known, pending } of files) {
    for (const pod of podsOf(known)) pods.add(pod);
    for (const pod of pending?.losing ?? []) if (!said.has(pod)) losing.add(pod);
  }
  const isShrinking =
    losing.size + missing >= SHRINK_PODS_MIN && (losing.size + missing) * 2 > pods.size + missing;
  const waitMs = Math.max(holdMs ?? 0, isShrinking ? SHRINK_SETTLE_MS : 0);
  return files.map((one) => {
    if (isSaid(one, said)) return waitAsUsual(one, settleMs);
    return waitMs > 0 && mayBeMistaken(one) && !isForgotten(one, forgotten) ? waitLonger(one, waitMs) : one;
  });
}

/** Is all that it drops said elsewhere? */
function isSaid({ pending }: ManifestFile, said: ReadonlySet<string>): boolean {
  return (
    pending !== undefined && pending.dropped.size > 0 && [...pending.dropped].every((key) => said.has(key))
  );
}

/** What a file says of all that it has said before is no mistake, nor is what is new. */
function mayBeMistaken({ pending, seen }: ManifestFile): boolean {
  return pending !== undefined && (pending.dropped.size > 0 || seen.kind !== 'content');
}

function isForgotten({ pending }: ManifestFile, forgotten: ReadonlySet<PodUid>): boolean {
  return (
    pending !== undefined && pending.losing.size > 0 && [...pending.losing].every((pod) => forgotten.has(pod))
  );
}

/** Those of the pods that a file is about to lose: a word about them is about this time, and ends with it. */
export function stillLost(pods: Iterable<PodUid>, files: Iterable<ManifestFile>): ReadonlySet<PodUid> {
  const losing = new Set([...files].flatMap(({ pending }) => [...(pending?.losing ?? [])]));
  return new Set([...pods].filter((pod) => losing.has(pod)));
}

/** The same files; those of which all that is lost is forgotten wait no longer than a change does. */
export function believeGone(
  file: ManifestFile,
  forgotten: ReadonlySet<PodUid>,
  { settleMs }: Pick<Listing, 'settleMs'>,
): ManifestFile {
  return isForgotten(file, forgotten) ? waitAsUsual(file, settleMs) : file;
}

function waitAsUsual(file: ManifestFile, settleMs: number): ManifestFile {
  if (file.pending === undefined || file.pending.settleMs === settleMs) return file;
  return { ...file, pending: { ...file.pending, settleMs } };
}

/** Undefined when nothing is kept back by the guard. */
export function massRemoval(
  files: Iterable<ManifestFile>,
  { settleMs }: Pick<Listing, 'settleMs'>,
): MassRemoval | undefined {
  const pods = new Set<PodUid>();
  let sinceMs = Number.POSITIVE_INFINITY;
  let untilMs = 0;
  for (const file of files) {
    const { pending } = file;
    if (pending === undefined || pending.settleMs <= settleMs || pending.losing.size === 0) continue;
    for (const pod of pending.losing) pods.add(pod);
    sinceMs = Math.min(sinceMs, pending.sinceMs);
    untilMs = Math.max(untilMs, dueMs(file) ?? 0);
  }
  return pods.size === 0 ? undefined : { pods, sinceMs, untilMs };
}

/** Is the same said of the same pods? */
export function isSameRemoval(a: MassRemoval | undefined, b: MassRemoval | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return (
    a.untilMs === b.untilMs && a.pods.size === b.pods.size && [...a.pods].every((pod) => b.pods.has(pod))
  );
}
