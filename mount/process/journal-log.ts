/** The log of the process: one line per event, JSON or for people, with journald's priorities. The importer of pino. */
import { pino } from 'pino';
import type { Log, LogFields, LogLevel } from './log.ts';
import { printable } from '../text/printable.ts';

export interface JournalLogParts {
  /** `auto` is decided by the caller, who knows the terminal. */
  readonly format: 'json' | 'human';
  /** Put sd-daemon(3)'s `<N>` in front of each line: the journal reads it as the priority. */
  readonly priorities: boolean;
  readonly level: LogLevel;
  /** Takes one whole line with its line end; called once per line, so that lines never mix. */
  readonly write: (line: string) => void;
  /** Milliseconds since the epoch. */
  readonly wallMs: () => number;
}

const VALUE_BYTES_MAX = 1_024;
const KEY_BYTES_MAX = 64;
/** syslog(3): error 3, warning 4, informational 6, debug 7. */
const PRIORITIES: Readonly<Record<string, number>> = { debug: 7, info: 6, warn: 4, error: 3 };
/** Names no field of ours has; should one ever come, its value does not reach the journal. */
const NEVER_SHOWN = ['secret', 'secrets', 'password', 'token', 'credentials'];

/**
 * Guarantees: one event is one line; control, bidirectional and separator characters of any value are escaped
 * (SE-21); a value has at most 1 KiB. Does not filter repetitions: callers log transitions only.
 */
export function createLog(parts: JournalLogParts): Log {
  const logger = pino(
    {
      level: parts.level,
      base: null,
      messageKey: 'event',
      timestamp: () => `,"time":"${new Date(parts.wallMs()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: NEVER_SHOWN, censor: '[redacted]' },
    },
    { write: (line: string) => parts.write(finish(line, parts)) },
  );
  const at =
    (level: LogLevel) =>
    (event: string, fields: LogFields = {}): void => {
      if (logger.isLevelEnabled(level)) logger[level](safeFields(fields), printable(event, VALUE_BYTES_MAX));
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** A field may not take the place of what every line has. */
const RESERVED: ReadonlySet<string> = new Set(['level', 'time', 'event']);

function safeFields(fields: LogFields): Record<string, string | number | boolean> {
  const safe: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    const key = RESERVED.has(name) ? `${name}_` : printable(name, KEY_BYTES_MAX);
    safe[key] = typeof value === 'string' ? printable(value, VALUE_BYTES_MAX) : value;
  }
  return safe;
}

function finish(line: string, { format, priorities }: JournalLogParts): string {
  if (format === 'json' && !priorities) return line;
  const entry = JSON.parse(line) as Record<string, unknown>;
  const prefix = priorities ? `<${PRIORITIES[String(entry['level'])] ?? 6}>` : '';
  return format === 'json' ? prefix + line : `${prefix}${humanLine(entry, priorities)}\n`;
}

/** `12:00:00.000 warn  operation failed  operation=stage code=driver-busy`; the journal has the time itself. */
function humanLine({ level, time, event, ...fields }: Record<string, unknown>, priorities: boolean): string {
  const pairs = Object.entries(fields).map(([key, value]) => `${key}=${humanValue(value)}`);
  const head = priorities ? [] : [String(time).slice(11, 23), String(level).padEnd(5)];
  return [...head, pairs.length === 0 ? String(event) : `${String(event)} `, ...pairs].join(' ');
}

const PLAIN_VALUE = /^[^\s"=]+$/;

function humanValue(value: unknown): string {
  const text = String(value);
  // Backslashes are ours already (printable.ts), so only quotes need one.
  return PLAIN_VALUE.test(text) ? text : `"${text.replaceAll('"', '\\"')}"`;
}
