/** Is there a kubelet with which this agent would share its root, or its Node? Two writers undo each other. */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { hostname } from 'node:os';
import { fail, type Failure } from '../../mount/failure.ts';
import { type AbsolutePath, below } from '../../mount/host.ts';
import type { Config } from '../config/config.ts';
import { kubeletInTheWay, type KubeletProcess } from './kubelet-process.ts';

/** Where a kubelet of any name listens (k3s and others have it in a program of their own). */
const SOCKETS = [
  ['pod-resources', 'kubelet.sock'],
  ['device-plugins', 'kubelet.sock'],
] as const;
const CONNECT_MS = 1_000;
/** The first 15 bytes of a program's name. */
const COMM = 'kubelet';
const COMMAND_LINE_BYTES_MAX = 65_536;

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
  const processes = await kubeletProcesses();
  const found = kubeletInTheWay(processes, { root, nodeName, hostname: hostname() });
  if (found !== undefined) return found;
  for (const socket of SOCKETS.map((names) => below(root, ...names))) {
    if (!(await answers(socket))) continue;
    const message = `somebody serves a socket of a kubelet below the root ${root}`;
    return fail({ code: 'kubelet-running', message, effect: 'none', blocker: socket }).failure;
  }
  return undefined;
}

async function kubeletProcesses(): Promise<readonly KubeletProcess[]> {
  const names = await readdir('/proc').catch(() => []);
  const found = await Promise.all(names.filter((name) => /^\d+$/.test(name)).map(kubeletProcess));
  return found.filter((one) => one !== undefined);
}

/** Undefined: it is another program, or has ended. The command line of a process that is stuck may not be readable. */
async function kubeletProcess(pid: string): Promise<KubeletProcess | undefined> {
  try {
    const comm = await readFile(`/proc/${pid}/comm`, 'utf8');
    if (comm.trim() !== COMM) return undefined;
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8');
    const [, ...options] = line.slice(0, COMMAND_LINE_BYTES_MAX).split('\0');
    const [mounts, names] = await Promise.all(['mnt', 'uts'].map((kind) => isShared(pid, kind)));
    return { pid, options, sharesMounts: mounts === true, sharesHostname: names === true };
  } catch {
    return undefined;
  }
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
