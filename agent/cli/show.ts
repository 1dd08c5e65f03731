/** What commands show: one that asks the agent, or changes something there, writes its answer as text or JSON. */
import { type ApiChange, changeAtAgent, getFromAgent } from './api-client.ts';
import { explanationText, statusText } from './status-text.ts';
import type { StatusDocument } from '../status/status-document.ts';
import { printable, printableJson } from '../../mount/text/printable.ts';
import type { Look } from '../../mount/text/table.ts';
import { BUILD } from '../config/version.ts';

/** The terminal or pipe the answer goes to. */
export interface Screen {
  readonly look: () => Look;
  /** Undefined when it is no terminal: then nothing is redrawn, each answer follows the last. */
  readonly rows: () => number | undefined;
  write(text: string): void;
  /** For people only: what a terminal would act on is escaped (SE-21). Line ends stay, so who complains minds those. */
  complain(text: string): void;
  sleep(delayMs: number): Promise<unknown>;
}

export type OutputFormat = 'table' | 'json' | 'wide';

/** True when there was an answer: the exit code. */
export type Shown = boolean;

/** One question to the agent, or one change, and how the document that it answers with is shown. */
export interface Asked<Document> {
  readonly socket: string;
  /** It has its query. */
  readonly path: string;
  /** The kind that the document says it is. */
  readonly kind: string;
  /** Undefined: it is only asked. */
  readonly change?: Pick<ApiChange, 'method' | 'body'>;
  /** Anything but `json`: as text. */
  readonly output: string;
  readonly text: (document: Document, look: Look) => string;
}

const TIMEOUT_MS = 10_000;
/** A change is answered when it is on disk, and a disk may be slow. */
const CHANGE_TIMEOUT_MS = 30_000;
/** On a terminal the times on the screen are never older than this. */
const REDRAW_MS = 2_000;
const WAIT_MS = 25_000;
const RETRY_MS = 1_000;

/** What the agent refuses, or why there is none, is a complaint and a failure. */
export async function askAndShow<Document>(asked: Asked<Document>, screen: Screen): Promise<Shown> {
  const { socket, path, kind, change, output, text } = asked;
  const answer =
    change === undefined
      ? await lookAt<Document>({ socket, path, kind })
      : await changeAtAgent<Document>({ socket, path, kind, timeoutMs: CHANGE_TIMEOUT_MS, ...change });
  if (answer.kind !== 'ok') return complain(answer.message, screen);
  screen.write(output === 'json' ? json(answer.body) : text(answer.body, screen.look()));
  return true;
}

/** Called by who wants the document itself. */
export function lookAt<Document>({ socket, path, kind }: Pick<Asked<Document>, 'socket' | 'path' | 'kind'>) {
  return getFromAgent<Document>({ socket, path, kind, timeoutMs: TIMEOUT_MS });
}

export function showStatus(socket: string, output: OutputFormat, screen: Screen): Promise<Shown> {
  const text = (status: StatusDocument, look: Look): string =>
    statusText(status, { look, wide: output === 'wide' });
  return askAndShow({ socket, path: '/v1/status', kind: 'Status', output, text }, screen);
}

/** Until the process is interrupted: the status again after every change; an agent that goes away is awaited. */
export async function watchStatus(socket: string, output: OutputFormat, screen: Screen): Promise<never> {
  let revision: string | undefined;
  /** The revision that was shown last, with nothing said since. */
  let shown: string | undefined;
  let told: string | undefined;
  for (;;) {
    const waitMs = screen.rows() === undefined ? WAIT_MS : REDRAW_MS;
    const query = revision === undefined ? '' : `?after=${encodeURIComponent(revision)}&waitMs=${waitMs}`;
    const asked = { socket, path: `/v1/status${query}`, kind: 'Status', timeoutMs: waitMs + TIMEOUT_MS };
    const answer = await getFromAgent<StatusDocument>(asked);
    revision = answer.kind === 'ok' ? answer.body.revision : undefined;
    if (answer.kind === 'ok') {
      // Without a screen to redraw, an answer that says nothing new is not worth a line.
      const news = screen.rows() !== undefined || revision !== shown;
      shown = revision;
      told = undefined;
      if (news) redraw(statusIn(output, answer.body, screen), screen);
      continue;
    }
    // That an agent has no room for who waits says nothing of the status: it is asked for without waiting.
    if (shown === undefined || answer.kind !== 'refused' || answer.code !== 'too-many-watchers') {
      shown = undefined;
      // What is read by a program has documents in it, and nothing else.
      if (screen.rows() !== undefined) redraw(`${answer.message}\n`, screen);
      else if (answer.message !== told) complain(answer.message, screen);
      told = answer.message;
    }
    await screen.sleep(RETRY_MS);
  }
}

export function showExplanation(
  socket: string,
  subject: string,
  output: 'text' | 'json',
  screen: Screen,
): Promise<Shown> {
  const path = `/v1/explain?subject=${encodeURIComponent(subject)}`;
  return askAndShow({ socket, path, kind: 'Explanation', output, text: explanationText }, screen);
}

export function showVersion(output: 'text' | 'json', runtime: string, screen: Screen): void {
  if (output === 'json') screen.write(json({ apiVersion: 'mooring/v1', kind: 'Version', ...BUILD, runtime }));
  else screen.write(`mooring ${BUILD.version} (commit ${BUILD.commit}, Node.js ${runtime})\n`);
}

function statusIn(output: OutputFormat, status: StatusDocument, screen: Screen): string {
  return output === 'json'
    ? json(status)
    : statusText(status, { look: screen.look(), wide: output === 'wide' });
}

/** As it is shown for `-o json`: exact, and safe for a terminal. */
export function json(document: unknown): string {
  return `${printableJson(JSON.stringify(document, null, 2))}\n`;
}

const LINE_BYTES_MAX = 8_192;

/** A line for each, whatever is in it. */
export function complainOfAll(problems: readonly string[], screen: Screen): false {
  for (const problem of problems) complain(printable(problem, LINE_BYTES_MAX), screen);
  return false;
}

/** Says why there is no answer. */
export function complain(message: string, screen: Screen): false {
  screen.complain(`mooring: ${message}\n`);
  return false;
}

/** As of a variable of a script that is not set, with or without what stands before it. */
const NO_NAME = /^(?:pod:)?(?:[^/]*\/)?\s*$/;

/** False, and said, of a name that names nobody: nobody is no pod that has gone. */
export function isNamed(pod: string, screen: Screen): boolean {
  if (!NO_NAME.test(pod)) return true;
  return complain('the name is empty; expected that of a pod: its name, namespace/name or uid', screen);
}

const HOME = '\u001b[H';
const CLEAR_LINE_END = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

/** A terminal is redrawn without flicker: every line over the old one, the rest cleared; what is too long is cut. */
function redraw(text: string, screen: Screen): void {
  const rows = screen.rows();
  if (rows === undefined) {
    screen.write(text);
    return;
  }
  const lines = text.trimEnd().split('\n');
  const room = Math.max(1, rows - 1);
  const shown =
    lines.length <= room
      ? lines
      : [...lines.slice(0, room - 1), `(${lines.length - room + 1} more lines; a taller window shows them)`];
  screen.write(`${HOME}${shown.map((line) => `${line}${CLEAR_LINE_END}\n`).join('')}${CLEAR_BELOW}`);
}
