/**
 * The mirror of csi-sanity: judges the orchestrator by the calls a driver receives.
 *
 * Keeps what the specification lets a driver know (oracle-history.ts). A call that was not answered OK, or whose answer
 * nobody heard, leaves its rung `unsure`.
 */
import type { AbsolutePath } from '../../mount/host.ts';
import type { RefusedExpansion } from '../../reconciler/model/actual-state.ts';
import { isQuestion, placeOf, type RungCall, type VolumeCallRecord } from './driver-call.ts';
import { attachesNow, type DriverNature, hasController } from './driver-nature.ts';
import { ON_ITS_WAY_MS } from './late-plan.ts';
import { judgeArguments } from './oracle-arguments.ts';
import { createHistory, doubt, type History, isStanding } from './oracle-history.ts';
import type { WishHistory } from './wish-history.ts';

export interface OracleParts {
  readonly nowMs: () => number;
  readonly violate: (invariant: string, text: string) => void;
  readonly wishHistory: (handle: string) => WishHistory | undefined;
  /** Is it a mount point? What ends a teardown that was answered NOT_FOUND: a node that was left is nobody's. */
  readonly isMountPoint: (path: string) => boolean;
  /** Somebody unmounted it when the call may have been on its way. */
  readonly isJustTaken: (path: string) => boolean;
  /** Is anything there: a mount, or a device? */
  readonly isMounted: (path: string) => boolean;
  /** The agent's records were damaged from outside: it can only go by what the kernel shows. */
  readonly recordsDamaged: () => boolean;
  /** Somebody else unmounts things at any moment. */
  readonly mountsTaken: () => boolean;
  /** A living agent asks for this path to be taken down. */
  readonly onTeardown: (what: string, path: string, handle: string) => void;
  /** A living agent asks for it to be staged or published; was it wholly down before? */
  readonly onClimb: (what: string, handle: string, wasDown: boolean) => void;
  /** Its driver wishes to be asked to publish again, now and then. */
  readonly isRepublished: (handle: string) => boolean;
  /** Has somebody else laid a file system over the path? */
  readonly isUnderStranger: (path: AbsolutePath) => boolean;
  /** It may have been given to another node, and something of it is still in use on this one. */
  readonly isDirty: (handle: string) => boolean;
  /** The cluster attaches, and nobody else. */
  readonly isInCluster?: boolean;
  /** The agent believes that a pod was told of a place of it. */
  readonly isThoughtHad: (handle: string) => boolean;
  /** Which life of the agent asks: a new one cannot know what the old one was not answered. */
  readonly agentLife: () => number;
}

/** A question that a driver has in hand, whether or not anybody waits for it. */
interface HeldQuestion {
  readonly method: string;
  readonly life: number;
  readonly askedMs: number;
  readonly isHeld: () => boolean;
}

/** A driver may never end what it was asked: then it is asked again, ever more seldom (agent/node/owed-answers.ts). */
const REASK_MS = 300_000;
/** A driver is called so long, at most, after the look at what it publishes from. */
const LOOK_MS = 1_000;

/** INV-30: with the shortest back-off, and every cause of a wake-up, a call is not repeated more often than this. */
const CALLS_PER_MINUTE_MAX = 90;
const MINUTE_MS = 60_000;

export class DriverOracle {
  readonly #parts: OracleParts;
  readonly #histories = new Map<string, History>();
  readonly #questions = new Map<string, Set<HeldQuestion>>();
  /** What any driver has called this node. */
  readonly #nodeIds = new Set<string>();
  /** Calls that may change something. */
  calls = 0;
  questions = 0;
  expansions = 0;
  /** Calls to publish a volume that was published already, of drivers that may ask for it. */
  republished = 0;

  constructor(parts: OracleParts) {
    this.#parts = parts;
  }

