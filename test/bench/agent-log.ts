/** The agent's log as it is written: when did which volume arrive? Reading along costs the agent nothing. */
import { nowMs } from './clock.ts';

export interface AgentLog {
  /** Takes a line of the agent. */
  readonly line: (text: string) => void;
  /**
   * When each of the subjects was told with this event; those told since `forget` count as well. Rejects when nothing
   * at all was told for five minutes.
   */
  until(event: LogEvent, subjects: readonly string[]): Promise<ReadonlyMap<string, number>>;
  forget(): void;
  /** Failures that the agent told, as it told them; it goes on, but what is measured is slower for them. */
  failures(): readonly string[];
  /** The last lines, for a failure. */
  lastLines(): string;
}

/** As the reconciler names them; the subject is the publication (`<pod uid>/<name>`) or the volume's id. */
export type LogEvent = 'volume staged' | 'volume published' | 'volume unpublished' | 'volume unstaged';

interface Line {
  readonly event?: string;
  readonly volume?: string;
  readonly publication?: string;
}

const LAST_LINES = 8;
const PATIENCE_MS = 300_000;

export function createAgentLog(interrupted: AbortSignal): AgentLog {
  const told = new Map<string, number>();
  const last: string[] = [];
  const failures: string[] = [];
  let arrived = (_key: string): void => {};

  function parse(text: string): Line {
    try {
      return JSON.parse(text) as Line;
    } catch {
      return {};
    }
  }

  return {
    line(text) {
      const atMs = nowMs();
      last.push(text);
      if (last.length > LAST_LINES) last.shift();
      const { event, volume, publication } = parse(text);
      if (event === 'operation failed') failures.push(text);
      if (event === undefined || volume === undefined) return;
      const key = `${event} ${publication ?? volume}`;
      if (!told.has(key)) told.set(key, atMs);
      arrived(key);
    },
    until(event, subjects) {
      const keyOf = (subject: string): string => `${event} ${subject}`;
      const missing = new Set(subjects.map(keyOf).filter((key) => !told.has(key)));
      return new Promise((resolve, reject) => {
        const settle = (): void => {
          clearTimeout(timer);
          interrupted.removeEventListener('abort', interrupt);
          arrived = () => {};
          resolve(new Map(subjects.map((subject) => [subject, told.get(keyOf(subject)) ?? Number.NaN])));
        };
        const interrupt = (): void => {
          clearTimeout(timer);
          reject(interrupted.reason as Error);
        };
        const timer = setTimeout(() => {
          const [first] = missing;
          const missed = `${missing.size} of ${subjects.length} are missing: ${first}`;
          reject(new Error(`nothing happened for ${PATIENCE_MS / 1_000} s and ${missed}`));
        }, PATIENCE_MS);
        if (interrupted.aborted) return interrupt();
        interrupted.addEventListener('abort', interrupt);
        arrived = (key) => {
          timer.refresh();
          if (missing.delete(key) && missing.size === 0) settle();
        };
        if (missing.size === 0) settle();
      });
    },
    forget: () => told.clear(),
    failures: () => failures,
    lastLines: () => last.join('\n'),
  };
}
