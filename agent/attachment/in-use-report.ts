/**
 * The list of volumes in use of this Node: by it the attach/detach controller knows what it must not take away. A name
 * is on it, acknowledged by the server, before the first stage and as long as anything of the volume may be here.
 */
import type { ApiFailure } from '../../kubernetes/api/api-failure.ts';
import type { ApiObjectEnvelope } from '../../kubernetes/api/api-object.ts';
import type { ApiTransport } from '../../kubernetes/api/api-transport.ts';
import { nodePath, nodeStatusPath } from '../../kubernetes/api/resource-path.ts';
import { compareResourceVersions } from '../../kubernetes/api/resource-version.ts';
import { patchObject, readOne } from '../../kubernetes/api/write-object.ts';
import { nodeVolumes, otherWriterOf } from '../../kubernetes/objects/attachment-sight.ts';
import { done, fail, type Failure, type Result } from '../../mount/failure.ts';
import type { Cancel, Clock } from '../../mount/host.ts';
import { Retries } from '../../mount/process/back-off.ts';
import type { NodeObject } from '../source/cluster/node-object.ts';
import { createContest } from './in-use-contest.ts';
import { InUseNames, isSameList, type WantedNames, type Waiting } from './in-use-names.ts';
import { InUsePace } from './in-use-pace.ts';
import { LateWrites } from './late-writes.ts';
import type { DiskReading } from './standing-watch.ts';
import { isKept, isManaged, isReportedNode, isSameReport, touchMark, writeList } from './node-mark.ts';
import { KEPT_OTHERWISE, unreadNode, unreported } from './unreported.ts';

export interface InUseReportParts {
  readonly transport: ApiTransport;
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  readonly node: NodeObject;
  readonly nodeName: string;
  /** As the server names us among the writers of an object. */
  readonly writer: string;
  /** What stands here or is being set up, by unique names. Asked when the list is put together. */
  readonly standing: () => ReadonlySet<string>;
  /** The server has acknowledged the list, or something of that is worth another try. */
  readonly onSettled: () => void;
}

export interface InUseReport {
  /** Nothing is written before. */
  begin(): void;
  stop(): void;
  /** Something may stand or be gone: the list is looked at soon. */
  look(): void;
  /**
   * What was found is in `standing` now. `all`: what else the server listed at the start is not here. `places`: it may
   * be, and a Node that no agent has written on is told what is known; what cannot be read may stay so for ever.
   */
  diskRead(read: DiskReading | Failure): void;
  /** Settles when the server has acknowledged that it is on the list, or a try has failed: `in-use-unreported`. */
  use(name: string): Promise<Result<void>>;
  /** Nothing of it is here: settles when the server has acknowledged that it is off the list, or could not. */
  release(name: string): Promise<Result<void>>;
}

const RETRY = { firstMs: 500, maxMs: 10_000 } as const;
/** The attach/detach controller gives up an attach in doubt when the Node changes next: it has to change. */
const UNCHANGED_MS_MAX = 270_000;
/** Bounded by the size of an object. */
const NAMES_MAX = 4_000;

export function createInUseReport(parts: InUseReportParts): InUseReport {
  return new NodeInUseReport(parts);
}

interface Waiter extends Waiting {
  readonly settle: (result: Result<void>) => void;
}

class NodeInUseReport implements InUseReport {
  readonly #parts: InUseReportParts;
  readonly #contest;
  readonly #names = new InUseNames();
  #diskRead: DiskReading | undefined;
  /** Why it was not. */
  #unread: Failure | undefined;
  #waiters: Waiter[] = [];
  /** Somebody waits for the list to be acknowledged. */
  #hasFailed = false;
  /** Why the write that is planned is not tried for long: the server has asked for that. */
  #putOff: Failure | undefined;
  #isBegun = false;
  #isStopped = false;
  #isWriting = false;
  readonly #lateWrites = new LateWrites();
  readonly #pace: InUsePace;
  readonly #retries = new Retries(RETRY);
  #cancelLook: Cancel | undefined;
  #cancelTouch: Cancel = () => {};
  #cancelNode: Cancel = () => {};

  constructor(parts: InUseReportParts) {
    this.#parts = parts;
    this.#contest = createContest(parts.clock);
    this.#pace = new InUsePace(parts.clock, this.#contest);
  }