  /** A call has arrived. Call what it returns with the status answered and whether the caller heard it. */
  begin(
    call: VolumeCallRecord,
    nature: DriverNature,
    waiting: () => boolean,
    isHeld: () => boolean = () => true,
  ): (status: number, heard: boolean) => void {
    const history = this.#historyOf(call.request.volumeId);
    const wish = this.#parts.wishHistory(call.request.volumeId);
    if (isQuestion(call)) this.questions += 1;
    else this.calls += 1;
    if (call.method === 'NodeExpandVolume') this.expansions += 1;
    // What a life of its driver set up that attaches nothing is attached when it is published again (seed 1978406958).
    const isLateAttach = call.method === 'ControllerPublishVolume' && history.published.size > 0;
    const isAgain =
      isLateAttach || (call.method === 'NodePublishVolume' && history.published.has(placeOf(call)));
    if (isAgain && this.#parts.isRepublished(call.request.volumeId)) this.republished += 1;
    if (waiting()) this.#judgeTeardown(call);
    if (waiting() && (call.method === 'NodeStageVolume' || call.method === 'NodePublishVolume')) {
      const wasDown = history.staged === 'none' && history.published.size === 0;
      this.#parts.onClimb(call.method, call.request.volumeId, wasDown);
    }
    if (waiting() && call.method !== 'NodeGetVolumeHealth') this.#judgePlaces(call);
    this.#judgePace(call, history);
    this.#judgeOverlap(call, history, nature);
    if (!isQuestion(call)) this.#judgeQuarantine(call);
    if (wish?.ephemeral === true) this.#judgeEphemeral(call);
    this.#noteStand(call, history, nature, wish);
    if (waiting()) this.#judgeNode(call, history, nature, wish);
    if (call.method === 'NodeExpandVolume') this.#judgeExpansion(call, history, nature, waiting);
    else if (!isQuestion(call)) this.#judgeOrder(call, history, nature, wish);
    judgeArguments(call, history, nature, wish, this.#parts);
    const open = { call, waiting };
    history.open.add(open);
    const learn = doubt(call, history, this.#parts.isMountPoint, nature, this.#parts.nowMs);
    const answered = isQuestion(call) ? this.#holdQuestion(call, isHeld) : () => {};
    return (status, heard) => {
      answered();
      history.open.delete(open);
      if (heard) {
        const stood = isStanding(history);
        learn(status);
        if (stood && !isStanding(history)) history.groundedMs = this.#parts.nowMs();
      } else if (call.method === 'NodeUnstageVolume') history.lateUnstageMs = this.#parts.nowMs();
      else if (call.method === 'NodeUnpublishVolume' && status === 0)
        history.endedUnheard.add(call.request.targetPath);
    };
  }

  /** The node lost power: nothing is mounted, no call is open. An attachment is the controller's and stays. */
  forgetNode(): void {
    for (const history of this.#histories.values()) {
      history.open.clear();
      history.staged = 'none';
      history.published.clear();
      history.answered.clear();
      history.ended.clear();
      history.inUseSinceMs = undefined;
    }
  }

  /** A driver calls this node so from now on. */
  noteNodeId(nodeId: string): void {
    this.#nodeIds.add(nodeId);
  }

  /** The agent may not have noted yet what was heard, or an earlier life of it never did. */
  #mayBeThoughtToStand(handle: string, { groundedMs }: History): boolean {
    return this.#parts.nowMs() - groundedMs <= ON_ITS_WAY_MS || this.#parts.isThoughtHad(handle);
  }

  /** Another version of the driver: what it is told may follow from what it can do. */
  forgetArguments(): void {
    for (const history of this.#histories.values()) history.argumentsSeen.clear();
  }

  /**
   * The agent died: of what was refused only that is known which its record says, and that is the last refusal. Where a
   * file was lost since, what is left may say it of other pods (seed 31717519).
   */
  forgetUnrecorded(
    recordedOf: (handle: string) => RefusedExpansion | undefined,
    isForgotten: (handle: string, sinceMs: number) => boolean,
  ): void {
    for (const [handle, history] of this.#histories) {
      const { inUseSinceMs } = history;
      if (inUseSinceMs === undefined && history.infeasible.size === 0) continue;
      const recorded = recordedOf(handle);
      const isOfOthers = inUseSinceMs !== undefined && isForgotten(handle, inUseSinceMs);
      if (recorded?.because !== 'in-use' || isOfOthers) history.inUseSinceMs = undefined;
      const known = recorded?.because === 'infeasible' ? BigInt(recorded.toBytes) : undefined;
      for (const bytes of history.infeasible) {
        if (bytes !== known) history.infeasible.delete(bytes);
      }
    }
  }

  /** Has the driver ever said that the volume cannot be grown: at all, or to this size? */
  wasRefused(handle: string, bytes: bigint): boolean {
    const { wasInUse, infeasible } = this.#historyOf(handle);
    return wasInUse || infeasible.has(bytes);
  }

  /**
   * Has its driver ended the inline volume that was here? What is left is nobody's: whatever the driver says later, it
   * shows data that was deleted, and has to go before the place is set up again, wanted or not.
   */
  hasEnded(handle: string, target: string): boolean {
    return this.#parts.wishHistory(handle)?.ephemeral === true && this.#historyOf(handle).ended.has(target);
  }

  /**
   * Has its driver ended the inline volume that was here, and nobody heard it? One that left its mount, and lies of the
   * next publish as well, has what is there for what was asked for, and no one can tell (D-51; seed 872904961).
   */
  mayHaveEnded(handle: string, target: string): boolean {
    const isInline = this.#parts.wishHistory(handle)?.ephemeral === true;
    return isInline && this.#historyOf(handle).endedUnheard.has(target);
  }

  #historyOf(handle: string): History {
    const known = this.#histories.get(handle);
    if (known !== undefined) return known;
    const fresh = createHistory();
    this.#histories.set(handle, fresh);
    return fresh;
  }

  /** RE-03: a driver has no two questions about one volume, though one was given up, for as long as REASK_MS. */
  #holdQuestion({ method, request }: VolumeCallRecord, isHeld: () => boolean): () => void {
    const held = this.#questions.get(request.volumeId) ?? new Set();
    this.#questions.set(request.volumeId, held);
    const [life, nowMs] = [this.#parts.agentLife(), this.#parts.nowMs()];
    for (const other of held) {
      const isOld = nowMs - other.askedMs >= REASK_MS;
      if (!other.isHeld() || other.life !== life || isOld) held.delete(other);
      else
        this.#parts.violate(
          'RE-03',
          `${method} of ${request.volumeId} while ${other.method} is not answered`,
        );
    }
    const question: HeldQuestion = { method, life, askedMs: nowMs, isHeld };
    held.add(question);
    return () => held.delete(question);
  }

  #judgeTeardown({ method, request }: VolumeCallRecord): void {
    const { onTeardown } = this.#parts;
    const what = `${method} ${request.volumeId}`;
    if (method === 'NodeUnpublishVolume') onTeardown(what, request.targetPath, request.volumeId);
    if (method === 'NodeUnstageVolume') onTeardown(what, request.stagingTargetPath, request.volumeId);
  }

