/**
 * Judges the agent by the kernel, the disks and the driver's books alone. What it is told by the agent, its status, is
 * what is judged. A finding names the rule that was broken.
 */
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PodVolumeStatus, StatusDocument } from '../../agent/status/status-document.ts';
import { run } from './command.ts';
import type { HostileWorld, WantedPod } from './hostile-world.ts';
import { kernelMounts, mountShownAt } from './kernel.ts';

/** A directory by descriptor: whoever mounts over it later does not change what is written to. */
const O_PATH_DIRECTORY = 0o10000000 | 0o200000;
/** How long something must have been so before somebody who had to ask for it must know; generous on a busy machine. */
const KNOWN_AFTER_MS = 10_000;
const TOLD_AFTER_MS = 60_000;
/** How long before its call to the driver the agent may have looked at the kernel, on a busy machine. */
const LOOKED_BEFORE_MS = 3_000;

export class HostileOracle {
  readonly findings: string[] = [];
  readonly #world: HostileWorld;
  readonly #mounted = new Set<string>();
  /** New to a disk that died, and nobody had to know of it yet. */
  readonly #early = new Set<string>();
  readonly #untoldSinceMs = new Map<string, number>();
  #lookedMs = 0;
  checks = 0;
  readies = 0;

  constructor(world: HostileWorld) {
    this.#world = world;
  }

