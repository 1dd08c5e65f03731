/** Tells systemd how we are: READY, STATUS, STOPPING and the watchdog's ping (sd_notify(3)). */
import { assert, type Result } from '../failure.ts';
import type { Cancel, Host } from '../host.ts';
import type { Log } from './log.ts';
import { printable } from '../text/printable.ts';

/** The host as those see it who tell systemd how it is. */
export interface AnsweringHost extends Pick<Host, 'notify' | 'timer'> {
  /** Does a broker answer a question about `/`? No other call holds it up. */
  answers(): Promise<Result<void>>;
}

export interface NotifierParts {
  readonly host: AnsweringHost;
  readonly log: Log;
  /** WATCHDOG_USEC in milliseconds; undefined when nobody watches; `off`: whoever does is told not to. */
  readonly watchdogMs: number | 'off' | undefined;
  /** Has the reconciler turned since it was asked last? Asked once per ping. */
  readonly turned: () => boolean;
}

export interface Notifier {
  /** Up: from now on the watchdog is fed. Settles after the first try; a ready that got lost is told until it was. */
  ready(status: string): Promise<void>;
  /** One line for `systemctl status`; the same line twice is told once, and of many in a row the last. */
  status(text: string): void;
  stopping(): Promise<void>;
}

/** Pings in one watchdog period: one may be lost or late without harm. */
const PINGS_PER_PERIOD = 3;
const RETRY_MS = 2_000;
const STATUS_BYTES_MAX = 256;

/**
 * Guarantees: a ping goes out only when the event loop ran, the reconciler turned and a broker answered a question
 * about `/`; so a wedged agent is restarted. Restarting is safe: state is rebuilt, nothing is unmounted. What hangs of
 * volumes keeps no ping: the next agent would meet it again.
 */
export function createNotifier(parts: NotifierParts): Notifier {
  const { host, log, watchdogMs } = parts;
  let line: string | undefined;
  /** Undefined until a ready has arrived. */
  let told: string | undefined;
  let isTelling = false;
  let heardBefore = true;
  let wellBefore = true;
  let cancelPing: Cancel = () => {};
  let cancelRetry: Cancel = () => {};
  let stopped = false;

  async function send(state: string): Promise<boolean> {
    const sent = await host.notify(state);
    if (!sent.ok && heardBefore)
      log.warn('service manager not told', { code: sent.failure.code, message: sent.failure.message });
    if (sent.ok && !heardBefore) log.info('service manager told');
    heardBefore = sent.ok;
    return sent.ok;
  }

  /** One at a time: of two that overtake each other the older one would stand. */
  async function tell(): Promise<void> {
    if (isTelling) return;
    isTelling = true;
    while (line !== told && !stopped) {
      const next = line;
      if (await send(`${told === undefined ? firstWord(watchdogMs) : ''}STATUS=${next}`)) {
        told = next;
      } else if (!stopped) {
        cancelRetry = host.timer(RETRY_MS, () => {
          isTelling = false;
          void tell();
        });
        return;
      }
    }
    isTelling = false;
  }

  function schedule(periodMs: number): void {
    cancelPing = host.timer(Math.floor(periodMs / PINGS_PER_PERIOD), () => {
      void ping().then(() => {
        if (!stopped) schedule(periodMs);
      });
    });
  }

  async function ping(): Promise<void> {
    const turned = parts.turned();
    const answered = await host.answers();
    const well = turned && answered.ok;
    if (!well && wellBefore) log.error('watchdog not fed', { turned, brokerAnswered: answered.ok });
    wellBefore = well;
    if (well && !stopped) await send('WATCHDOG=1');
  }

  return {
    async ready(status) {
      line = oneLine(status);
      await tell();
      if (typeof watchdogMs === 'number' && !stopped) schedule(watchdogMs);
    },
    status(text) {
      assert(line !== undefined, 'ready is told first');
      line = oneLine(text);
      void tell();
    },
    async stopping() {
      stopped = true;
      cancelPing();
      cancelRetry();
      await send('STOPPING=1\nSTATUS=stopping; volumes stay mounted');
    },
  };
}

/** Systemd that is not told would wait for a ping that never comes, and end who works. */
function firstWord(watchdogMs: NotifierParts['watchdogMs']): string {
  return watchdogMs === 'off' ? 'READY=1\nWATCHDOG_USEC=0\n' : 'READY=1\n';
}

/** A line end in a status would begin another assignment. */
function oneLine(text: string): string {
  return printable(text, STATUS_BYTES_MAX);
}
