/** The few Host methods the reconciler itself uses: a hand-driven clock, record files, a settable mount table. */
import { done, fail, type Failure, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, DeviceNumber, FileSystemProbe, Host } from '../../mount/host.ts';
import { createMountTable, type MountEntry } from '../../mount/mount-table.ts';

export interface BenchHost extends Host {
  readonly files: Map<string, string>;
  readonly entries: MountEntry[];
  /** Texts of links and numbers of device nodes, by path. */
  readonly links: Map<AbsolutePath, string>;
  readonly nodes: Map<AbsolutePath, DeviceNumber>;
  readonly held: Set<AbsolutePath>;
  /** Answers of `probeFileSystem`; what is not here is alive. */
  readonly probes: Map<AbsolutePath, Promise<Result<FileSystemProbe>>>;
  failWrites: Failure | undefined;
  failOverwrites: Failure | undefined;
  failRemovals: Failure | undefined;
  /** Timers fire this much before their time, as those of Node.js do. */
  earlyMs: number;
  /** By how much the wall clock was set forward since. */
  wallStepMs: number;
  /** Moves the clock and fires what is due, letting promises settle between timers. */
  advance(ms: number): Promise<void>;
}

/** `beganMs`: for how long its machine has been up. */
export function createBenchHost(beganMs = 0): BenchHost {
  let nowMs = beganMs;
  let timers: { atMs: number; fire: () => void }[] = [];
  const files = new Map<string, string>();
  const entries: MountEntry[] = [];
  const links = new Map<AbsolutePath, string>();
  const nodes = new Map<AbsolutePath, DeviceNumber>();
  const held = new Set<AbsolutePath>();
  const host = {
    bootId: 'boot-1',
    files,
    entries,
    links,
    nodes,
    held,
    probes: new Map<AbsolutePath, Promise<Result<FileSystemProbe>>>(),
    failWrites: undefined as Failure | undefined,
    failOverwrites: undefined as Failure | undefined,
    failRemovals: undefined as Failure | undefined,
    earlyMs: 0,
    wallStepMs: 0,
    nowMs: () => nowMs,
    wallMs: () => nowMs + host.wallStepMs,
    random: () => 0.5,
    timer(delayMs: number, fire: () => void) {
      const timer = { atMs: nowMs + delayMs, fire };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    async advance(ms: number) {
      const untilMs = nowMs + ms;
      await settled();
      for (;;) {
        const due = timers
          .filter(({ atMs }) => atMs - host.earlyMs <= untilMs)
          .sort((a, b) => a.atMs - b.atMs)[0];
        if (due === undefined) break;
        timers = timers.filter((other) => other !== due);
        nowMs = Math.max(nowMs, due.atMs - host.earlyMs);
        due.fire();
        await settled();
      }
      nowMs = untilMs;
    },
    makeDirectory: async () => done,
    async writeFile(path: AbsolutePath, content: Uint8Array) {
      if (host.failWrites !== undefined) return fail(host.failWrites);
      files.set(path, Buffer.from(content).toString('utf8'));
      return done;
    },
    async readFile(path: AbsolutePath) {
      const text = files.get(path);
      return text === undefined
        ? fail({ code: 'path-missing', message: path, effect: 'none' })
        : ok(Buffer.from(text));
    },
    /** Takes no room: `failWrites` with `disk-full` is not about it. */
    async overwriteFile(path: AbsolutePath, offsetBytes: number, content: Uint8Array) {
      const failure = host.failOverwrites ?? host.failWrites;
      if (failure !== undefined && failure.code !== 'disk-full') return fail(failure);
      const bytes = Buffer.from(files.get(path) ?? '');
      if (offsetBytes + content.length > bytes.length)
        return fail({ code: 'too-large', message: path, effect: 'none' });
      bytes.set(content, offsetBytes);
      files.set(path, bytes.toString('utf8'));
      return done;
    },
    async synchronise(path: AbsolutePath) {
      const isThere = [...files.keys()].some((one) => one === path || one.startsWith(`${path}/`));
      return isThere ? done : fail({ code: 'path-missing', message: path, effect: 'none' });
    },
    async listDirectory(directory: AbsolutePath) {
      const names = [...files.keys()].filter((path) => path.startsWith(`${directory}/`));
      return ok(names.map((path) => path.slice(directory.length + 1)));
    },
    async removeFile(path: AbsolutePath) {
      if (host.failRemovals !== undefined) return fail(host.failRemovals);
      files.delete(path);
      return done;
    },
    async readDirectoryFiles(directory: AbsolutePath) {
      const names = [...files.keys()].filter((path) => path.startsWith(`${directory}/`));
      const facts = {
        kind: 'file',
        mode: 0o600,
        uid: 0,
        gid: 0,
        inode: 1,
        sizeBytes: 1,
        modifiedMs: 0,
      } as const;
      return ok(
        names.map((path) => {
          return {
            name: path.slice(directory.length + 1),
            facts,
            content: ok(Buffer.from(files.get(path) ?? '')),
            stamp: undefined,
          };
        }),
      );
    },
    probeFileSystem: async (path: AbsolutePath) =>
      host.probes.get(path) ?? ok<FileSystemProbe>({ kind: 'alive', readOnly: false, device: '7:0' }),
    readMountTable: async () => ok(createMountTable(entries)),
    mountPlaceOf: async () => ok({ mountId: undefined, within: 1 }),
    async readLink(path: AbsolutePath) {
      const text = links.get(path);
      return text === undefined ? fail({ code: 'path-missing', message: path, effect: 'none' }) : ok(text);
    },
    deviceOf: async (path: AbsolutePath) => ok(nodes.get(path)),
    async identifyDisk(path: AbsolutePath) {
      const device = nodes.get(path);
      return ok(device === undefined ? undefined : { device });
    },
    holdDevice: async () => done,
    releaseDevice: async () => done,
    heldPaths: async () => ok([...held]),
    findHolders: async () => ok([]),
    findPlaceHolders: async (places: readonly AbsolutePath[]) => ok(places.map(() => [])),
    findDeviceUsers: async () => ok([]),
    changeOwnership: async () => ok({ seen: 1, changed: 0, refused: 0 }),
  };
  return host as unknown as BenchHost;
}

/** Lets every promise that can settle do so. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
