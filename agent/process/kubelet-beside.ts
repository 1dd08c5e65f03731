/** Is there a kubelet with which this agent would share its root, or its Node? Two writers undo each other. */
import { readdir, readFile, readlink, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { fail, type Failure } from '../../mount/failure.ts';
import { type AbsolutePath, below } from '../../mount/host.ts';
import type { Config } from '../config/config.ts';
import { isTrusted, kubeletInTheWay, type KubeletProcess, kubeletRoot } from './kubelet-process.ts';

/** Below its root. In each of them a kubelet of any name listens (k3s and others have it in a program of their own). */
export const SOCKET_DIRECTORIES = ['pod-resources', 'device-plugins'] as const;
export const SOCKET = 'kubelet.sock';
const CONNECT_MS = 1_000;
/** The first 15 bytes of a program's name. */
const COMM = 'kubelet';
const COMMAND_LINE_BYTES_MAX = 65_536;
const DIRECTORY_MS = 1_000;

export interface BesideWhom {
  readonly root: AbsolutePath;
  /** As a node of a cluster; undefined: it is none, and any kubelet with another root is none of ours. */
  readonly nodeName: string | undefined;
}

/** As a node of a cluster, the list of volumes in use is shared with whoever works for the same Node. */
export function besideWhom({
  root,
  nodeName,
  kubeconfig,
}: Pick<Config, 'root' | 'nodeName' | 'kubeconfig'>): BesideWhom {
  return { root, nodeName: kubeconfig === undefined ? undefined : nodeName };
}

/** `kubelet-running`, with the process or the socket as blocker; undefined: nobody is in the way. */
export async function lookForKubelet({ root, nodeName }: BesideWhom): Promise<Failure | undefined> {
  const processes = await kubeletProcesses(root);
  const found = kubeletInTheWay(processes, { root, nodeName, hostname: hostname() });
  if (found !== undefined) return found;
  for (const socket of SOCKET_DIRECTORIES.map((name) => below(root, name, SOCKET))) {
    if (!(await answers(socket))) continue;
    const message = `somebody serves a socket of a kubelet below the root ${root}`;
    return fail({ code: 'kubelet-running', message, effect: 'none', blocker: socket }).failure;
  }
  return undefined;
}

async function kubeletProcesses(root: AbsolutePath): Promise<readonly KubeletProcess[]> {
  const names = await readdir('/proc').catch(() => []);
  const found = await Promise.all(names.filter((name) => /^\d+$/.test(name)).map(kubeletProcess));
  const kubelets: KubeletProcess[] = [];
  for (const one of found) {
    if (one === undefined) continue;
    const theirs = one.sharesMounts ? kubeletRoot(one.options) : undefined;
    kubelets.push({ ...one, sharesRoot: theirs !== undefined && (await isOneTree(theirs, root)) });
  }
  return kubelets;
}

/** Undefined: it is another program, or has ended. The command line of a process that is stuck may not be readable. */
async function kubeletProcess(pid: string): Promise<Omit<KubeletProcess, 'sharesRoot'> | undefined> {
  try {
    const comm = await readFile(`/proc/${pid}/comm`, 'utf8');
    if (comm.trim() !== COMM) return undefined;
    if (!isTrusted(await readFile(`/proc/${pid}/status`, 'utf8'), process.getuid?.() ?? 0)) return undefined;
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8');
    const [, ...options] = line.slice(0, COMMAND_LINE_BYTES_MAX).split('\0');
    const [mounts, names] = await Promise.all(['mnt', 'uts'].map((kind) => isShared(pid, kind)));
    return { pid, options, sharesMounts: mounts === true, sharesHostname: names === true };
  } catch {
    return undefined;
  }
}

let isAsking = false;

/**
 * One directory is the other, or in it, by whatever links and binds. False where a file system does not answer; while
 * it does not, no other is asked: each question holds a thread of this process.
 */
async function isOneTree(one: AbsolutePath, other: AbsolutePath): Promise<boolean> {
  if (isAsking) return false;
  isAsking = true;
  const answer = Promise.all([wayUp(one), wayUp(other)])
    .then(([way, otherWay]) => isOneIn(way, otherWay))
    .catch(() => false)
    .finally(() => {
      isAsking = false;
    });
  return Promise.race([answer, pause(DIRECTORY_MS, false, { ref: false })]);
}

function isOneIn(one: Way, other: Way): boolean {
  return one.includes(other[0]) || other.includes(one[0]);
}

type Way = readonly [string, ...string[]];

/** Device and inode of the directory, and of all that it is in. */
async function wayUp(path: AbsolutePath): Promise<Way> {
  const way: [string, ...string[]] = [await identity(path)];
  for (let at = `${path}/..`; ; at = `${at}/..`) {
    const above = await identity(at);
    // What is above the top is the top.
    if (above === way.at(-1)) return way;
    way.push(above);
  }
}

async function identity(path: string): Promise<string> {
  const { dev, ino } = await stat(path, { bigint: true });
  return `${dev}:${ino}`;
}

async function isShared(pid: string, namespace: string): Promise<boolean> {
  const [own, theirs] = await Promise.all(
    ['self', pid].map((one) => readlink(`/proc/${one}/ns/${namespace}`).catch(() => undefined)),
  );
  return own !== undefined && own === theirs;
}

/** A socket that nobody serves any more refuses at once; one whose backlog is full is served. */
function answers(path: AbsolutePath): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const end = (isThere: boolean): void => {
      socket.destroy();
      resolve(isThere);
    };
    socket.setTimeout(CONNECT_MS, () => end(true));
    socket.once('connect', () => end(true));
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code === 'EAGAIN'));
  });
}