  begin(): void {
    this.#isBegun = true;
    this.#names.begin(this.#parts.standing());
    let last: ApiObjectEnvelope | undefined;
    this.#cancelNode = this.#parts.node.onChange(() => {
      const now = this.#parts.node.current();
      if (now !== last) this.#planTouch();
      // It may have been listed as it was, or in vain, or something else of it has changed: that ends no back-off.
      if (isSameReport(now, last)) this.look();
      else this.#plan(0);
      last = now;
    });
    this.#planTouch();
    this.look();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelLook?.();
    this.#cancelTouch();
    this.#cancelNode();
    this.#fail(unreported('the agent stops'));
  }

  look(): void {
    // Who comes may be in more of a hurry than those for whom it was planned; a back-off stays.
    if (this.#cancelLook === undefined || !this.#hasFailed) this.#plan(0);
  }

  diskRead(read: DiskReading | Failure): void {
    if (this.#diskRead === 'all' || this.#diskRead === read) return;
    if (typeof read === 'string') this.#diskRead = read;
    else this.#unread = read;
    this.look();
  }

  use(name: string): Promise<Result<void>> {
    this.#names.use(name);
    const contested = this.#contest.failure();
    if (contested !== undefined) return Promise.resolve(fail(contested));
    return this.#wait(name, true);
  }

  release(name: string): Promise<Result<void>> {
    this.#names.leave(name);
    return this.#wait(name, false);
  }

  #wait(name: string, isUsed: boolean): Promise<Result<void>> {
    if (this.#isStopped) return Promise.resolve(fail(unreported('the agent stops')));
    // By then it is in what stands, and written: he comes again when that is acknowledged.
    if (this.#putOff !== undefined) return Promise.resolve(fail(this.#putOff));
    return new Promise((settle) => {
      this.#waiters.push({ name, isUsed, settle });
      this.look();
    });
  }

  #plan(leastMs: number): void {
    if (!this.#isBegun || this.#isStopped || this.#isWriting) return;
    this.#cancelLook?.();
    this.#putOff = undefined;
    this.#cancelLook = this.#parts.clock.timer(
      Math.max(leastMs, this.#pace.untilMs(this.#isAwaited())),
      () => {
        this.#cancelLook = undefined;
        this.#putOff = undefined;
        this.#reconcile();
      },
    );
  }

  /** A volume has to be on the list before it can be set up. */
  #isAwaited(): boolean {
    return this.#waiters.some(({ isUsed }) => isUsed);
  }

  /** `failure`: of the write before; then the next one waits for its back-off. */
  #reconcile(failure?: ApiFailure): void {
    const { node, nodeName } = this.#parts;
    const seen = node.current();
    if (this.#isStopped || this.#isWriting) return;
    if (seen === undefined)
      return this.#fail(unreported(`Node ${nodeName} is not there, or was not read yet`));
    this.#noteSeen(seen);
    const names = this.#names.wanted(seen, this.#parts.standing(), this.#waiters);
    const { length } = names.all;
    if (length > NAMES_MAX)
      return this.#fail(unreported(`there are ${length} names, more than ${NAMES_MAX} in one object`));
    if (this.#names.noteTaken(seen, names)) this.#contest.note(otherWriterOf(seen.value, this.#parts.writer));
    if (this.#isAsWanted(seen, names)) return this.#acknowledge(seen, names);
    // What stands and is in no record would be missing on the list, and the list would say that it may be detached.
    if (this.#diskRead === undefined && !isReportedNode(seen))
      return this.#fail(unreadNode(nodeName, this.#unread));
    if (failure !== undefined) return this.#retry(failure);
    if (this.#pace.untilMs(this.#isAwaited()) > 0) return this.#plan(0);
    void this.#write(seen, names);
  }

  #noteSeen(seen: ApiObjectEnvelope): void {
    this.#lateWrites.noteSeen(seen);
    // A write of an earlier life may come until this one has written, and nobody else is said to have.
    const isOfBefore =
      !this.#lateWrites.hasWritten(seen) && otherWriterOf(seen.value, this.#parts.writer) === undefined;
    this.#names.noteSeen(seen, isOfBefore, this.#diskRead === 'all');
  }

  #isAsWanted(seen: ApiObjectEnvelope, { all }: WantedNames): boolean {
    const isListed = isSameList(nodeVolumes(seen.value).inUse, all);
    return isManaged(seen) && !this.#mayBeUndone(seen) && isListed;
  }

  async #write(seen: ApiObjectEnvelope, names: WantedNames): Promise<void> {
    const { transport, node, nodeName } = this.#parts;
    this.#isWriting = true;
    const isAwaited = this.#isAwaited();
    this.#names.noteAsked(names);
    const write = { seen, inUse: names.all, mark: this.#lateWrites.nextMark(seen) };
    const answered = await writeList(transport, nodeStatusPath(nodeName), write);
    const read = answered.ok ? answered : await this.#readAfter(seen, answered.failure);
    this.#isWriting = false;
    this.#pace.noteEnded(isAwaited, answered.ok);
    if (this.#isStopped) return;
    const isAsWritten = answered.ok && isKept(answered.value, write);
    if (isAsWritten) {
      this.#names.noteAcknowledged(names);
      this.#lateWrites.noteWritten(answered.value, write.mark);
    }
    if (!read.ok) return this.#retry(read.failure);
    node.learn(read.value);
    if (isAsWritten) {
      this.#retries.reset();
      return this.#reconcile();
    }
    // It was asked after `seen` was told: the server's data was set back.
    if (compareResourceVersions(read.value.resourceVersion, seen.resourceVersion) < 0) node.doubt();
    if (answered.ok) return this.#reconcile(KEPT_OTHERWISE);
    const { code, effect } = answered.failure;
    const now = node.current() ?? seen;
    const isForAnother = code === 'conflict' ? now !== seen : effect === 'none' && !isSameReport(now, seen);
    this.#reconcile(isForAnother ? undefined : answered.failure);
  }

  /** Not what was asked for: whatever it did, the server's word on the Node decides what comes next. */
  async #readAfter(seen: ApiObjectEnvelope, failure: ApiFailure): ReturnType<typeof readOne> {
    if (failure.effect === 'unknown') this.#lateWrites.noteLost(seen);
    const isOther = failure.code === 'conflict' || failure.code === 'invalid';
    if (failure.effect !== 'unknown' && !isOther) return { ok: false, failure };
    return readOne(this.#parts.transport, nodePath(this.#parts.nodeName));
  }

  #mayBeUndone(seen: ApiObjectEnvelope): boolean {
    return this.#lateWrites.mayCome(seen, this.#isAwaited());
  }

  #acknowledge(seen: ApiObjectEnvelope, names: WantedNames): void {
    this.#names.noteAcknowledged(names);
    const listed = new Set(nodeVolumes(seen.value).inUse);
    for (const { name, isUsed, settle } of this.#waiters.splice(0)) {
      const isSettled = listed.has(name) === isUsed;
      if (isSettled && !isUsed) this.#names.left(name);
      settle(isSettled ? done : fail(unreported('it was asked for and given up at once')));
    }
    if (this.#hasFailed) this.#parts.onSettled();
    this.#hasFailed = false;
  }

  #retry(failure: ApiFailure): void {
    const waitMs = this.#retries.nextMs({ leastMs: failure.retryAfterMs });
    const told = unreported(failure.message);
    this.#fail(told);
    this.#plan(waitMs);
    if (waitMs > RETRY.maxMs) this.#putOff = told;
  }

  #fail(failure: Failure): void {
    this.#hasFailed = true;
    for (const { settle } of this.#waiters.splice(0)) settle(fail(failure));
  }

  #planTouch(): void {
    this.#cancelTouch();
    this.#cancelTouch = this.#parts.clock.timer(UNCHANGED_MS_MAX, () => void this.#touch());
  }

  async #touch(): Promise<void> {
    const { node, transport, nodeName } = this.#parts;
    const seen = node.current();
    this.#planTouch();
    if (seen === undefined || this.#isStopped || this.#isWriting) return;
    const mark = this.#lateWrites.nextMark(seen);
    const touch = { path: nodePath(nodeName), before: seen, annotations: touchMark(mark), change: {} };
    const touched = await patchObject(transport, touch);
    if (this.#isStopped) return;
    if (!touched.ok) {
      if (touched.failure.code === 'conflict' && node.current() === seen) node.doubt();
      return;
    }
    this.#lateWrites.noteWritten(touched.value, mark);
    node.learn(touched.value);
  }
}
