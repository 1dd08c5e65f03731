/**
 * A node to which everything happens: the shipped agent in a process of its own, a driver with moods, disks that die,
 * and somebody who mounts over everything. What is true is known here and nowhere in the agent.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import { readStatus, untilHealthy } from '../demo/agent-status.ts';
import { type ChildProcess, startProcess } from '../demo/child-process.ts';
import { bundle } from '../real/bundle.ts';
import type { Random } from '../sim/random.ts';
import { must, run } from './command.ts';
import { Disk, type DiskKind } from './disk.ts';
import { HostileDriver } from './hostile-driver.ts';
import { isMountPoint, kernelMounts, mountShownAt } from './kernel.ts';
import { type HostilePod, podObject, volumeObjects } from './pods.ts';

/** A mount that somebody made over something of ours. */
export interface Foreign {
  readonly path: string;
  readonly mountId: number;
  readonly sinceMs: number;
  /** It lies over the manifests: what is wished cannot be known while it is there. */
  readonly hidesManifests: boolean;
}

/** A pod that somebody wants, whatever the manifests say at this moment. */
export interface WantedPod extends HostilePod {
  readonly sinceMs: number;
  /** Ready at least once: it runs, and what it wrote must stay. */
  ran: boolean;
}

export interface WorldParts {
  readonly scratch: string;
  readonly random: Random;
  readonly tell: (line: string) => void;
  readonly interrupted: AbortSignal;
}

const DISKS: readonly DiskKind[] = ['ext4', 'ext4', 'xfs', 'fuse', 'fuse'];
/** A start that fails is one of a busy machine; so many are the agent's own doing. */
const STARTS_MAX = 4;
/** What the agent is given: everything that is slow by default is quick here, and nothing else is changed. */
const SETTINGS = {
  csi_deadline_ms: 3_000,
  path_deadline_ms: 3_000,
  resync_ms: 2_000,
  statistics_interval_ms: 3_000,
  vanished_hold_ms: 20_000,
  late_effect_ms: 40_000,
  back_off: { first_ms: 50, max_ms: 1_000 },
  allow_private_mount_namespace: true,
  node_name: 'hostile',
};

export class HostileWorld {
  readonly random: Random;
  readonly tell: (line: string) => void;
  readonly scratch: string;
  readonly root: string;
  readonly manifests: string;
  readonly disks: readonly Disk[];
  readonly driver: HostileDriver;
  readonly wanted = new Map<string, WantedPod>();
  readonly foreign: Foreign[] = [];
  /** When a source was mounted, by its name: what is mounted at one place of a volume is seen at its peers, too. */
  readonly foreignSinceMs = new Map<string, number>();
  /** What was written and synced through a pod, by volume. */
  readonly written = new Map<string, Set<string>>();
  /** The manifests are elsewhere, and nobody removed a pod. */
  areManifestsAway = false;
  startedMs = 0;
  /** When the last foreign mount went. */
  uncoveredMs = 0;
  #agent: ChildProcess | undefined;
  #program = '';
  #pods = 0;
  readonly #socket: string;
  readonly #interrupted: AbortSignal;

  constructor({ scratch, random, tell, interrupted }: WorldParts) {
    this.random = random;
    this.tell = tell;
    this.scratch = scratch;
    this.root = join(scratch, 'r');
    this.manifests = join(scratch, 'm');
    this.#socket = join(scratch, 'agent.sock');
    this.#interrupted = interrupted;
    const pool = join(scratch, 'pool');
    for (const directory of [this.root, this.manifests, pool]) mkdirSync(directory, { mode: 0o750 });
    this.disks = DISKS.map((kind, index) => new Disk(kind, `${kind}-${index}`, pool));
    this.driver = new HostileDriver(this.disks, tell);
  }

  async build(): Promise<void> {
    this.#program = await bundle(this.scratch, 'agent/main.ts', 'mooring.mjs');
    // As on a node: a mount made in one place is seen by its peers.
    await must(['mount', '--bind', '--', this.root, this.root]);
    await must(['mount', '--make-shared', '--', this.root]);
    await this.driver.serve(this.root);
    this.#put('volumes.json', volumeObjects(this.disks.map(({ handle }) => handle)));
    await this.startAgent();
  }

  get isAgentUp(): boolean {
    return this.#agent?.running() ?? false;
  }

