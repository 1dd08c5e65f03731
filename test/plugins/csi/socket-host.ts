/** A host with real sockets and files below a scratch directory; mounts are a table that drivers in tests write. */
import { type FSWatcher, lstatSync, mkdtempSync, rmSync, watch } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm, rmdir, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { done, fail, type FailureCode, ok, type Result } from '../../../mount/failure.ts';
import {
  type AbsolutePath,
  below,
  type Host,
  type MountIdentity,
  type FileSystemProbe,
  type MountLookup,
  type PathFacts,
  type PathKind,
  wayTo,
} from '../../../mount/host.ts';
import { createMountTable, type MountTable } from '../../../mount/mount-table.ts';
import type { RemoteCall } from '../../../mount/remote-call.ts';
import { createGrpcRemote } from '../../../plugins/csi/wire/grpc.ts';
import { methodName } from '../../../plugins/csi/wire/status.ts';
import { performStepwise } from '../../perform-stepwise.ts';

/** The mount that everything lies in. */
export const HOST_DISK: MountIdentity = { mountId: 0, device: '8:1' };

export interface SocketHost extends Host {
  readonly root: AbsolutePath;
  readonly mounts: Map<string, MountIdentity>;
  /** Paths that pretend to belong to somebody else. */
  readonly foreign: Set<string>;
  /** Paths of which so many looks, from now on, end with an error of the disk. */
  readonly unreadable: Map<string, number>;
  /** Names of the methods called, in order. */
  readonly called: string[];
  readonly requests: { readonly method: string; readonly bytes: Buffer }[];
  /** `<gid> <path>` of every walk that gave a volume to a group. */
  readonly walks: string[];
  /** As a driver would: a new mount at the path. */
  plantMount(path: string): void;
  /** How often a path or a directory was looked at: each is one question to a broker. */
  looks(): number;
  /** Watches that are open now. */
  watches(): number;
  /** Timers that are set now. */
  timers(): number;
  /** The delays of the timers that went off. */
  readonly waitedMs: number[];
  close(): void;
}

let devices = 0;

export function createSocketHost(): SocketHost {
  const root = mkdtempSync(join(tmpdir(), 'mooring-csi-')) as AbsolutePath;
  const remote = createGrpcRemote();
  const mounts = new Map<string, MountIdentity>();
  const foreign = new Set<string>();
  const unreadable = new Map<string, number>();
  const called: string[] = [];
  const requests: { method: string; bytes: Buffer }[] = [];
  const walks: string[] = [];
  const watchers = new Set<FSWatcher>();
  const timers = new Set<NodeJS.Timeout>();
  const waitedMs: number[] = [];
  let looks = 0;
  const failing = (path: string): boolean => {
    const left = unreadable.get(path) ?? 0;
    unreadable.set(path, left - 1);
    return left > 0;
  };
  const never = () => Promise.reject(new Error('not part of this host'));

  return {
    root,
    mounts,
    foreign,
    unreadable,
    called,
    requests,
    walks,
    plantMount(path) {
      devices += 1;
      mounts.set(path, { mountId: devices, device: `7:${devices}` });
    },
    looks: () => looks,
    watches: () => watchers.size,
    timers: () => timers.size,
    waitedMs,
    close() {
      remote.close();
      for (const watcher of watchers) watcher.close();
      for (const timer of timers) clearTimeout(timer);
      rmSync(root, { recursive: true, force: true });
    },
    nowMs: () => performance.now(),
    wallMs: () => Date.now(),
    random: () => 0.5,
    bootId: 'boot',
    timer(delayMs, fire) {
      const timer = setTimeout(() => {
        timers.delete(timer);
        waitedMs.push(delayMs);
        fire();
      }, delayMs);
      timers.add(timer);
      return () => {
        timers.delete(timer);
        clearTimeout(timer);
      };
    },
    async inspect(path) {
      looks += 1;
      if (failing(path)) return fail({ code: 'input-output', message: path, effect: 'none' });
      return ok(facts(path, foreign));
    },
    async inspectWay(path) {
      looks += 1;
      if (failing(path)) return fail({ code: 'input-output', message: path, effect: 'none' });
      return ok(wayTo(path).map((one) => facts(one, foreign)));
    },
    readIscsiSessions: never,
    logInToIscsi: never,
    scanIscsi: never,
    logOutOfIscsi: never,
    removeMultipath: never,
    perform(transition, args) {
      return performStepwise(this, transition, args);
    },
    makeDirectory: (path, mode) => attempt(() => mkdir(path, { recursive: true, mode })),
    removeEmptyDirectory: (path) =>
      mounts.has(path)
        ? Promise.resolve(fail({ code: 'mount-busy', message: path, effect: 'none' }))
        : attempt(() => rmdir(path)),
    removeFile: (path) => attempt(() => unlink(path)),
    overwriteFile: (path, offsetBytes, content) =>
      attempt(async () => {
        const file = await open(path, 'r+');
        await file.write(content, 0, content.length, offsetBytes);
        await file.close();
      }),
    synchronise: async () => done,
    writeFile: (path, content, { mode }) => attempt(() => writeFile(path, content, { mode })),
    readFile: (path) => attempt(() => readFile(path)),
    async listDirectory(path, entriesMax) {
      looks += 1;
      const names = await attempt(() => readdir(path));
      if (names.ok && names.value.length > entriesMax)
        return fail({ code: 'too-large', message: path, effect: 'none' });
      return names;
    },
    async identifyDirectory(path) {
      const { dev, ino, birthtimeNs } = lstatSync(path, { bigint: true });
      return ok({
        mountId: HOST_DISK.mountId,
        device: `8:${dev}`,
        inode: String(ino),
        bornNs: String(birthtimeNs),
      });
    },
    mountIdOf: async (path) => ok(mounts.get(path)?.mountId),
    mountPlaceOf: async (path) => ok({ mountId: mounts.get(path)?.mountId, within: HOST_DISK.mountId }),
    async lookUpMount(path): Promise<Result<MountLookup>> {
      const mount = mounts.get(path);
      return ok(mount === undefined ? { mounted: false } : { mounted: true, ...mount });
    },
    async probeFileSystem(path): Promise<Result<FileSystemProbe>> {
      const mount = mounts.get(path);
      if (mount === undefined) return ok({ kind: 'unmounted' });
      return ok({ kind: 'alive', readOnly: false, device: mount.device });
    },
    findHolders: async (target) => ok(mounts.has(target) ? ['pid 7 (test)'] : []),
    findPlaceHolders: async (places) => ok(places.map(() => [])),
    call<Request, Reply>(call: RemoteCall<Request, Reply>) {
      const method = methodName(call.method.path);
      called.push(method);
      requests.push({ method, bytes: call.method.requestSerialize(call.request) });
      return remote.call(call);
    },
    watch(directory, hint) {
      // Always a directory that exists, in these tests.
      const watcher = watch(directory, hint);
      watchers.add(watcher);
      return () => {
        watchers.delete(watcher);
        watcher.close();
      };
    },
    async readDirectoryFiles(path) {
      looks += 1;
      const names = await attempt(() => readdir(path));
      if (!names.ok) return names;
      return ok(
        names.value.map((name) => {
          return { name, facts: facts(`${path}/${name}`, foreign), content: undefined, stamp: undefined };
        }),
      );
    },
    removeTree: (path) => attempt(() => rm(path, { recursive: true, force: true })),
    measureUsage: never,
    rename: (from, to) => attempt(() => rename(from, to)),
    makeLink: never,
    readLink: never,
    readMountTable: async () => ok(tableOf(mounts)),
    mount: never,
    bindPart: never,
    unmount: never,
    deviceOf: async () => ok(undefined),
    identifyDisk: async () => ok(undefined),
    holdDevice: async () => done,
    releaseDevice: async () => done,
    heldPaths: async () => ok([]),
    findDeviceUsers: async () => ok([]),
    readDeviceContent: never,
    proveBlank: never,
    makeFileSystem: never,
    checkFileSystem: never,
    growFileSystem: never,
    changeOwnership: async ({ path, gid, mountId }) => {
      if (mountId !== mounts.get(path)?.mountId)
        return fail({ code: 'mount-lost', message: path, effect: 'none' });
      walks.push(`${gid} ${path}`);
      return ok({ seen: 1, changed: 0, refused: 0 });
    },
    notify: async () => done,
  };
}

