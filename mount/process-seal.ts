/** What a process does first, so that nobody comes in and what it knows does not get out. */
import { url as debuggerUrl } from 'node:inspector';

/** Call it before anything else. With the flags of node-start.ts there was no moment before. */
export function sealProcess(): void {
  // Node.js opens its debugger on this signal, as long as nobody else listens for it.
  process.on('SIGUSR1', () => {});
}

/** Why a process that is to hold secrets, or works as root, must not go on; undefined when nobody can come in. */
export function openDebugger(): string | undefined {
  const url = debuggerUrl();
  if (url === undefined) return undefined;
  return (
    `a debugger is open at ${url.replace(/\/[^/]*$/, '')}, and who connects to it is root: ` +
    'start it without --inspect, and without NODE_OPTIONS'
  );
}