  /** As the shipped unit does: what ends by itself is started again, for a while; why it ended is told. */
  async startAgent(): Promise<void> {
    if (this.isAgentUp) return;
    const config = { root: this.root, manifests: this.manifests, socket: this.#socket, ...SETTINGS };
    writeFileSync(join(this.scratch, 'config.yaml'), JSON.stringify(config));
    const argv = [this.#program, 'agent', '--config', join(this.scratch, 'config.yaml')];
    for (let tries = 1; ; tries += 1) {
      rmSync(this.#socket, { force: true });
      const agent = startProcess({ name: 'agent', argv, log: join(this.scratch, 'agent.log') });
      this.#agent = agent;
      try {
        await untilHealthy(this.#socket, agent, this.#interrupted);
        break;
      } catch (error) {
        if (agent.running() || tries === STARTS_MAX) throw error;
        this.tell(`the agent did not start: ${this.log(1)}`);
      }
    }
    this.startedMs = performance.now();
    this.tell('agent started');
  }

  async endAgent(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    await this.#agent?.end(signal);
    this.tell(`agent ended by ${signal}`);
  }

  /** Undefined while no agent answers. */
  async status(): Promise<StatusDocument | undefined> {
    if (!this.isAgentUp) return undefined;
    try {
      return await readStatus(this.#socket);
    } catch {
      return undefined;
    }
  }

  log(lines: number): string {
    const file = join(this.scratch, 'agent.log');
    return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n').slice(-lines).join('\n') : '';
  }

  podComes(handle = this.random.pick(this.disks).handle): string {
    this.#pods += 1;
    const pod: WantedPod = {
      uid: `pod-${this.#pods}`,
      handle,
      sinceMs: performance.now(),
      ran: false,
    };
    this.wanted.set(pod.uid, pod);
    this.#put(`${pod.uid}.json`, podObject(pod));
    return `${pod.uid} comes, with ${pod.handle}`;
  }

  podGoes(uid: string): void {
    rmSync(join(this.#manifestsNow(), `${uid}.json`), { force: true });
    this.wanted.delete(uid);
  }

  diskOf(handle: string): Disk {
    const disk = this.disks.find((one) => one.handle === handle);
    if (disk === undefined) throw new Error(`no disk ${handle}`);
    return disk;
  }

  targetOf({ uid, handle }: HostilePod): string {
    return join(this.root, 'pods', uid, 'volumes/kubernetes.io~csi', handle, 'mount');
  }

  emptyDirectoryOf(uid: string): string {
    return join(this.root, 'pods', uid, 'volumes/kubernetes.io~empty-dir/scratch');
  }

  /** Staging paths that are mounted now. */
  stagingPaths(): readonly string[] {
    return kernelMounts()
      .map(({ target }) => target)
      .filter((target) => target.startsWith(`${this.root}/plugins/`) && target.endsWith('/globalmount'));
  }

  async mountForeign(path: string): Promise<string | undefined> {
    if (!existsSync(path) || this.foreign.some((one) => one.path === path)) return undefined;
    const source = `foreign-${this.foreignSinceMs.size}`;
    this.foreignSinceMs.set(source, performance.now());
    const mounted = await run(['mount', '-t', 'tmpfs', '-o', 'size=1m', '--', source, path]);
    const mount = mountShownAt(path);
    if (mounted.code !== 0 || mount === undefined) return undefined;
    const hidesManifests = path === this.manifests;
    this.foreign.push({ path, mountId: mount.id, sinceMs: performance.now(), hidesManifests });
    return `somebody mounts a tmpfs (mount ${mount.id}) at ${path.slice(this.scratch.length)}`;
  }

  /** Lazily where the agent works on top of it: whoever mounted it does not ask. */
  async unmountForeign(foreign: Foreign): Promise<void> {
    this.foreign.splice(this.foreign.indexOf(foreign), 1);
    if (mountShownAt(foreign.path)?.id === foreign.mountId) {
      const plain = await run(['umount', '--', foreign.path]);
      if (plain.code !== 0) await must(['umount', '--lazy', '--', foreign.path]);
    }
    this.uncoveredMs = performance.now();
    this.tell(`somebody takes mount ${foreign.mountId} from ${foreign.path.slice(this.scratch.length)}`);
  }

  /**
   * Something may be left of what was taken back: it had been mounted over meanwhile, or its copy at another place of
   * the volume had. As soon as that shows again whoever mounted it takes it away.
   */
  async unmountForeignLeft(): Promise<void> {
    const known = new Set(this.foreign.map(({ mountId }) => mountId));
    for (const { id, source, target } of kernelMounts()) {
      if (!this.foreignSinceMs.has(source) || known.has(id) || mountShownAt(target)?.id !== id) continue;
      const taken = await run(['umount', '--', target]);
      if (taken.code === 0) this.tell(`somebody takes mount ${id} from ${target.slice(this.scratch.length)}`);
    }
  }

  /** All files are somewhere else, as after a check-out that went wrong. */
  takeManifestsAway(): void {
    const aside = this.#aside();
    mkdirSync(aside);
    for (const name of readdirSync(this.manifests)) renameSync(join(this.manifests, name), join(aside, name));
    this.areManifestsAway = true;
  }

  bringManifestsBack(): void {
    const aside = this.#aside();
    for (const name of readdirSync(aside)) renameSync(join(aside, name), join(this.manifests, name));
    rmdirSync(aside);
    this.areManifestsAway = false;
  }

  async close(): Promise<void> {
    await this.endAgent('SIGTERM');
    await this.driver.close();
    // The guard looks for what is left; after a finding that is not the news.
    for (const { target } of [...kernelMounts()].reverse())
      if (target.startsWith(`${this.root}/`)) await run(['umount', '--lazy', '--', target]);
    for (const disk of this.disks) await disk.release();
  }

  #aside(): string {
    return join(this.scratch, 'aside');
  }

  #manifestsNow(): string {
    return this.areManifestsAway ? this.#aside() : this.manifests;
  }

  #put(name: string, content: string): void {
    const hidden = join(this.scratch, '.new');
    writeFileSync(hidden, content, { mode: 0o600 });
    renameSync(hidden, join(this.#manifestsNow(), name));
  }

  /** What of the world can be mounted over: places of pods, staging paths, what they lie in, the manifests. */
  coverable(): readonly string[] {
    const targets = [...this.wanted.values()].flatMap((pod) => {
      const target = this.targetOf(pod);
      return isMountPoint(target) ? [target] : [];
    });
    return [...targets, ...this.stagingPaths()];
  }
}