  #find(rule: string, text: string): void {
    if (this.findings.length === 0 || this.findings.at(-1) !== `${rule}: ${text}`)
      this.findings.push(`${rule}: ${text}`);
    this.#world.tell(`FINDING ${rule}: ${text}`);
  }

  async look(): Promise<void> {
    this.checks += 1;
    this.#foreignMountsStand();
    this.#nothingOfAPodIsDeleted();
    const status = await this.#world.status();
    if (status === undefined) return;
    for (const pod of this.#world.wanted.values()) await this.#judge(pod, status);
  }

  /**
   * Nobody but who made it takes a foreign mount away, and a driver is not made to. One that comes late to a call of
   * before does by itself: what was mounted over one place of a volume is over its other places, too, being peers. And
   * between the agent's look at the kernel and what the driver does, somebody may be quick.
   */
  #foreignMountsStand(): void {
    const sinceMs = this.#lookedMs;
    this.#lookedMs = performance.now();
    const ids = new Set(kernelMounts().map(({ id }) => id));
    for (const one of [...this.#world.foreign]) {
      if (ids.has(one.mountId)) continue;
      this.#world.foreign.splice(this.#world.foreign.indexOf(one), 1);
      if (this.#world.driver.tookDown(sinceMs, one.sinceMs + LOOKED_BEFORE_MS)) continue;
      this.#find('foreign-unmounted', `mount ${one.mountId} at ${one.path} was taken away by somebody else`);
    }
  }

  /** What a running pod wrote into its emptyDir stays, whatever the manifests seem to say. */
  #nothingOfAPodIsDeleted(): void {
    if (this.#world.foreign.some(({ path }) => path.endsWith('/pods'))) return;
    for (const { uid, ran } of this.#world.wanted.values()) {
      const note = join(this.#world.emptyDirectoryOf(uid), 'note');
      if (ran && !existsSync(note))
        this.#find('data-deleted', `the emptyDir of ${uid}, which runs, lost its file`);
    }
  }

  async #judge(pod: WantedPod, status: StatusDocument): Promise<void> {
    const told = status.pods.find(({ uid }) => uid === pod.uid);
    const data = told?.volumes.find(({ plugin }) => plugin === 'kubernetes.io/csi');
    if (told?.ready === true) this.#leaveNote(pod);
    if (data === undefined) return;
    if (data.state === 'mounted') await this.#mustBeTrue(pod, data);
    else {
      this.#mounted.delete(pod.uid);
      this.#early.delete(pod.uid);
    }
    if (data.state !== 'mounted' && data.reason === null && data.state !== 'mounting')
      this.#find('silent', `${pod.uid} is ${data.state} without a reason`);
  }

  #leaveNote(pod: WantedPod): void {
    if (pod.ran || this.#world.foreign.some(({ path }) => path.endsWith('/pods'))) return;
    writeFileSync(join(this.#world.emptyDirectoryOf(pod.uid), 'note'), 'precious');
    pod.ran = true;
  }

  /** What is called mounted shows the volume, and a pod that is new to it can use it. */
  async #mustBeTrue(pod: WantedPod, data: PodVolumeStatus): Promise<void> {
    const world = this.#world;
    const nowMs = performance.now();
    const isNew = !this.#mounted.has(pod.uid);
    this.#mounted.add(pod.uid);
    const disk = world.diskOf(pod.handle);
    const target = world.targetOf(pod);
    const shown = mountShownAt(target);
    const isRight = shown?.target === target && disk.isShownBy(shown);
    const shownMs = world.foreignSinceMs.get(shown?.source ?? '') ?? 0;
    const changedMs = Math.max(0, world.startedMs, shownMs, ...this.#changesAbove(target));
    if (!isRight) {
      const forMs = nowMs - Math.max(changedMs, this.#untoldSinceMs.get(pod.uid) ?? nowMs);
      if (!this.#untoldSinceMs.has(pod.uid)) this.#untoldSinceMs.set(pod.uid, nowMs);
      const place = target.slice(world.root.length);
      const other = `${shown?.fsType} ${shown?.source} (mount ${shown?.id})`;
      const what = `${pod.uid} is called mounted, but ${place} shows ${other}`;
      if (isNew && nowMs - changedMs > KNOWN_AFTER_MS)
        this.#find('foreign-believed', `${what}, and it is new to it`);
      else if (data.reason === null && forMs > TOLD_AFTER_MS) this.#find('foreign-untold', what);
      return;
    }
    this.#untoldSinceMs.delete(pod.uid);
    if (!isNew) return;
    if (!this.#early.has(pod.uid)) this.readies += 1;
    if (disk.deadSinceMs !== undefined) this.#mustBeTold(pod, data, disk.deadSinceMs);
    else if (!disk.isHung) await this.#write(pod, target, shown.id);
  }

  /** Judged once it could be known: what is uncovered is looked at again before long, and then something is said. */
  #mustBeTold({ uid, handle }: WantedPod, { reason }: PodVolumeStatus, deadSinceMs: number): void {
    const nowMs = performance.now();
    const forMs = nowMs - Math.max(deadSinceMs, this.#world.startedMs, this.#world.uncoveredMs);
    const isEarly = this.#early.has(uid);
    if (forMs <= (isEarly ? TOLD_AFTER_MS : KNOWN_AFTER_MS)) {
      this.#mounted.delete(uid);
      this.#early.add(uid);
      return;
    }
    this.#early.delete(uid);
    if (isEarly && reason !== null) return;
    const deadMs = Math.round(nowMs - deadSinceMs);
    this.#find('dead-given', `${uid} is ready on ${handle}, which died ${deadMs} ms ago`);
  }

  /** When something was mounted over the path or an ancestor of it. */
  #changesAbove(path: string): readonly number[] {
    return this.#world.foreign
      .filter((one) => path === one.path || path.startsWith(`${one.path}/`))
      .map(({ sinceMs }) => sinceMs);
  }

  /** As its container does: what is written and synced must be on the volume at the end. */
  async #write(pod: WantedPod, target: string, mountId: number): Promise<void> {
    // What a file system in user space remembers goes with its server.
    if (pod.handle.startsWith('fuse')) return;
    let directory: number;
    try {
      directory = openSync(target, O_PATH_DIRECTORY);
    } catch {
      return;
    }
    try {
      const facts = readFileSync(`/proc/self/fdinfo/${directory}`, 'utf8');
      if (Number(/^mnt_id:\s+(\d+)$/m.exec(facts)?.[1]) !== mountId) return;
      const script = `cd /proc/self/fd/3 && echo ${pod.uid} > ${pod.uid} && sync ${pod.uid}`;
      const { code } = await run(['sh', '-c', script], directory);
      if (code !== 0) return;
      const known = this.#world.written.get(pod.handle) ?? new Set();
      this.#world.written.set(pod.handle, known.add(pod.uid));
    } finally {
      closeSync(directory);
    }
  }

  /** After the storm: every pod reads on its volume what all pods wrote to it. */
  async judgeData(): Promise<void> {
    for (const pod of this.#world.wanted.values()) {
      for (const name of this.#world.written.get(pod.handle) ?? []) {
        const { code } = await run(['test', '-f', join(this.#world.targetOf(pod), name)]);
        if (code !== 0)
          this.#find('data-lost', `${pod.uid} does not find what ${name} wrote to ${pod.handle}`);
      }
    }
  }

  judgeEnd(left: readonly string[]): void {
    for (const one of left) this.#find('left-behind', one);
  }

  /** An agent that does not start, say: what follows cannot be judged. */
  judgeWorld(what: string): void {
    this.#find('broken-off', what);
  }

  judgeConvergence(what: string): void {
    this.#find('stuck', what);
  }
}
