/** What the agent says of itself, by its status API; waiting is a long poll, never a sleep (docs/API.md). */
import { existsSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { type ApiAnswer, getFromAgent } from '../../agent/cli/api-client.ts';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import type { ChildProcess } from './child-process.ts';

const TIMEOUT_MS = 120_000;
const LONG_POLL_MS = 2_000;

export async function readStatus(socket: string, after?: string): Promise<StatusDocument> {
  const query = after === undefined ? '' : `?after=${encodeURIComponent(after)}&waitMs=${LONG_POLL_MS}`;
  const answer = await getFromAgent<StatusDocument>({
    socket,
    path: `/v1/status${query}`,
    kind: 'Status',
    timeoutMs: TIMEOUT_MS,
  });
  if (answer.kind === 'ok') return answer.body;
  throw new Error(`the status API: ${answer.message}`);
}

export interface Waiting {
  /** "…", as in "waited 15 s in vain for …". */
  readonly what: string;
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
  /** Sees every document on the way, the last one included. */
  readonly onStatus?: (status: StatusDocument) => void;
}

/** The first status document for which `holds`. Rejects with the last one's own words when it takes too long. */
export async function waitForStatus(
  socket: string,
  holds: (status: StatusDocument) => boolean,
  waiting: Waiting,
): Promise<StatusDocument> {
  const end = performance.now() + waiting.deadlineMs;
  let status = await readStatus(socket);
  for (;;) {
    waiting.signal.throwIfAborted();
    waiting.onStatus?.(status);
    if (holds(status)) return status;
    if (performance.now() > end) {
      throw new Error(
        `waited ${waiting.deadlineMs / 1_000} s in vain for ${waiting.what}${reasonsIn(status)}`,
      );
    }
    status = await readStatus(socket, status.revision);
  }
}

/** Everything wanted is mounted, nothing else is there, and nothing is under way. */
export function isSettled({ summary, agent }: StatusDocument): boolean {
  return (
    agent.complete &&
    summary.podsReady === summary.podsWanted &&
    summary.pods === summary.podsWanted &&
    summary.operationsRunning + summary.operationsQueued === 0
  );
}

export function isIdle({ summary }: StatusDocument): boolean {
  return summary.operationsRunning + summary.operationsQueued === 0;
}

function reasonsIn(status: StatusDocument): string {
  const reasons = status.pods.flatMap((pod) =>
    pod.volumes.flatMap(({ name, state, reason }) => {
      return reason === null ? [] : [`${pod.name}/${name} is ${state}: ${reason.code}: ${reason.message}`];
    }),
  );
  const rejected = status.sources.rejected.map(({ subject, message }) => `rejected ${subject}: ${message}`);
  const all = [...rejected, ...reasons].slice(0, 10);
  return all.length === 0 ? '' : `\n  ${all.join('\n  ')}`;
}

const START_MS = 300_000;

/** Settles when the agent says of itself that it is healthy: the socket's appearance is the event, no polling. */
export async function untilHealthy(socket: string, agent: ChildProcess, signal: AbortSignal): Promise<void> {
  const appeared = new AbortController();
  const end = AbortSignal.any([signal, AbortSignal.timeout(START_MS)]);
  try {
    while (!end.aborted) {
      if (!agent.running()) throw new Error(`the agent ended at once: ${JSON.stringify(await agent.ended)}`);
      const event = nextEvent(socket, AbortSignal.any([end, appeared.signal]), agent);
      if (existsSync(socket) && (await health(socket))) return;
      await event;
    }
  } finally {
    appeared.abort();
  }
  signal.throwIfAborted();
  throw new Error(`the agent is not healthy ${START_MS / 1_000} s after its start`);
}

/** A socket is seen before it listens, and an agent may listen before it is healthy. */
const LOOK_AGAIN_MS = 5;

function nextEvent(socket: string, signal: AbortSignal, agent: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    const watcher = watch(dirname(socket), (_event, name) => {
      if (name === basename(socket)) settle();
    });
    const timer = existsSync(socket) ? setTimeout(() => settle(), LOOK_AGAIN_MS) : undefined;
    const settle = (): void => {
      watcher.close();
      clearTimeout(timer);
      signal.removeEventListener('abort', settle);
      resolve();
    };
    signal.addEventListener('abort', settle);
    void agent.ended.then(settle);
  });
}

async function health(socket: string): Promise<boolean> {
  const answer: ApiAnswer<{ readonly healthy: boolean }> = await getFromAgent({
    socket,
    path: '/v1/health',
    kind: 'Health',
    timeoutMs: TIMEOUT_MS,
  });
  return answer.kind === 'ok' && answer.body.healthy;
}
