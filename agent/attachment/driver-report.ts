/** The CSINode object of this node, and marks on its Node: by them the scheduler knows which drivers are here. */
import type { ApiFailure, ApiResult } from '../../kubernetes/api/api-failure.ts';
import type { ApiObjectEnvelope } from '../../kubernetes/api/api-object.ts';
import type { ApiTransport } from '../../kubernetes/api/api-transport.ts';
import { csiNodePath, csiNodesPath, nodePath } from '../../kubernetes/api/resource-path.ts';
import { createObject, deleteObject, patchObject, readOne } from '../../kubernetes/api/write-object.ts';
import type { Cancel, Clock } from '../../mount/host.ts';
import { Retries } from '../../mount/process/back-off.ts';
import type { Log } from '../../mount/process/log.ts';
import type { DriverInstance } from '../../plugins/csi/driver/driver.ts';
import type { NodeObject } from '../source/cluster/node-object.ts';
import {
  type AnnouncedDriver,
  type DriverEntry,
  driverEntries,
  entriesIn,
  NODE_IDS,
  nodeMarks,
  ownerUidOf,
} from './driver-announcement.ts';
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
  #told = '';
  #cancel: Cancel = () => {};
  readonly #cancels: Cancel[] = [];

  constructor(parts: DriverReportParts) {
    this.#parts = parts;
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
  #noteRenamed(entries: readonly DriverEntry[], here: readonly AnnouncedDriver[]): void {
    const { clock, log } = this.#parts;
    for (const { name, nodeId: to } of here) {
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
      this.#tell(`the API server says: ${failure.message}`);
    if (this.#isAgain) return void this.#write();
    const isRepeated = failure?.code === 'conflict';
    const waitMs =
      failure === undefined ? this.#untilNextMs() : this.#retries.nextMs({ leastMs: failure.retryAfterMs });
    if (failure === undefined || isRepeated) this.#retries.reset();
    this.#cancel = this.#parts.clock.timer(waitMs, () => void this.#write());
  }

  #untilNextMs(): number {
    const { clock } = this.#parts;
    const waits = [...this.#goneMs.values()].map((sinceMs) => sinceMs + GONE_MS - clock.nowMs());
    // One that is past its time is kept because something of it stands.
    return Math.min(AGAIN_MS, ...waits.map((waitMs) => (waitMs > 0 ? waitMs : GONE_MS)));
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
    const { node } = this.#parts;
    const seen = node.current();
    const here = this.#here();
    // Without a Node there is nobody to own it; its coming is a reason to look again.
    if (seen === undefined || (here.length === 0 && this.#goneMs.size === 0)) return undefined;
    const gone = this.#gone();
    // As with the kubelet: whoever reads of a driver in the CSINode finds its labels on the Node, before and after.
    const marked = await this.#writeNode(seen, new Set());
    if (marked !== undefined) return marked;
    const csiNode = await this.#writeCsiNode(seen, gone);
    if (!csiNode.ok) return csiNode.failure;
    const cleared = gone.size === 0 ? undefined : await this.#writeNode(seen, gone);
    if (cleared === undefined) for (const name of gone) this.#goneMs.delete(name);
    return cleared;
  }

  async #writeCsiNode(node: ApiObjectEnvelope, gone: ReadonlySet<string>): Promise<ApiResult<unknown>> {
    const { transport, nodeName } = this.#parts;
    const here = this.#announced();
    const path = csiNodePath(nodeName);
    const read = await readOne(transport, path);
    if (!read.ok && read.failure.code !== 'absent') return read;
    if (read.ok && ownerUidOf(read.value.value) !== node.uid) {
      this.#tell(`CSINode ${nodeName} belongs to another Node than the one of today, and is made anew`);
      const deleted = await deleteObject(transport, path, read.value.uid);
      if (!deleted.ok && deleted.failure.code !== 'absent') return deleted;
    } else if (read.ok) {
      const entries = entriesIn(read.value.value);
      this.#noteRenamed(entries, here);
      const drivers = driverEntries(entries, here, gone);
      if (drivers === undefined) return read;
      const patched = await patchObject(transport, {
        path,
        before: read.value,
        change: { spec: { drivers } },
      });
      // One that is to be another under its old name comes by the next look.
      return patched.ok ? this.#writeCsiNode(node, gone) : patched;
    }
    return createObject(transport, csiNodesPath(), {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSINode',
      metadata: {
        name: nodeName,
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: nodeName, uid: node.uid }],
      },
      spec: { drivers: driverEntries([], here, new Set()) ?? [] },
    });
  }

  async #writeNode(seen: ApiObjectEnvelope, gone: ReadonlySet<string>): Promise<ApiFailure | undefined> {
    const { transport, node, nodeName } = this.#parts;
    const before = node.current() ?? seen;
    const { nodeIds, labels, collisions } = nodeMarks(before.value, this.#here(), gone);
    if (collisions.length > 0) this.#tell(`topology value collision: ${collisions.join('; ')}`);
    if (nodeIds === undefined && Object.keys(labels).length === 0) return undefined;
    const patched = await patchObject(transport, {
      path: nodePath(nodeName),
      before,
      labels,
      ...(nodeIds === undefined ? {} : { annotations: { [NODE_IDS]: nodeIds } }),
      change: {},
    });
    if (!patched.ok) return patched.failure;
    node.learn(patched.value);
    return undefined;
  }

  /** Each text once, until another one comes. */
  #tell(message: string): void {
    if (message === this.#told) return;
    this.#told = message;
    this.#parts.log.warn('drivers not announced', { message });
  }
}
