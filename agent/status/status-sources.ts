/** What is wrong with the sources of the wish, as the status has it. Pure. */
import { printable } from '../../mount/text/printable.ts';
import type { ClusterReport } from '../source/cluster-report.ts';
import type {
  ClusterStatus,
  DetachClockStatus,
  ReplacedStatus,
  StatusDocument,
  VanishedStatus,
  MassRemovalStatus,
} from './status-document.ts';
import type { StatusFacts } from './status-facts.ts';

type SourceFacts = Pick<
  StatusFacts,
  'rejected' | 'desired' | 'cluster' | 'massRemoval' | 'held' | 'replaced' | 'nowMs'
>;

const TEXT_BYTES_MAX = 1_024;
/** The last moment that a Date can be. */
const WALL_MS_MAX = 8.64e15;

/** `when`: a time of the host's clock as the document writes it. */
export function sourcesOf(
  facts: SourceFacts,
  when: (monotonicMs: number) => string,
): StatusDocument['sources'] {
  const rejected = facts.rejected.map(({ origin, subject, field, message }) => ({
    origin: shown(origin),
    subject: subject === undefined ? null : shown(subject),
    field: field === undefined ? null : shown(field),
    message: shown(message),
  }));
  return {
    rejected,
    unknown: [...facts.desired.unknownOrigins].map(shown).sort(),
    vanishing: massRemovalStatus(facts, when),
    vanished: vanishedOf(facts, when),
    cluster: clusterOf(facts, when),
    replaced: replacedOf(facts, when),
  };
}

function clusterOf({ cluster }: SourceFacts, when: (monotonicMs: number) => string): ClusterStatus | null {
  if (cluster === undefined) return null;
  const { server, state, sinceMs, message, pods } = cluster;
  const why = message === '' ? null : shown(message);
  const detachClock = detachClockOf(cluster, when);
  return { server: shown(server), state, since: when(sinceMs), message: why, pods, detachClock };
}

function detachClockOf(
  { detachClock }: ClusterReport,
  when: (monotonicMs: number) => string,
): DetachClockStatus | null {
  if (detachClock === undefined) return null;
  const { ready, sinceWallMs, outOfService, pods } = detachClock;
  const told = [...pods].map(([uid, demand]) => ({
    uid: shown(uid),
    state: demand.kind,
    markedFrom: demand.kind === 'there' ? wallText(demand.markedFromMs) : null,
    endedSince: demand.kind === 'ended' ? when(demand.sinceMs) : null,
  }));
  return { ready, since: wallText(sinceWallMs), outOfService, pods: told };
}

/** A time that others have written may be one that no calendar has. */
function wallText(wallMs: number | undefined): string | null {
  return wallMs === undefined || Math.abs(wallMs) > WALL_MS_MAX ? null : new Date(wallMs).toISOString();
}

function vanishedOf(
  { held, nowMs }: SourceFacts,
  when: (monotonicMs: number) => string,
): VanishedStatus | null {
  const pods = [...held.values()];
  if (pods.length === 0) return null;
  const untilMs = Math.max(...pods.map((one) => one.untilMs));
  return {
    pods: [...held.keys()].map(shown).sort(),
    since: when(Math.min(...pods.map((one) => one.sinceMs))),
    believedInMs: Math.max(0, Math.round(untilMs - nowMs)),
  };
}

function replacedOf({ replaced }: SourceFacts, when: (monotonicMs: number) => string): ReplacedStatus | null {
  if (replaced === undefined) return null;
  const { directory, was, is, sight, sinceMs } = replaced;
  return { directory: shown(directory), was: shown(was), is: shown(is), sight, since: when(sinceMs) };
}

function massRemovalStatus(
  { massRemoval, nowMs }: SourceFacts,
  when: (monotonicMs: number) => string,
): MassRemovalStatus | null {
  if (massRemoval === undefined) return null;
  const { pods, sinceMs, untilMs } = massRemoval;
  return {
    pods: [...pods].map(shown).sort(),
    since: when(sinceMs),
    believedInMs: Math.max(0, Math.round(untilMs - nowMs)),
  };
}

function shown(text: string): string {
  return printable(text, TEXT_BYTES_MAX);
}