function facts(path: string, foreign: ReadonlySet<string>): PathFacts {
  const seen = lstatSync(path, { throwIfNoEntry: false });
  if (seen === undefined)
    return { kind: 'absent', mode: 0, uid: 0, gid: 0, inode: 0, sizeBytes: 0, modifiedMs: 0 };
  const kinds: readonly (readonly [PathKind, boolean])[] = [
    ['directory', seen.isDirectory()],
    ['file', seen.isFile()],
    ['socket', seen.isSocket()],
    ['symlink', seen.isSymbolicLink()],
    ['fifo', seen.isFIFO()],
  ];
  const kind = kinds.find(([, is]) => is)?.[0] ?? 'character';
  // Whoever runs the tests is root here.
  const uid = foreign.has(path) ? 1000 : 0;
  return {
    kind,
    mode: seen.mode & 0o7777,
    uid,
    gid: 0,
    inode: seen.ino,
    sizeBytes: seen.size,
    modifiedMs: seen.mtimeMs,
  };
}

const CODES: Readonly<Record<string, FailureCode>> = {
  ENOENT: 'path-missing',
  ENOTEMPTY: 'directory-not-empty',
  ENOTDIR: 'path-wrong-kind',
  EEXIST: 'path-wrong-kind',
};

async function attempt<T>(act: () => Promise<T>): Promise<Result<Exclude<T, string | undefined>>> {
  try {
    return ok((await act()) as Exclude<T, string | undefined>);
  } catch (error) {
    const { code = '', syscall = '' } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && (syscall === 'rmdir' || syscall === 'unlink')) return ok(undefined as never);
    return fail({ code: CODES[code] ?? 'input-output', message: String(error), effect: 'none' });
  }
}

/** Settles when `condition` holds; fails with `what` after thirty seconds. */
export function inRoot(host: SocketHost, ...names: readonly string[]): AbsolutePath {
  return below(host.root, ...names);
}

function tableOf(mounts: ReadonlyMap<string, MountIdentity>): MountTable {
  return createMountTable(
    [...mounts].map(([target, { mountId, device }]) => ({
      ...{ mountId, parentId: HOST_DISK.mountId, device, root: '/', target: target as AbsolutePath },
      ...{ options: ['rw'], propagation: [], fsType: 'ext4', source: 'disk', superOptions: ['rw'] },
    })),
  );
}