  /**
   * Nothing is published from or to a place that shows another file system than ours, none is taken away there, and no
   * numbers are asked of it.
   */
  #judgePlaces({ method, request }: VolumeCallRecord): void {
    const staging = 'stagingTargetPath' in request ? [request.stagingTargetPath] : [];
    const target = 'targetPath' in request ? [request.targetPath] : [];
    const measured = 'volumePath' in request ? [request.volumePath] : [];
    // Numbers are of one place; the staging path is only named there.
    const places = method === 'NodeGetVolumeStats' ? measured : [...staging, ...target, ...measured];
    for (const path of places)
      if (path !== '' && this.#parts.isUnderStranger(path as AbsolutePath))
        this.#parts.violate(
          'foreign',
          `${method} of ${request.volumeId} at ${path}, over which another mount lies`,
        );
  }

  #judgePace({ method, request }: VolumeCallRecord, history: History): void {
    const nowMs = this.#parts.nowMs();
    const key = `${method} ${'targetPath' in request ? request.targetPath : request.volumeId}`;
    const times = [...(history.begunMs.get(key) ?? []), nowMs].filter((atMs) => atMs > nowMs - MINUTE_MS);
    history.begunMs.set(key, times);
    if (times.length > CALLS_PER_MINUTE_MAX)
      this.#parts.violate('INV-30', `${key}: ${times.length} calls in a minute`);
  }

  /** INV-6, A-030, A-076: one call in flight per volume. Nobody waits any more for a call of a dead life. */
  #judgeOverlap(call: VolumeCallRecord, history: History, nature: DriverNature): void {
    for (const open of history.open) {
      if (!open.waiting()) history.open.delete(open);
      else if (!nature.parallel || !mayOverlap(call, open.call)) {
        const { method, request } = call;
        this.#parts.violate('INV-6', `${method} while ${open.call.method} of ${request.volumeId} is open`);
      }
    }
  }

  /** B-3: nothing is set up while another node may have the volume and this one has not let go of it. */
  #judgeQuarantine({ method, request }: VolumeCallRecord): void {
    const climbs =
      method === 'ControllerPublishVolume' || method === 'NodeStageVolume' || method === 'NodePublishVolume';
    if ((climbs || method === 'NodeExpandVolume') && this.#parts.isDirty(request.volumeId))
      this.#parts.violate('B-3', `${method} of ${request.volumeId}, which is in quarantine and not clean`);
  }

  #judgeEphemeral({ method, request }: VolumeCallRecord): void {
    if (method === 'NodePublishVolume' || method === 'NodeUnpublishVolume') return;
    if (method === 'NodeGetVolumeStats' || method === 'NodeGetVolumeHealth') return;
    this.#parts.violate('order', `${method} of the inline volume ${request.volumeId}`);
  }

  #judgeExpansion(
    { request }: Extract<VolumeCallRecord, { method: 'NodeExpandVolume' }>,
    history: History,
    nature: DriverNature,
    waiting: () => boolean,
  ): void {
    const { violate } = this.#parts;
    const { volumeId } = request;
    const bytes = request.capacityRange?.requiredBytes ?? 0n;
    if (nature.expands === 'no') violate('A-069', `${volumeId} is grown by a driver that cannot`);
    const isThere = nature.stages ? history.staged === 'yes' : history.answered.size > 0;
    if (!isThere && waiting()) violate('A-069', `${volumeId} is grown before it is set up`);
    // A driver that looks at the path would grow the file system of the node.
    const { volumePath, stagingTargetPath, volumeCapability } = request;
    const isFiles = volumeCapability?.accessType?.$case !== 'block' && volumePath !== stagingTargetPath;
    const isMissing = !this.#parts.isMountPoint(volumePath) && !this.#parts.isJustTaken(volumePath);
    if (isFiles && waiting() && isMissing)
      violate('A-069', `${volumeId} is grown at ${volumePath}, where nothing is mounted`);
    if (history.inUseSinceMs !== undefined && history.published.size > 0)
      violate('A-071', `${volumeId} is in use, the driver has said, and it is asked to grow it again`);
    if (history.infeasible.has(bytes))
      violate('A-071', `${volumeId} cannot have ${bytes} bytes, the driver has said, and is asked again`);
  }

  #judgeOrder(call: RungCall, history: History, nature: DriverNature, wish: WishHistory | undefined): void {
    const { violate, isMounted, recordsDamaged, isInCluster = false } = this.#parts;
    const { volumeId } = call.request;
    switch (call.method) {
      case 'NodeStageVolume':
        if (attachesNow(nature) && !isInCluster && history.attached === 'none')
          violate('order', `${volumeId} staged before it is attached`);
        return;
      case 'NodePublishVolume':
        if (nature.stages && wish?.ephemeral !== true)
          this.#judgeStaged(volumeId, call.request.stagingTargetPath, history);
        if (wish?.accessModes.has('ReadWriteOncePod')) this.#judgeOnePod(call, history);
        return;
      case 'NodeUnstageVolume':
        for (const [target, rung] of history.published) {
          if (recordsDamaged() && !isMounted(target)) continue;
          violate('INV-1', `${volumeId} unstaged while its publication at ${target} is ${rung}`);
        }
        return;
      case 'ControllerUnpublishVolume':
        if (isInCluster) violate('attach', `${volumeId} is detached by the node`);
        if (!recordsDamaged() && (history.staged !== 'none' || history.published.size > 0))
          violate('order', `${volumeId} detached while staged ${history.staged} or published`);
        return;
      case 'ControllerPublishVolume':
        if (isInCluster) violate('attach', `${volumeId} is attached by the node`);
        return;
      case 'NodeUnpublishVolume':
    }
  }

  /** Under which node id it is set up; also by what a life has asked for that is over by now (seed 949957889). */
  #noteStand(
    { method, request }: VolumeCallRecord,
    history: History,
    nature: DriverNature,
    wish: WishHistory | undefined,
  ): void {
    if (this.#parts.isInCluster === true || wish?.ephemeral === true) return;
    if (method !== 'NodeStageVolume' && method !== 'NodePublishVolume') return;
    const { attachedUnder, standsUnder } = history;
    const [first] = attachedUnder.keys();
    // Written down as begun, and killed before its driver was asked: nobody knows that nothing stands.
    const isKept = attachedUnder.has(standsUnder ?? first ?? '');
    const isThought = isKept && this.#mayBeThoughtToStand(request.volumeId, history);
    if (isStanding(history) || isThought) return;
    history.standsUnder = attachesNow(nature) ? nature.nodeId : first;
  }

  /**
   * DR-17, A-085, A-053: one node id for all that is attached, until it is detached: the one that its driver had when
   * it was, whatever it says by now. What is set up anew is set up under the one that it has now.
   */
  #judgeNode(
    call: VolumeCallRecord,
    history: History,
    nature: DriverNature,
    wish: WishHistory | undefined,
  ): void {
    const { violate, recordsDamaged, isInCluster = false } = this.#parts;
    const { method, request } = call;
    const { attachedUnder } = history;
    if (isInCluster || wish?.ephemeral === true) return;
    const ids = [...attachedUnder.keys()];
    if (method === 'ControllerPublishVolume' || method === 'ControllerUnpublishVolume') {
      const { nodeId } = request;
      if (!hasController(nature)) violate('A-008', `${method} of a driver without a controller service`);
      if (method === 'ControllerPublishVolume' && !attachesNow(nature))
        violate('A-008', `${method} of a driver that attaches nothing`);
      // The first call may have got lost, and its node id counts from then on.
      const right = ids.length > 0 ? ids : [...this.#nodeIds];
      if (!right.includes(nodeId) && !recordsDamaged())
        violate('DR-17', `${method} of ${request.volumeId} under ${nodeId}, not ${right.join(' or ')}`);
    }
    if (method !== 'NodeStageVolume' && method !== 'NodePublishVolume') return;
    if (recordsDamaged() || !attachesNow(nature)) return;
    const under = history.standsUnder ?? ids[0];
    if (under === undefined || attachedUnder.has(under)) return;
    violate(
      'DR-17',
      `${method} of ${request.volumeId}, which is not attached under ${under}, but ${ids.join()}`,
    );
  }

  #judgeStaged(volumeId: string, staging: string, history: History): void {
    const { violate, isMounted, mountsTaken, nowMs } = this.#parts;
    if (history.staged !== 'yes')
      violate('INV-2', `${volumeId} published while its stage is ${history.staged}`);
    // What was given up long ago takes the stage away between the look at it and the call.
    const isTaken = mountsTaken() || nowMs() - history.lateUnstageMs <= LOOK_MS;
    if (history.stageMounted && !isTaken && !isMounted(staging))
      violate('INV-2', `${volumeId} published with nothing mounted at ${staging}`);
  }

  /** RC-18: ReadWriteOncePod is one pod at a time, and one that may still have it counts. */
  #judgeOnePod(call: VolumeCallRecord, history: History): void {
    const { violate, recordsDamaged, isMounted } = this.#parts;
    for (const [target, rung] of history.published) {
      if (target === placeOf(call) || (recordsDamaged() && !isMounted(target))) continue;
      violate('RC-18', `${placeOf(call)} is set up for one pod alone, and ${target} is ${rung}`);
    }
  }
}

function mayOverlap(a: VolumeCallRecord, b: VolumeCallRecord): boolean {
  return (
    'targetPath' in a.request && 'targetPath' in b.request && a.request.targetPath !== b.request.targetPath
  );
}
