/** What the specification lets a driver know of one volume: which calls are open, what was asked and answered. */
import { doubtRung, type Ladder, REFUSALS, type Rung } from '../../agent/drive/oracle/oracle-history.ts';
import type { DriverNature } from './driver-nature.ts';
import { isQuestion, type RungCall, STATUS, type VolumeCallRecord } from './driver-call.ts';

export interface History extends Ladder<Rung> {
  /** What is attached, or may be, by the node id that each call named. */
  readonly attachedUnder: Map<string, Rung>;
  /** The node id of the attachment by which what stands was set up; undefined where its driver attached nothing. */
  standsUnder: string | undefined;
  /** When it was heard that nothing of it stands any more. */
  groundedMs: number;
  readonly open: Set<{ readonly call: VolumeCallRecord; readonly waiting: () => boolean }>;
  /** Something was mounted when Stage was answered OK: the caller could see it, and see it go. */
  stageMounted: boolean;
  /** When an Unstage that nobody waited for any more has ended. */
  lateUnstageMs: number;
  /** Answered to be published, and nobody asked to unpublish since: to publish again takes nothing away. */
  readonly answered: Set<string>;
  /** Targets where the driver has said, and was heard, that nothing is published any more; nothing was since. */
  readonly ended: Set<string>;
  /** Those where it has said so and nobody heard it, nor anything of the kind since. */
  readonly endedUnheard: Set<string>;
  /** What was told of it since it was wholly down. */
  readonly standing: Map<string, string>;
  readonly argumentsSeen: Map<string, string>;
  /** When each call was begun lately, by method and place. */
  readonly begunMs: Map<string, number[]>;
  /** When NodeExpandVolume was answered FAILED_PRECONDITION, if something of it has been published ever since. */
  inUseSinceMs: number | undefined;
  /** It was answered so at any time. */
  wasInUse: boolean;
  /** Sizes that were answered to be impossible, while anything of it stands. */
  readonly infeasible: Set<bigint>;
}

export function createHistory(): History {
  return {
    open: new Set(),
    attached: 'none',
    attachedUnder: new Map(),
    standsUnder: undefined,
    groundedMs: Number.NEGATIVE_INFINITY,
    staged: 'none',
    stageMounted: false,
    lateUnstageMs: Number.NEGATIVE_INFINITY,
    published: new Map(),
    answered: new Set(),
    ended: new Set(),
    endedUnheard: new Set(),
    standing: new Map(),
    argumentsSeen: new Map(),
    begunMs: new Map(),
    inUseSinceMs: undefined,
    wasInUse: false,
    infeasible: new Set(),
  };
}

export function isStanding({ staged, published }: History): boolean {
  return staged !== 'none' || published.size > 0;
}

/** Answers to NodeExpandVolume that mean: never to this size (KEP-1790). */
const INFEASIBLE: ReadonlySet<number> = new Set([STATUS.invalidArgument, STATUS.notFound, STATUS.outOfRange]);

/** From the moment a call arrives, its rung is unsure. Call what it returns with the answer that was heard. */
export function doubt(
  call: VolumeCallRecord,
  history: History,
  isMounted: (path: string) => boolean,
  { stages, controller }: DriverNature,
  nowMs: () => number,
): (status: number) => void {
  if (isQuestion(call)) return () => {};
  if (call.method === 'NodeExpandVolume')
    return (status) => noteExpansion(history, call.request.capacityRange?.requiredBytes ?? 0n, status, nowMs);
  const takeBackRung = doubtRung(call, history, () => 'unsure');
  const takeBackNode = doubtNode(call, history);
  const takeBack = (): void => {
    takeBackRung();
    takeBackNode();
  };
  if (call.method === 'NodePublishVolume') history.ended.delete(call.request.targetPath);
  if (call.method === 'NodeUnpublishVolume') history.answered.delete(call.request.targetPath);
  return (status) => {
    if (call.method === 'NodeUnpublishVolume' && (status === 0 || status === STATUS.notFound)) {
      history.ended.add(call.request.targetPath);
      history.endedUnheard.delete(call.request.targetPath);
    }
    // A new version of the driver may stage nothing; then the kernel decides (seed 109482679).
    const isUnasked = status === STATUS.unimplemented && call.method === 'NodeUnstageVolume' && !stages;
    // What is said to attach nothing has nothing attached.
    const isFree = controller === 'attaches-nothing' && call.method === 'ControllerUnpublishVolume';
    if (status === STATUS.unimplemented && isFree) believe(call, history, isMounted);
    else if (status === 0 || ((status === STATUS.notFound || isUnasked) && isGone(call, isMounted)))
      believe(call, history, isMounted);
    else if (REFUSALS.has(status)) takeBack();
    forgetRefusals(history);
  };
}

function doubtNode({ method, request }: RungCall, { attachedUnder }: History): () => void {
  if (method !== 'ControllerPublishVolume' && method !== 'ControllerUnpublishVolume') return () => {};
  const { nodeId } = request;
  const before = attachedUnder.get(nodeId);
  if (before !== undefined || method === 'ControllerPublishVolume') attachedUnder.set(nodeId, 'unsure');
  return () => {
    if (before === undefined) attachedUnder.delete(nodeId);
    else attachedUnder.set(nodeId, before);
  };
}

function noteExpansion(history: History, bytes: bigint, status: number, nowMs: () => number): void {
  if (status === STATUS.failedPrecondition) {
    history.wasInUse = true;
    // Where no pod has the volume it is about that moment only (seed 61845122).
    history.inUseSinceMs = history.published.size > 0 ? nowMs() : undefined;
  }
  if (INFEASIBLE.has(status)) history.infeasible.add(bytes);
}

/** "In use" ends with the last place, "impossible" with the last of the volume on this node. */
function forgetRefusals(history: History): void {
  if (history.published.size > 0) return;
  history.inUseSinceMs = undefined;
  if (history.staged === 'none') history.infeasible.clear();
}

/** NOT_FOUND ends a teardown when the kernel agrees (GR-05). */
function isGone({ method, request }: RungCall, isMounted: (path: string) => boolean): boolean {
  if (method === 'NodeUnpublishVolume') return !isMounted(request.targetPath);
  if (method === 'NodeUnstageVolume') return !isMounted(request.stagingTargetPath);
  return method === 'ControllerUnpublishVolume';
}

function believe(call: RungCall, history: History, isMounted: (path: string) => boolean): void {
  switch (call.method) {
    case 'ControllerPublishVolume':
      history.attached = 'yes';
      history.attachedUnder.set(call.request.nodeId, 'yes');
      return;
    case 'ControllerUnpublishVolume':
      history.attached = 'none';
      history.attachedUnder.delete(call.request.nodeId);
      return;
    case 'NodeStageVolume':
      history.staged = 'yes';
      history.stageMounted = isMounted(call.request.stagingTargetPath);
      return;
    case 'NodeUnstageVolume':
      history.staged = 'none';
      return;
    case 'NodePublishVolume':
      history.published.set(call.request.targetPath, 'yes');
      history.answered.add(call.request.targetPath);
      return;
    case 'NodeUnpublishVolume':
      history.published.delete(call.request.targetPath);
  }
}
