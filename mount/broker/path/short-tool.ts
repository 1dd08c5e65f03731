/** System tools that a path broker waits for: such as ask no file system anything, and are about what it has open. */
import { spawnSync } from 'node:child_process';
import { errnoOf, failErrno } from '../../errno.ts';
import { done, fail, type FailureCode, type Result } from '../../failure.ts';
import { findTool } from '../../path-tool.ts';
import { printable } from '../../text/printable.ts';

const TOOL_MS_MAX = 20_000;
const WORDS_BYTES_MAX = 256;

let held: readonly number[] = [];

/** Descriptors that tools are to keep open, so that whoever waits for the broker waits for its tool as well. */
export function holdForTools(descriptors: readonly number[]): void {
  held = descriptors;
}

export interface ShortTool {
  readonly tool: string;
  readonly argv: readonly string[];
  /** What it has as its descriptors from 3 on, and nothing else but the standard ones. */
  readonly open: readonly number[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Counted from its start; 20 s unless said otherwise. The broker's own deadline is longer. */
  readonly deadlineMs?: number;
  /** The code of a failure of its own. */
  readonly failed: FailureCode;
}

/** What it said is a hint: the caller looks. Effect `unknown` of all that fails but `tool-missing`. */
export function runShortTool(request: ShortTool): Result<void> {
  const { tool, argv, open, environment, deadlineMs = TOOL_MS_MAX, failed } = request;
  const file = findTool(tool);
  if (file === undefined)
    return fail({ code: 'tool-missing', message: `${tool} is missing`, effect: 'none' });
  const { status, signal, stderr, error } = spawnSync(file, argv, {
    cwd: '/',
    env: { LC_ALL: 'C', ...environment },
    stdio: ['ignore', 'ignore', 'pipe', ...open, ...held],
    timeout: deadlineMs,
    killSignal: 'SIGKILL',
  });
  // Node.js has an error for its own deadline as well as for a tool that never ran, and none for what others end.
  const isLate = error !== undefined && errnoOf(error) === 'ETIMEDOUT';
  if (error !== undefined && !isLate) return failErrno(error, `start ${tool}`, 'unknown');
  if (status === 0 && !isLate) return done;
  const words = printable(String(stderr).replace(/\s+/g, ' ').trim(), WORDS_BYTES_MAX);
  const message = `${tool} ${signal ?? `exit ${status}`}: ${words}`;
  const ended = signal === null ? failed : 'input-output';
  return fail({ code: isLate ? 'deadline-passed' : ended, message, effect: 'unknown' });
}
