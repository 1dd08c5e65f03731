/** `mooring wait` and `mooring release`: for what starts and ends the containers of a pod. */
import { spanText } from '../../mount/text/duration.ts';
import { printable } from '../../mount/text/printable.ts';
import { EXIT_CODES } from '../config/exit-code.ts';
import { reasonSentence } from '../status/sentence.ts';
import type { PodStatus, PodVolumeStatus, StatusDocument } from '../status/status-document.ts';
import { findPod, findWantedPod, fullName } from '../status/subject.ts';
import type { Reason } from '../status/volume-status.ts';
import { type ApiAnswer, changeAtAgent, getFromAgent } from './api-client.ts';
import { complain, type Screen } from './show.ts';

export interface WaitOptions {
  readonly socket: string;
  /** Infinity: until it is there. */
  readonly timeoutMs: number;
}

/** One thing that is waited for. `key` changes with it; neither as time goes by, nor with another try of the same. */
interface Obstacle {
  readonly key: string;
  /** Who is in the way, who is looked for after each failure anew; empty while nobody is known. */
  readonly blocker: string;
  readonly sentence: string;
}

/** How far it is: over, well or not, with a sentence; or what is waited for. */
type Progress =
  | { readonly kind: 'over'; readonly done: boolean; readonly sentence: string }
  | {
      readonly kind: 'waiting';
      readonly obstacles: readonly Obstacle[];
      /** Then it is something else, though nothing changes. */
      readonly againMs?: number;
    };

const ANSWER_MS_MAX = 10_000;
/** At the end of the time the agent is asked once more. */
const LAST_ANSWER_MS = 1_000;
const WAIT_MS = 25_000;
const RETRY_MS = 500;
/** A manifest that was deleted right before is noticed within this time. */
const NOTICED_MS = 2_000;

/** Until all volumes of the pod are there. An agent that does not run yet, and a pod nobody knows yet, are awaited. */
export function waitForPod(pod: string, options: WaitOptions, screen: Screen): Promise<number> {
  return waitUntil((status) => towardsReady(pod, status), options, screen);
}

export interface ReleaseOptions extends WaitOptions {
  /** What is left of the pod goes, whoever has something of it. */
  readonly force?: boolean;
}

/**
 * Until nothing is left of a pod that is not wanted any more. One that stays wanted keeps what it has: no failure. Once
 * it is not wanted the agent is told that its containers have ended, so that it looks again at once. It forgets that at
 * its end, so the one that comes after it is told as well.
 */
export function releasePod(pod: string, options: ReleaseOptions, screen: Screen): Promise<number> {
  const startMs = performance.now();
  const noticedMs = startMs + Math.min(NOTICED_MS, options.timeoutMs);
  let isSaid = false;
  /** Whoever has the name later is not meant. */
  let meant: string | undefined;
  const onSilence = (): void => {
    isSaid = false;
  };
  const look = (status: StatusDocument): Progress => {
    const found = findPod(pod, status);
    if (
      !isSaid &&
      found.kind === 'found' &&
      !found.pod.wanted &&
      found.pod.uid === (meant ?? found.pod.uid)
    ) {
      isSaid = true;
      meant = found.pod.uid;
      const leftMs = Math.max(0, Math.round(startMs + options.timeoutMs - performance.now()));
      void sayReleased(found.pod, { ...options, timeoutMs: leftMs }, screen);
    }
    return towardsReleased(pod, status, noticedMs);
  };
  return waitUntil(look, options, screen, onSilence);
}

/** Without force it is a hint, and nothing is lost with it. */
async function sayReleased({ uid }: PodStatus, options: ReleaseOptions, screen: Screen): Promise<void> {
  const { socket, timeoutMs: leftMs, force = false } = options;
  // It keeps the process for as long as nobody answers.
  const timeoutMs = Math.min(ANSWER_MS_MAX, leftMs + LAST_ANSWER_MS);
  const path = `/v1/pods/${encodeURIComponent(uid)}/release`;
  const asked = { socket, path, timeoutMs, kind: 'Release' };
  const answer = await changeAtAgent({ ...asked, method: 'POST', body: { force } });
  if (force && answer.kind !== 'ok') complain(answer.message, screen);
}

