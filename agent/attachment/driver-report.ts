/** The CSINode object of this node, and marks on its Node: by them the scheduler knows which drivers are here. */
import type { ApiFailure } from '../../kubernetes/api/api-failure.ts';
import type { ApiTransport } from '../../kubernetes/api/api-transport.ts';
import type { Cancel, Clock } from '../../mount/host.ts';
import { Retries } from '../../mount/process/back-off.ts';
import type { Log } from '../../mount/process/log.ts';
import type { DriverInstance } from '../../plugins/csi/driver/driver.ts';
import type { NodeObject } from '../source/cluster/node-object.ts';
import type { AnnouncedDriver, DriverEntry } from './driver-announcement.ts';
import { DriverWriter } from './driver-writer.ts';
import type { AnnouncingDrivers } from './standing-watch.ts';

export interface DriverReportParts {
  readonly transport: ApiTransport;
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  readonly node: NodeObject;
  readonly nodeName: string;
  readonly log: Pick<Log, 'info' | 'warn'>;
  /** Drivers of which something stands here. */
  readonly usedDrivers: () => ReadonlySet<string>;
  /** Called when nobody waits any more for a driver that has renamed the node. */
  readonly onRenamed: () => void;
}

export interface DriverReport {
  begin(drivers: AnnouncingDrivers): void;
  /**
   * The driver has less room here than it said when it registered: it is asked for its limit anew, and the scheduler is
   * told, as soon as it says another one (KEP-4876).
   */
  exhausted(driver: string): void;
  /** Why nothing new of it is attached here: it calls this node otherwise since a moment; undefined: it does not. */
  renaming(driver: string): string | undefined;
  stop(): void;
}

/** A driver that starts again must not be forgotten by the scheduler meanwhile. */
const GONE_MS = 60_000;
/** Others may have written it: nobody tells, because a node may not watch it. */
const AGAIN_MS = 300_000;
/** Whoever attaches may still know the name of before for so long after the CSINode says the one of now. */
const RENAMED_MS = 60_000;
/** However many volumes are refused meanwhile. */
const LIMIT_MS = 10_000;
const RENAMED_TEXT = `nothing new is attached before the CSINode has said so for ${RENAMED_MS / 1_000} s`;
/** What drivers say that come and go, each under another name, is told again rather than kept for ever. */
const TOLD_MAX = 1_000;
const RETRY = { firstMs: 1_000, maxMs: 60_000 } as const;

interface Renaming {
  readonly from: string;
  readonly to: string;
  /** Ends the wait that runs since the CSINode was first seen to say so. */
  cancel: Cancel | undefined;
}

interface Asked {
  /** Others were refused since. */
  isToBeRepeated: boolean;
  readonly cancel: Cancel;
}

export function createDriverReport(parts: DriverReportParts): DriverReport {
  return new ReportOfDrivers(parts);
}

class ReportOfDrivers implements DriverReport {
  readonly #parts: DriverReportParts;
  readonly #writer: DriverWriter;
  #drivers: AnnouncingDrivers | undefined;
  /** Host clock: since when a driver that was registered in this life is not. */
  readonly #goneMs = new Map<string, number>();
  /** What a driver has said of its limit since it registered. */
  readonly #limits = new Map<DriverInstance, number>();
  readonly #renaming = new Map<string, Renaming>();
  /** Drivers that are asked for it, or were a moment ago. */
  readonly #asked = new Map<string, Asked>();
  #isWriting = false;
  #isAgain = false;
  #isStopped = false;
  #nodeUid: string | undefined;
  readonly #retries = new Retries(RETRY);
  /** The last text of each thing that was told of. */
  readonly #told = new Map<string, string>();
  #cancel: Cancel = () => {};
  readonly #cancels: Cancel[] = [];

