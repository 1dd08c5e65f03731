/** What the kernel says of the doors of processes: where they listen, and which signals they have taken in hand. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { constants } from 'node:os';
import { readOrNothing } from '../demo/machine.ts';
import { signalProcess } from '../signal.ts';

const LISTENING = '0A';

/** The addresses, as /proc/net/tcp has them, at which anyone on this machine can reach the process. */
export function listeningAt(pid: number): readonly string[] {
  const sockets = new Map<string, string>();
  for (const table of ['tcp', 'tcp6']) {
    for (const line of (readOrNothing(`/proc/${pid}/net/${table}`) ?? '').split('\n').slice(1)) {
      const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
      if (state === LISTENING && inode !== undefined) sockets.set(`socket:[${inode}]`, local);
    }
  }
  return descriptorsOf(pid).flatMap((link) => sockets.get(link) ?? []);
}

function descriptorsOf(pid: number): readonly string[] {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).flatMap((name) => {
      try {
        return [readlinkSync(`${folder}/${name}`)];
      } catch {
        return [];
      }
    });
  } catch {
    return [];
  }
}

/**
 * Settles when a node that nobody protects has opened its debugger: one that was sent the signal before it has had the
 * time to do the same. So the absence of an open port says something, and the look for it is known to see one.
 */
export async function untilUnprotectedNodeListens(): Promise<void> {
  // Its own port is the kernel's choice.
  const argv = ['--inspect-port=0', '-e', 'process.stdout.write("up"); setInterval(() => {}, 1000)'];
  const node = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'pipe'] });
  try {
    await once(node.stdout, 'data');
    node.kill('SIGUSR1');
    await once(node.stderr, 'data');
    assert.equal(listeningAt(node.pid ?? -1).length, 1, 'the look for open ports sees one');
  } finally {
    node.kill('SIGKILL');
    await once(node, 'exit');
  }
}

/** Blocked, caught or ignored by it: the signal does not end it by itself. */
export function isTakenInHand(pid: number, signal: number): boolean {
  const status = readOrNothing(`/proc/${pid}/status`) ?? '';
  const bit = 1n << BigInt(signal - 1);
  return ['SigBlk', 'SigIgn', 'SigCgt'].some((mask) => {
    const bits = new RegExp(`^${mask}:\\s+(\\w+)$`, 'm').exec(status)?.[1];
    return bits !== undefined && (BigInt(`0x${bits}`) & bit) !== 0n;
  });
}

/**
 * Sends the signal again and again from the moment at which it no longer ends the process, because Node.js holds it
 * or has taken it in hand, `times` over. Synchronous: nothing of this process comes between. False when it ended.
 */
export function signalFromTheStart(pid: number, name: 'SIGUSR1', times: number): boolean {
  while (!isTakenInHand(pid, constants.signals[name])) if (isGone(pid)) return false;
  for (let sent = 0; sent < times; sent += 1) {
    signalProcess(pid, name);
    readOrNothing(`/proc/${pid}/status`);
  }
  return true;
}

function isGone(pid: number): boolean {
  return /^State:\s+Z/m.test(readOrNothing(`/proc/${pid}/status`) ?? 'State: Z');
}