/** Says what is waited for whenever that changes. Settles with the exit code. `onSilence`: no agent has answered. */
async function waitUntil(
  look: (status: StatusDocument) => Progress,
  { socket, timeoutMs }: WaitOptions,
  screen: Screen,
  onSilence: () => void = () => {},
): Promise<number> {
  const endMs = performance.now() + timeoutMs;
  let revision: string | undefined;
  let last: StatusDocument | undefined;
  let told: readonly Obstacle[] = [];
  let blockers: ReadonlyMap<string, string> = new Map();
  let againMs = WAIT_MS;
  for (;;) {
    const leftMs = Math.max(0, Math.round(endMs - performance.now()));
    const waitMs = Math.min(againMs, leftMs);
    const query = revision === undefined ? '' : `?after=${encodeURIComponent(revision)}&waitMs=${waitMs}`;
    const answer = await getFromAgent<StatusDocument>({
      ...{ socket, path: `/v1/status${query}`, kind: 'Status' },
      timeoutMs: Math.min((revision === undefined ? 0 : waitMs) + ANSWER_MS_MAX, leftMs + LAST_ANSWER_MS),
    });
    revision = answer.kind === 'ok' ? answer.body.revision : undefined;
    if (answer.kind === 'unreachable') onSilence();
    const heard = heardIn(answer, last);
    last = typeof heard === 'string' ? undefined : heard;
    const now: Progress =
      typeof heard === 'string' ? { kind: 'waiting', obstacles: [noAnswer(heard)] } : look(heard);
    if (now.kind === 'over') {
      if (!now.done) complain(now.sentence, screen);
      else screen.write(`${now.sentence}\n`);
      return now.done ? EXIT_CODES.ok : EXIT_CODES.failure;
    }
    for (const { key, blocker, sentence } of now.obstacles) {
      const known = blockers.get(key);
      if (known === undefined || !['', known].includes(blocker)) screen.write(`waits: ${sentence}\n`);
    }
    told = now.obstacles;
    blockers = new Map(told.map(({ key, blocker }) => [key, blocker || (blockers.get(key) ?? '')]));
    againMs = now.againMs ?? WAIT_MS;
    if (leftMs === 0 || (answer.kind !== 'ok' && performance.now() >= endMs)) {
      complain(
        `not within ${spanText(timeoutMs)}: ${told.map(({ sentence }) => sentence).join('; ')}`,
        screen,
      );
      return EXIT_CODES.timeout;
    }
    if (answer.kind !== 'ok') await screen.sleep(Math.min(RETRY_MS, leftMs));
  }
}

/** The status of now, or why there is none. That an agent has no room for who waits says nothing of the pod. */
function heardIn(
  answer: ApiAnswer<StatusDocument>,
  last: StatusDocument | undefined,
): StatusDocument | string {
  if (answer.kind === 'ok') return answer.body;
  const isCrowded = answer.kind === 'refused' && answer.code === 'too-many-watchers';
  return isCrowded && last !== undefined ? last : answer.message;
}

function noAnswer(message: string): Obstacle {
  return { key: message, blocker: '', sentence: message };
}

function towardsReady(name: string, status: StatusDocument): Progress {
  const found = findWantedPod(name, status);
  if (found.kind === 'ambiguous') return { kind: 'over', done: false, sentence: found.message };
  if (found.kind === 'unknown') return { kind: 'waiting', obstacles: [noAnswer(found.message)] };
  const { pod } = found;
  const wanted = pod.volumes.filter((volume) => volume.wanted);
  if (pod.ready) {
    const count = wanted.length === 1 ? 'its volume is' : `all ${wanted.length} volumes are`;
    const there = wanted.length === 0 ? 'it has no volumes' : `${count} there`;
    return { kind: 'over', done: true, sentence: `pod ${fullName(pod)}: ${there}` };
  }
  if (!pod.wanted)
    return { kind: 'waiting', obstacles: [noAnswer(`pod ${fullName(pod)} is not wanted any more`)] };
  const missing = wanted.filter(({ state }) => state !== 'mounted');
  return { kind: 'waiting', obstacles: missing.map(obstacleOf) };
}

function towardsReleased(name: string, status: StatusDocument, noticedMs: number): Progress {
  const found = findPod(name, status);
  if (found.kind === 'ambiguous') return { kind: 'over', done: false, sentence: found.message };
  if (found.kind === 'found') return releaseOf(found.pod, Math.ceil(noticedMs - performance.now()));
  // What is only on disk may not have been found yet.
  if (status.agent.complete)
    return { kind: 'over', done: true, sentence: `pod ${printable(name, 128)}: nothing is left of it` };
  return { kind: 'waiting', obstacles: [noAnswer('the agent has not read everything yet')] };
}

function releaseOf(pod: PodStatus, againMs: number): Progress {
  if (pod.wanted) {
    const sentence = `pod ${fullName(pod)} is still wanted: its volumes stay until its manifest is deleted`;
    return againMs <= 0
      ? { kind: 'over', done: true, sentence }
      : { kind: 'waiting', obstacles: [], againMs };
  }
  return { kind: 'waiting', obstacles: pod.volumes.map(obstacleOf) };
}

function obstacleOf({ name, driver, state, reason }: PodVolumeStatus): Obstacle {
  if (reason === null)
    return { key: JSON.stringify([name, state]), blocker: '', sentence: `volume ${name} is ${state}` };
  const sentence = `volume ${name} is ${state}: ${reasonSentence(reason, driver)}`;
  return { key: JSON.stringify([name, ...inTheWay(reason)]), blocker: blockerOf(reason), sentence };
}

/** While what failed is tried again it is that failure still, whatever step the try is in. */
function inTheWay({ kind, code, operation, message, lastFailure, progress, step }: Reason) {
  const isLate = step?.overdue ?? false;
  if (lastFailure !== null) return [operation, lastFailure.code, lastFailure.message, isLate];
  return [operation, code, kind === 'running' ? progress : message, isLate];
}

function blockerOf({ blocker, lastFailure }: Reason): string {
  return (lastFailure ?? { blocker }).blocker ?? '';
}
