/**
 * File systems that hang under volumes that stand, from a stream of chance of their own: whoever looks through the
 * mount waits until that ends, while mount ids, the mount table and umount(2) answer. Of some a process that waits can
 * be killed, as below FUSE, of the others not, as below NFS.
 */
import type { AgentView } from '../../agent/node/agent-view.ts';
import type { VolumeInFlight } from '../../reconciler/run/volume-operation.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { Backing } from './backing.ts';
import type { OpenHang, OpenWork } from './open-work.ts';
import type { Random } from './random.ts';
import type { SimKernel } from './sim-kernel.ts';
import type { SimStorage } from './sim-storage.ts';
import type { Plan } from './swarm.ts';
import type { Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface HungParts {
  readonly plan: Plan;
  readonly random: Random;
  readonly kernel: SimKernel;
  readonly storage: Pick<SimStorage, 'backings' | 'backingOf' | 'driverOf'>;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly violate: (invariant: string, text: string) => void;
  readonly stormy: () => boolean;
}

const KILLABLE_SHARE = 0.5;
const STAY_MS_MAX = 300_000;
/** A look at what hung so short a time ago was decided before, or comes right behind a driver's OK. */
const FRESH_MS = 1_000;
/** Longer than any look that is not hung. */
const LOOK_MS_MAX = 10_000;
/** So long may one that hangs keep its turn: a minute, and until the resync after that. */
const WAIT_MS_MAX = 130_000;
/** So many periods may pass until a healthy volume is asked again: its turn comes in each, unless it is busy. */
const PERIODS_MAX = 4;

const RPC_OF: Readonly<Record<string, string | undefined>> = {
  unpublish: 'NodeUnpublishVolume',
  unstage: 'NodeUnstageVolume',
};

export class HungFileSystems {
  readonly #parts: HungParts;
  readonly #judged = new WeakSet<OpenHang>();
  /** Since when each healthy volume has been there to be asked about. */
  readonly #askableMs = new Map<VolumeId, number>();
  #reconciler: AgentView['reconciler'] | undefined;

  constructor(parts: HungParts) {
    this.#parts = parts;
    parts.kernel.fileSystemsHang = parts.plan.hangEveryMs > 0;
    if (parts.plan.hangEveryMs > 0) this.#schedule();
  }

  #schedule(): void {
    const { random, time, plan, stormy } = this.#parts;
    time.after(Math.ceil(-Math.log(1 - random.next()) * plan.hangEveryMs), () => {
      if (!stormy()) return;
      this.#hang();
      this.#schedule();
    });
  }

  #hang(): void {
    const { random, storage, trace, time } = this.#parts;
    const serving = storage
      .backings()
      .filter(({ block, fileSystem }) => !block && fileSystem.mounts > 0 && fileSystem.hang === undefined);
    if (serving.length === 0) return;
    const { handle, fileSystem } = random.pick(serving);
    const hang = { sinceMs: time.nowMs(), killable: random.chance(KILLABLE_SHARE) };
    fileSystem.hang = hang;
    trace.add(`the file system of ${handle} hangs, ${hang.killable ? '' : 'not '}killable`);
    time.after(random.between(500, STAY_MS_MAX), () => {
      if (fileSystem.hang !== hang) return;
      trace.add(`the file system of ${handle} goes on`);
      fileSystem.hang = undefined;
    });
  }

  heal(): void {
    for (const { fileSystem } of this.#parts.storage.backings()) fileSystem.hang = undefined;
  }

  /** After every event of a started agent. */
  look(view: AgentView, work: OpenWork): void {
    const { plan, stormy } = this.#parts;
    if (plan.hangEveryMs === 0 || !stormy()) return;
    for (const hang of work.hangs()) this.#judgeLook(hang, work);
    for (const one of view.reconciler.running()) this.#judgeAnswer(view, one, work);
    this.#judgeTurns(view, work);
    this.#judgeQuestions(view, work);
  }

  /**
   * What may hang is asked where that keeps nobody waiting (`probeFileSystem`), and an ownership walk has brokers of
   * its own. Only what a driver has just said OK about is looked at directly.
   */
  #judgeLook(hang: OpenHang, work: OpenWork): void {
    if (this.#judged.has(hang)) return;
    this.#judged.add(hang);
    const { kind, path, fileSystem, sinceMs } = hang;
    if (kind === 'probeFileSystem' || kind === 'changeOwnership') return;
    const hungMs = fileSystem.hang?.sinceMs ?? sinceMs;
    if (sinceMs - hungMs <= FRESH_MS) return;
    const handle = this.#handleOf(fileSystem);
    // That of another server has a judge of its own.
    if (handle === undefined) return;
    const answers = ['NodeStageVolume', 'NodePublishVolume'].map((method) => work.heard(handle, method));
    const isVerified = answers.some((one) => sinceMs - (one?.okAtMs ?? Number.NEGATIVE_INFINITY) <= FRESH_MS);
    if (!isVerified)
      this.#parts.violate('hung', `${kind} of ${path}, which has hung for ${sinceMs - hungMs} ms`);
  }

  /** What a driver refused is told and tried again, whatever hangs. */
  #judgeAnswer(view: AgentView, { operation, step }: VolumeInFlight, work: OpenWork): void {
    const rpc = RPC_OF[operation.kind];
    const backing = this.#backingOf(view, operation.volume);
    if (rpc === undefined || backing === undefined || step.kind !== 'verifying') return;
    const answer = work.heard(backing.handle, rpc);
    const hang = work.hangs().find(({ fileSystem }) => fileSystem === backing.fileSystem);
    if (answer?.ok !== false || hang === undefined || this.#goneSince(step.sinceMs) <= LOOK_MS_MAX) return;
    this.#parts.violate('hung', `the answer to ${rpc} is not acted on: ${hang.kind} of ${hang.path} hangs`);
  }

  /** Who has hung in a look of ours for two minutes counts against nobody: others have as many turns as ever. */
  #judgeTurns(view: AgentView, work: OpenWork): void {
    const nowMs = this.#parts.time.nowMs();
    const running = view.reconciler.running();
    const isHung = ({ operation, step }: VolumeInFlight): boolean => {
      const fileSystem = this.#backingOf(view, operation.volume)?.fileSystem;
      return (
        step.kind !== 'called' &&
        this.#goneSince(step.sinceMs) > WAIT_MS_MAX &&
        work.hangs().some((hang) => hang.fileSystem === fileSystem && nowMs - hang.sinceMs > WAIT_MS_MAX)
      );
    };
    for (const waiting of running) {
      if (waiting.phase !== 'queued' || this.#goneSince(waiting.sinceMs) <= WAIT_MS_MAX) continue;
      const first = running.filter(({ lane, phase }) => lane === waiting.lane && phase === 'running');
      const hung = first.filter(isHung);
      const width = this.#parts.plan.operationsPerDriverMax;
      if (hung.length === 0 || first.length - hung.length >= width) continue;
      const { operation } = waiting;
      const names = hung.map((one) => `${one.operation.kind} of ${one.operation.volume}`).join();
      this.#parts.violate(
        'hung',
        `${operation.kind} of ${operation.volume} waits for its turn behind ${names}`,
      );
    }
  }

  /** Issue 7, 14: whatever hangs, the healthy volumes go on being asked. */
  #judgeQuestions(view: AgentView, work: OpenWork): void {
    const { plan, time, storage } = this.#parts;
    const periodMs = plan.features.statisticsMs;
    if (!plan.judgesQuestions || periodMs === 0) return;
    if (this.#reconciler !== view.reconciler) this.#askableMs.clear();
    this.#reconciler = view.reconciler;
    const nowMs = time.nowMs();
    const busy = new Set(view.reconciler.running().map(({ operation }) => operation.volume));
    for (const [id, { spec, publications }] of view.reconciler.actual()) {
      const backing = this.#backingOf(view, id);
      const driver = spec.kind === 'csi' ? storage.driverOf(spec.driver) : undefined;
      const isAskable =
        backing !== undefined &&
        !backing.block &&
        backing.fileSystem.hang === undefined &&
        driver?.isUp === true &&
        driver.nature.statistics &&
        view.drivers.list().some(({ name }) => name === driver.name) &&
        !busy.has(id) &&
        // Nobody knows whether a question that was given up has ended: the next comes minutes later.
        view.statistics.of(id)?.unansweredSinceMs === undefined &&
        [...publications.values()].some(({ presence }) => presence.kind === 'present');
      if (!isAskable) {
        this.#askableMs.delete(id);
        continue;
      }
      const sinceMs = this.#askableMs.get(id) ?? nowMs;
      this.#askableMs.set(id, sinceMs);
      const lastMs = Math.max(sinceMs, work.askedMs(backing.handle) ?? 0);
      if (nowMs - lastMs > PERIODS_MAX * periodMs)
        this.#parts.violate('unasked', `${backing.handle} was not asked about for ${nowMs - lastMs} ms`);
    }
  }

  /** Since a moment that the agent tells, which counts from the boot. */
  #goneSince(hostMs: number): number {
    const { time, kernel } = this.#parts;
    return time.nowMs() - kernel.bootedMs - hostMs;
  }

  #handleOf(fileSystem: OpenHang['fileSystem']): string | undefined {
    return this.#parts.storage.backings().find((one) => one.fileSystem === fileSystem)?.handle;
  }

  #backingOf({ reconciler }: AgentView, id: VolumeId): Backing | undefined {
    const spec = reconciler.actual().get(id)?.spec;
    if (spec?.kind !== 'csi') return undefined;
    return this.#parts.storage.backingOf({ driver: spec.driver, handle: spec.volumeHandle });
  }
}