  constructor(parts: DriverReportParts) {
    this.#parts = parts;
    this.#writer = new DriverWriter({
      ...parts,
      tell: (about, message) => this.#tell(about, message),
      onEntries: (entries) => this.#noteRenamed(entries),
    });
  }

  begin(drivers: AnnouncingDrivers): void {
    const { clock, node } = this.#parts;
    this.#drivers = drivers;
    this.#cancels.push(
      drivers.onChange(({ kind, driver }) => {
        if (kind === 'gone') this.#goneMs.set(driver, clock.nowMs());
        else this.#goneMs.delete(driver);
        void this.#write();
      }),
      node.onChange(() => {
        const uid = node.current()?.uid;
        if (uid === this.#nodeUid) return;
        this.#nodeUid = uid;
        void this.#write();
      }),
    );
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
    for (const { cancel } of [...this.#asked.values(), ...this.#renaming.values()]) cancel?.();
    for (const cancel of this.#cancels) cancel();
  }

  exhausted(driver: string): void {
    const asked = this.#asked.get(driver);
    if (asked === undefined) void this.#askLimit(driver);
    else asked.isToBeRepeated = true;
  }

  async #askLimit(driver: string): Promise<void> {
    const cancel = this.#parts.clock.timer(LIMIT_MS, () => {
      const { isToBeRepeated } = asked;
      this.#asked.delete(driver);
      if (isToBeRepeated) this.exhausted(driver);
    });
    const asked: Asked = { isToBeRepeated: false, cancel };
    this.#asked.set(driver, asked);
    const instance = this.#here().find(({ name }) => name === driver);
    const answered = await this.#drivers?.askVolumesMax(driver);
    if (this.#isStopped || instance === undefined || answered?.ok !== true) return;
    if (!this.#here().includes(instance)) return;
    this.#limits.set(instance, answered.value);
    void this.#write();
  }

  renaming(driver: string): string | undefined {
    const known = this.#renaming.get(driver);
    if (known === undefined) return undefined;
    return `driver ${driver} calls this node ${known.to}, and called it ${known.from} before: ${RENAMED_TEXT}`;
  }

  /** What an attachment was made for is the name that the CSINode had then, and it is detached by that. */
  #noteRenamed(entries: readonly DriverEntry[]): void {
    const { clock, log } = this.#parts;
    for (const { name, nodeId: to } of this.#here()) {
      const from = entries.find((one) => one.name === name)?.['nodeID'];
      const known = this.#renaming.get(name);
      if (typeof from === 'string' && from !== to && known?.to !== to) {
        known?.cancel?.();
        this.#renaming.set(name, { from, to, cancel: undefined });
        log.warn('driver calls this node otherwise', { driver: name, from, to });
      } else if (from === to && known !== undefined) {
        if (known.to === to) known.cancel ??= clock.timer(RENAMED_MS, () => this.#endRenaming(name));
        // It is called as before again, and the CSINode has not said otherwise.
        else this.#endRenaming(name);
      }
    }
  }

  #endRenaming(driver: string): void {
    this.#renaming.get(driver)?.cancel?.();
    this.#renaming.delete(driver);
    this.#parts.onRenamed();
  }

  #here(): readonly DriverInstance[] {
    return this.#drivers?.list() ?? [];
  }

  /** As they are to be announced: one that was replaced says all of itself anew. */
  #announced(): readonly AnnouncedDriver[] {
    const here = this.#here();
    for (const instance of this.#limits.keys()) if (!here.includes(instance)) this.#limits.delete(instance);
    return here.map((one) => {
      const volumesMax = this.#limits.get(one);
      return volumesMax === undefined ? one : { ...one, volumesMax };
    });
  }

  async #write(): Promise<void> {
    if (this.#isStopped) return;
    this.#isAgain = this.#isWriting;
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#cancel();
    const failure = await this.#reconcile();
    this.#isWriting = false;
    if (this.#isStopped) return;
    if (failure !== undefined && failure.code !== 'conflict')
      this.#tell('all', `the API server says: ${failure.message}`);
    if (this.#isAgain) return void this.#write();
    const waitMs =
      failure === undefined ? this.#untilNextMs() : this.#retries.nextMs({ leastMs: failure.retryAfterMs });
    if (failure === undefined) this.#retries.reset();
    this.#cancel = this.#parts.clock.timer(waitMs, () => void this.#write());
  }

  /** When there is a reason to look again that nobody tells of. */
  #untilNextMs(): number {
    const { clock, node } = this.#parts;
    const waits = [...this.#goneMs.values()].map((sinceMs) => sinceMs + GONE_MS - clock.nowMs());
    // One that is past its time is kept because something of it stands.
    const leastMs = Math.min(AGAIN_MS, ...waits.map((waitMs) => (waitMs > 0 ? waitMs : GONE_MS)));
    // Without a Node nothing was tried again, however long it has been due, nor of a driver that is not given out.
    const refusedMs = node.current() === undefined ? undefined : this.#writer.untilDueMs(this.#here());
    return Math.min(leastMs, refusedMs ?? AGAIN_MS);
  }

  /** Those that have been gone for long, and of which nothing stands. */
  #gone(): ReadonlySet<string> {
    const { clock, usedDrivers } = this.#parts;
    const used = usedDrivers();
    const isGone = ([name, sinceMs]: [string, number]): boolean =>
      clock.nowMs() - sinceMs >= GONE_MS && !used.has(name);
    return new Set([...this.#goneMs].filter(isGone).map(([name]) => name));
  }

  /** The answer: what went wrong. */
  async #reconcile(): Promise<ApiFailure | undefined> {
    const seen = this.#parts.node.current();
    const here = this.#announced();
    // Without a Node there is nobody to own it; its coming is a reason to look again.
    if (seen === undefined || (here.length === 0 && this.#goneMs.size === 0)) return undefined;
    const gone = this.#gone();
    const failure = await this.#writer.write(seen, here, gone);
    if (failure === undefined) for (const name of gone) this.#goneMs.delete(name);
    return failure;
  }

  /** Each text once, until another one comes about the same. */
  #tell(about: string, message: string | undefined): void {
    if (message === this.#told.get(about)) return;
    this.#told.delete(about);
    if (message === undefined) return;
    if (this.#told.size >= TOLD_MAX) this.#told.clear();
    this.#told.set(about, message);
    this.#parts.log.warn('drivers not announced', { message });
  }
}
