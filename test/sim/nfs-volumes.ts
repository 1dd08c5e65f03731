/**
 * Volumes of one NFS server, which refuses and falls silent for minutes. They are drawn from a stream of their own, and
 * off in most seeds, so that those of before keep theirs.
 */
import type { AbsolutePath } from '../../mount/host.ts';
import { type FileSystem, plant } from './file-tree.ts';
import { NAMESPACE } from './manifests.ts';
import type { OpenWork } from './open-work.ts';
import type { Random } from './random.ts';
import type { SimKernel } from './sim-kernel.ts';
import type { Simulation } from './simulate.ts';
import type { Plan } from './swarm.ts';
import type { Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface NfsVolume {
  readonly kind: 'nfs';
  readonly name: string;
  readonly share: (typeof SHARES)[number];
  readonly readOnly: boolean;
  /** Written in its pod; otherwise behind a claim. */
  readonly isInline: boolean;
}

export interface NfsPlan {
  /** Probability that a pod has such a volume. */
  readonly share: number;
  /** Mean time between two turns of the server. */
  readonly everyMs: number;
}

export const NO_NFS: NfsPlan = { share: 0, everyMs: 0 };

/** The share of the seeds that have such volumes. */
const SEEDS_SHARE = 0.15;
const SHARES = ['a', 'b'] as const;
const SERVER = 'store.example';
const CONTENT = 'identity';
const STAY_MS_MAX = 240_000;
/** Who looks through a mount waits for the server: who asks how full it is, and who walks to a part to mount that. */
const MAY_WAIT: ReadonlySet<string> = new Set(['measureUsage', 'mount']);

export function withNfs(plan: Plan, random: Random): Plan {
  if (!random.chance(SEEDS_SHARE)) return plan;
  return { ...plan, nfs: { share: random.pick([0.4, 0.8]), everyMs: random.pick([10_000, 40_000]) } };
}

export function drawNfsVolume(random: Random, name: string): NfsVolume {
  const isInline = random.chance(0.5);
  return { kind: 'nfs', name, share: random.pick(SHARES), readOnly: random.chance(0.3), isInline };
}

/** What the last component of its place in the pod is. */
export function nfsNameOf({ isInline, name, share }: NfsVolume): string {
  return isInline ? name : `nfs-${share}`;
}

export function nfsSource({ isInline, share, readOnly }: NfsVolume): object {
  if (!isInline) return { persistentVolumeClaim: { claimName: `claim-nfs-${share}`, readOnly } };
  return { nfs: { server: SERVER, path: `/${share}`, readOnly } };
}

export function nfsObjects(): readonly object[] {
  return SHARES.flatMap((share) => {
    const accessModes = ['ReadWriteMany'];
    const claim = { namespace: NAMESPACE, name: `claim-nfs-${share}` };
    const storage = { storage: '1Gi' };
    const source = { nfs: { server: SERVER, path: `/${share}/` }, mountOptions: ['hard', 'nfsvers=4.2'] };
    return [
      {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name: `nfs-${share}` },
        spec: { capacity: storage, accessModes, claimRef: claim, ...source },
      },
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: claim,
        spec: { accessModes, volumeName: `nfs-${share}`, resources: { requests: storage } },
      },
    ];
  });
}

type Mood = 'serves' | 'refuses' | 'silent';

export interface NfsServerParts {
  readonly plan: Plan;
  readonly random: Random;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly stormy: () => boolean;
  readonly violate: (invariant: string, text: string) => void;
}

export class SimNfsServer {
  readonly #kernel: SimKernel;
  readonly #shares: ReadonlyMap<string, FileSystem>;
  #mood: Mood = 'serves';

  constructor(kernel: SimKernel) {
    this.#kernel = kernel;
    this.#shares = new Map(SHARES.map((share) => [`${SERVER}:/${share}`, this.#makeShare(share)]));
  }

  #makeShare(share: string): FileSystem {
    const fileSystem = this.#kernel.makeFileSystem('nfs4', `${SERVER}:/${share}`, false);
    plant(fileSystem.root, CONTENT, share);
    return fileSystem;
  }

  /** From now on it has moods. */
  run(parts: NfsServerParts): void {
    const { plan, time, random, trace, stormy } = parts;
    if (plan.nfs.share === 0) return;
    this.#kernel.fileSystemsHang = true;
    time.after(Math.ceil(-Math.log(1 - random.next()) * plan.nfs.everyMs), () => {
      if (!stormy()) return;
      this.#turn(random.pick(['serves', 'refuses', 'silent']), time.nowMs());
      trace.add(`the NFS server ${this.#mood}`);
      time.after(random.between(500, STAY_MS_MAX), () => this.run(parts));
    });
  }

  #turn(mood: Mood, nowMs: number): void {
    this.#mood = mood;
    const hang = mood === 'serves' ? undefined : { sinceMs: nowMs, killable: true };
    for (const fileSystem of this.#shares.values()) fileSystem.hang = hang;
  }

  heal(): void {
    this.#turn('serves', 0);
  }

  /** mount.nfs(8) on a silent server is killed by and by; an errno, or words. */
  mount(source: string, target: AbsolutePath, options: readonly string[]): string | undefined {
    if (this.#mood !== 'serves')
      return this.#mood === 'refuses' ? 'Connection refused' : 'Connection timed out';
    const share = this.#shares.get(source);
    return share === undefined
      ? 'access denied by server'
      : this.#kernel.mountFileSystem(share, target, options);
  }

  /** After every event of a started agent: does it wait for a silent server where others wait for it? */
  judge(work: OpenWork, violate: NfsServerParts['violate']): void {
    const shares = [...this.#shares.values()];
    const wrong = work
      .hangs()
      .find(({ kind, fileSystem }) => shares.includes(fileSystem) && !MAY_WAIT.has(kind));
    if (wrong !== undefined) violate('hung', `${wrong.kind} of ${wrong.path} waits for the NFS server`);
  }

  of(share: NfsVolume['share']): FileSystem | undefined {
    return this.#shares.get(`${SERVER}:/${share}`);
  }
}

/** What the server has, once, read-only where that is wished. */
export function nfsDiffers(sim: Simulation, volume: NfsVolume, target: string): string | undefined {
  const stack = sim.kernel.mountsAt(target);
  const only = stack.at(-1);
  if (only === undefined || stack.length > 1) return `${stack.length} layers mounted`;
  if (only.fileSystem !== sim.kernel.nfs.of(volume.share)) return 'something else than the share is mounted';
  return only.options.includes('ro') === volume.readOnly ? undefined : `mounted ${only.options.join()}`;
}

/** DL-01: nothing on the server goes, and nothing is made there. */
export function nfsLost({ kernel }: Simulation): string | undefined {
  for (const share of SHARES) {
    const names = [...(kernel.nfs.of(share)?.root.entries.keys() ?? [])].join();
    if (names !== CONTENT) return `the share ${share} has ${names === '' ? 'nothing' : names} now`;
  }
  return undefined;
}
