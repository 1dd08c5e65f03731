/** The unix socket of the API: where it may be, and that only root can open it. */
import { chmod, link, lstat, mkdir, unlink } from 'node:fs/promises';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import { done, fail, type FailureCode, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, nameIn, parentOf } from '../../mount/host.ts';
import { printable } from '../../mount/text/printable.ts';
import { SOCKET_PATH_BYTES_MAX } from '../config/setting.ts';

const PROBE_TIMEOUT_MS = 1_000;

/** Settles when the socket can be connected to, with what `identifySocket` says of it, or with the reason why not. */
export async function listenOnSocket(server: Server, socket: AbsolutePath): Promise<Result<string>> {
  const ready = await prepare(socket);
  if (!ready.ok) return ready;
  // Whose socket was deleted still listens on it.
  if (server.listening) server.close();
  return bind(server, socket);
}

/** Removes the socket where it is still the one that `ours` names: who has put his own there keeps it. */
export async function removeSocket(socket: AbsolutePath, ours: string): Promise<void> {
  if ((await identifySocket(socket)) !== ours) return;
  try {
    await unlink(socket);
  } catch {
    // Nobody answers on it any more: the next agent takes it over.
  }
}

/** Tells what is at the path from whatever is put in its place; undefined: nothing is there, or it cannot be seen. */
export async function identifySocket(socket: AbsolutePath): Promise<string | undefined> {
  try {
    const { dev, ino } = await lstat(socket);
    return identity(dev, ino);
  } catch (error) {
    if (codeOf(error) === '') throw error;
    return undefined;
  }
}

function identity(device: number, inode: number): string {
  return `${device} ${inode}`;
}

/** The path is free, or taken by a socket that nobody answers on, which is removed. */
async function prepare(socket: AbsolutePath): Promise<Result<void>> {
  if (Buffer.byteLength(socket) > SOCKET_PATH_BYTES_MAX) {
    // Node 20 would silently bind the path cut off.
    return refuse('too-large', `socket path "${socket}" is longer than ${SOCKET_PATH_BYTES_MAX} bytes`);
  }
  const directory = await prepareDirectory(parentOf(socket));
  if (!directory.ok) return directory;
  try {
    const facts = await lstat(socket);
    if (!facts.isSocket())
      return refuse('path-wrong-kind', `${socket} is there and is not a socket; it is left alone`);
    if (await isAnswered(socket)) return refuse('path-wrong-kind', `another process answers on ${socket}`);
    await unlink(socket);
    return done;
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? done : refuseError(`socket ${socket}`, error);
  }
}

const DIRECTORY_MODE = 0o755;
const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;

async function prepareDirectory(directory: AbsolutePath): Promise<Result<void>> {
  try {
    // The directory's own mode, whatever the umask; one that is there keeps its mode.
    if ((await mkdir(directory, { recursive: true })) !== undefined) await chmod(directory, DIRECTORY_MODE);
    const { mode } = await lstat(directory);
    if ((mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0) {
      return refuse(
        'path-unsafe',
        `${directory}: others may write there and could put their own socket in its place`,
      );
    }
    return done;
  } catch (error) {
    return refuseError(`directory ${directory}`, error);
  }
}

function isAnswered(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect({ path: socket, timeout: PROBE_TIMEOUT_MS });
    const settle = (answered: boolean) => (): void => {
      probe.destroy();
      resolve(answered);
    };
    probe.once('connect', settle(true));
    // A full backlog or a stopped server is somebody too; only a refusal says that nobody is there.
    probe.once('timeout', settle(true));
    probe.once('error', (error) => settle(codeOf(error) !== 'ECONNREFUSED' && codeOf(error) !== 'ENOENT')());
  });
}

const SOCKET_MODE = 0o600;

/**
 * Binds beside the path and links it there. Because: libuv unlinks at its end what is at the path that it bound,
 * whoever has put it there since; and a link replaces nobody's. Assumes a umask of 077 (main sets it).
 */
async function bind(server: Server, socket: AbsolutePath): Promise<Result<string>> {
  const bound = besideOf(socket);
  try {
    await unlink(bound);
  } catch {
    // Only an agent that was killed at this very moment has left one.
  }
  const error = await new Promise<Error | undefined>((resolve) => {
    server.once('error', resolve);
    server.listen({ path: bound }, () => {
      server.off('error', resolve);
      resolve(undefined);
    });
  });
  if (error !== undefined) return refuseError(`socket ${socket}`, error);
  try {
    await chmod(bound, SOCKET_MODE);
    const { dev, ino } = await lstat(bound);
    await link(bound, socket);
    await unlink(bound);
    return ok(identity(dev, ino));
  } catch (failure) {
    server.close();
    return refuseError(`socket ${socket}`, failure);
  }
}

/** Our own name in the same directory, no longer than the socket's: the kernel takes no longer one. */
function besideOf(socket: AbsolutePath): string {
  const name = `~${process.pid}`.slice(0, Buffer.byteLength(nameIn(socket)));
  return `${parentOf(socket)}/${name}`;
}

function refuse(code: FailureCode, message: string): Result<never> {
  return fail({ code, message, effect: 'none' });
}

const ERROR_CODES: Readonly<Record<string, FailureCode>> = {
  EACCES: 'permission-denied',
  EPERM: 'permission-denied',
  EROFS: 'permission-denied',
  ENOSPC: 'disk-full',
  ENOENT: 'path-missing',
  ENOTDIR: 'path-wrong-kind',
  EADDRINUSE: 'path-wrong-kind',
  EEXIST: 'path-wrong-kind',
  ELOOP: 'path-unsafe',
};

function refuseError(what: string, error: unknown): Result<never> {
  const code = codeOf(error);
  return refuse(
    ERROR_CODES[code] ?? 'input-output',
    `${what}: ${printable(code === '' ? String(error) : code, 256)}`,
  );
}

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}
