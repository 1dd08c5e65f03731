/** What was said of whom, and when it is said again: each trouble once, then seldom, as long as it stands. */
import { sha256Hex } from '../../plugins/layout/layout.ts';
import type { VolumeEvent } from './volume-event.ts';

/** A trouble that is to be said now. */
export interface DueEvent extends VolumeEvent {
  /** The same for each repetition, also of another life of the agent. */
  readonly id: string;
  /** How often it has been said in this life, this time included. */
  readonly count: number;
  /** Since when it has stood, and when it was due, on the host's clock: the server may take it much later. */
  readonly sinceMs: number;
  readonly atMs: number;
}

export interface EventLook {
  readonly due: readonly DueEvent[];
  /** Host clock: when something that stands is to be said next; undefined: nothing is. */
  readonly nextMs: number | undefined;
}

const AGAIN_AFTER_MS = 300_000;
/** What comes back within this is the same trouble: it is not said at once again. */
const FORGOTTEN_AFTER_MS = 600_000;
/** So many different ones are said of one object as long as they are remembered (client-go's burst). */
const PER_SUBJECT_MAX = 25;
const ENTRIES_MAX = 10_000;

interface Entry {
  readonly subject: string;
  readonly sinceMs: number;
  seenMs: number;
  saidMs: number | undefined;
  count: number;
}

export class EventBook {
  readonly #entries = new Map<string, Entry>();

  /** `standing`: all that could be said at this moment. */
  look(standing: readonly VolumeEvent[], nowMs: number): EventLook {
    for (const [id, { seenMs }] of this.#entries)
      if (nowMs - seenMs > FORGOTTEN_AFTER_MS) this.#entries.delete(id);
    const perSubject = new Map<string, number>();
    for (const { subject, saidMs } of this.#entries.values())
      if (saidMs !== undefined) perSubject.set(subject, (perSubject.get(subject) ?? 0) + 1);
    const due: DueEvent[] = [];
    let nextMs: number | undefined;
    for (const event of standing) {
      const id = idOf(event);
      const entry = this.#entryOf(id, event, nowMs);
      if (entry === undefined) continue;
      const said = perSubject.get(entry.subject) ?? 0;
      if (entry.saidMs === undefined && said >= PER_SUBJECT_MAX) continue;
      const dueMs = dueAt(entry, event);
      if (dueMs > nowMs) {
        nextMs = Math.min(dueMs, nextMs ?? dueMs);
        continue;
      }
      if (entry.saidMs === undefined) perSubject.set(entry.subject, said + 1);
      entry.saidMs = nowMs;
      entry.count += 1;
      nextMs = Math.min(nowMs + AGAIN_AFTER_MS, nextMs ?? Number.POSITIVE_INFINITY);
      due.push({ ...event, id, count: entry.count, sinceMs: entry.sinceMs, atMs: nowMs });
    }
    return { due, nextMs };
  }

  #entryOf(id: string, { subject }: VolumeEvent, nowMs: number): Entry | undefined {
    const known = this.#entries.get(id);
    if (known !== undefined) {
      known.seenMs = nowMs;
      return known;
    }
    if (this.#entries.size >= ENTRIES_MAX) return undefined;
    const about = `${subject.kind} ${subject.uid ?? subject.name}`;
    const fresh: Entry = { subject: about, sinceMs: nowMs, seenMs: nowMs, saidMs: undefined, count: 0 };
    this.#entries.set(id, fresh);
    return fresh;
  }
}

function dueAt({ saidMs, sinceMs }: Entry, { sayAfterMs }: VolumeEvent): number {
  return saidMs === undefined ? sinceMs + sayAfterMs : saidMs + AGAIN_AFTER_MS;
}

/** The message does not count: it has counts and moments in it. */
function idOf({ subject: { kind, namespace, name, uid }, reason, code, volume }: VolumeEvent): string {
  return sha256Hex(JSON.stringify([kind, namespace, name, uid, reason, code, volume])).slice(0, 16);
}
