/**
 * The mirror of csi-sanity: judges the orchestrator by the calls a driver receives.
 *
 * Keeps what the specification lets a driver know: which call of a volume is open, what was asked, what was answered
 * and heard. A call that was not answered OK, or whose answer nobody heard, leaves its rung `unsure`.
 */
import type {
  ControllerPublishVolumeRequest,
  ControllerUnpublishVolumeRequest,
  NodePublishVolumeRequest,
  NodeStageVolumeRequest,
  NodeUnpublishVolumeRequest,
  NodeUnstageVolumeRequest,
} from '../../plugins/csi/generated/csi.ts';
import { CANARY } from './trace.ts';

export type Rung = 'none' | 'unsure' | 'yes';

export type VolumeCallRecord =
  | { readonly method: 'ControllerPublishVolume'; readonly request: ControllerPublishVolumeRequest }
  | { readonly method: 'ControllerUnpublishVolume'; readonly request: ControllerUnpublishVolumeRequest }
  | { readonly method: 'NodeStageVolume'; readonly request: NodeStageVolumeRequest }
  | { readonly method: 'NodeUnstageVolume'; readonly request: NodeUnstageVolumeRequest }
  | { readonly method: 'NodePublishVolume'; readonly request: NodePublishVolumeRequest }
  | { readonly method: 'NodeUnpublishVolume'; readonly request: NodeUnpublishVolumeRequest };

/** What the user ever wished of a volume: what calls may legally carry. */
export interface WishHistory {
  /** JSON of each version of the volume attributes. */
  readonly attributes: ReadonlySet<string>;
  /** JSON of each version of the secret of a call, or undefined when the volume never named one. */
  readonly stageSecrets: ReadonlySet<string> | undefined;
  readonly publishSecrets: ReadonlySet<string> | undefined;
}

export interface OracleParts {
  readonly nowMs: () => number;
  readonly violate: (invariant: string, text: string) => void;
  readonly wishHistory: (handle: string) => WishHistory | undefined;
  /** Is anything mounted there? */
  readonly isMounted: (path: string) => boolean;
  /** The agent's records were damaged from outside: it can only go by what the kernel shows. */
  readonly recordsDamaged: () => boolean;
  /** Somebody else unmounts things at any moment. */
  readonly mountsTaken: () => boolean;
  /** A living agent asks for this path to be taken down. */
  readonly onTeardown: (what: string, path: string) => void;
}

/** What the driver is today. */
export interface DriverNature {
  readonly stages: boolean;
  readonly attaches: boolean;
  readonly stageMounts: boolean;
  /** Publications of one volume in different places may overlap. */
  readonly parallel?: boolean;
}

interface History {
  readonly open: Set<{ readonly call: VolumeCallRecord; readonly waiting: () => boolean }>;
  attached: Rung;
  staged: Rung;
  /** Something was mounted when Stage was answered OK: the caller could see it, and see it go. */
  stageMounted: boolean;
  readonly published: Map<string, Rung>;
  readonly argumentsSeen: Map<string, string>;
  /** When each call was begun lately, by method and place. */
  readonly begunMs: Map<string, number[]>;
}

/** INV-30: with the shortest back-off, and every cause of a wake-up, a call is not repeated more often than this. */
const CALLS_PER_MINUTE_MAX = 90;
const MINUTE_MS = 60_000;

export class DriverOracle {
  readonly #parts: OracleParts;
  readonly #histories = new Map<string, History>();
  calls = 0;

  constructor(parts: OracleParts) {
    this.#parts = parts;
  }

  /** A call has arrived. Call what it returns with the status answered and whether the caller heard it. */
  begin(
    call: VolumeCallRecord,
    nature: DriverNature,
    waiting: () => boolean,
  ): (status: number, heard: boolean) => void {
    const history = this.#historyOf(call.request.volumeId);
    this.calls += 1;
    if (waiting()) this.#judgeTeardown(call);
    this.#judgePace(call, history);
    this.#judgeOverlap(call, history, nature);
    this.#judgeOrder(call, history, nature);
    this.#judgeArguments(call, history);
    const open = { call, waiting };
    history.open.add(open);
    const takeBack = doubt(call, history);
    return (status, heard) => {
      history.open.delete(open);
      if (!heard) return;
      if (status === 0 || this.#isGone(status, call)) believe(call, history, this.#parts.isMounted);
      else if (REFUSALS.has(status)) takeBack();
    };
  }

  /** The node lost power: nothing is mounted, no call is open. An attachment is the controller's and stays. */
  forgetNode(): void {
    for (const history of this.#histories.values()) {
      history.open.clear();
      history.staged = 'none';
      history.published.clear();
    }
  }

  /** Another version of the driver: what it is told may follow from what it can do. */
  forgetArguments(): void {
    for (const history of this.#histories.values()) history.argumentsSeen.clear();
  }

  /** For the end: what a driver must believe is still in use. */
  rungsOf(handle: string): Pick<History, 'attached' | 'staged' | 'published'> {
    return this.#historyOf(handle);
  }

  handles(): IterableIterator<string> {
    return this.#histories.keys();
  }

  #historyOf(handle: string): History {
    const known = this.#histories.get(handle);
    if (known !== undefined) return known;
    const fresh: History = {
      open: new Set(),
      attached: 'none',
      staged: 'none',
      stageMounted: false,
      published: new Map(),
      argumentsSeen: new Map(),
      begunMs: new Map(),
    };
    this.#histories.set(handle, fresh);
    return fresh;
  }

  /** NOT_FOUND ends a teardown when the kernel agrees (GR-05). */
  #isGone(status: number, { method, request }: VolumeCallRecord): boolean {
    if (status !== NOT_FOUND) return false;
    if (method === 'NodeUnpublishVolume') return !this.#parts.isMounted(request.targetPath);
    if (method === 'NodeUnstageVolume') return !this.#parts.isMounted(request.stagingTargetPath);
    return method === 'ControllerUnpublishVolume';
  }

  #judgeTeardown({ method, request }: VolumeCallRecord): void {
    const { onTeardown } = this.#parts;
    if (method === 'NodeUnpublishVolume') onTeardown(`${method} ${request.volumeId}`, request.targetPath);
    if (method === 'NodeUnstageVolume')
      onTeardown(`${method} ${request.volumeId}`, request.stagingTargetPath);
  }

  #judgePace({ method, request }: VolumeCallRecord, history: History): void {
    const nowMs = this.#parts.nowMs();
    const key = `${method} ${'targetPath' in request ? request.targetPath : request.volumeId}`;
    const times = [...(history.begunMs.get(key) ?? []), nowMs].filter((atMs) => atMs > nowMs - MINUTE_MS);
    history.begunMs.set(key, times);
    if (times.length > CALLS_PER_MINUTE_MAX)
      this.#parts.violate('INV-30', `${key}: ${times.length} calls in a minute`);
  }

  /** INV-6 with decision 17: one call in flight per volume. Nobody waits any more for a call of a dead life. */
  #judgeOverlap(call: VolumeCallRecord, history: History, nature: DriverNature): void {
    for (const open of history.open) {
      if (!open.waiting()) history.open.delete(open);
      else if (nature.parallel !== true || !mayOverlap(call, open.call)) {
        const { method, request } = call;
        this.#parts.violate('INV-6', `${method} while ${open.call.method} of ${request.volumeId} is open`);
      }
    }
  }

  #judgeOrder(call: VolumeCallRecord, history: History, nature: DriverNature): void {
    const { violate, isMounted, mountsTaken } = this.#parts;
    const { volumeId } = call.request;
    switch (call.method) {
      case 'NodeStageVolume':
        if (nature.attaches && history.attached === 'none')
          violate('order', `${volumeId} staged before it is attached`);
        return;
      case 'NodePublishVolume':
        if (nature.stages && history.staged !== 'yes') {
          violate('INV-2', `${volumeId} published while its stage is ${history.staged}`);
        }
        if (
          nature.stages &&
          history.stageMounted &&
          !mountsTaken() &&
          !isMounted(call.request.stagingTargetPath)
        ) {
          violate('INV-2', `${volumeId} published with nothing mounted at ${call.request.stagingTargetPath}`);
        }
        return;
      case 'NodeUnstageVolume':
        for (const [target, rung] of history.published) {
          if (this.#parts.recordsDamaged() && !isMounted(target)) continue;
          violate('INV-1', `${volumeId} unstaged while its publication at ${target} is ${rung}`);
        }
        return;
      case 'ControllerUnpublishVolume':
        if (!this.#parts.recordsDamaged() && (history.staged !== 'none' || history.published.size > 0)) {
          violate('order', `${volumeId} detached while staged ${history.staged} or published`);
        }
        return;
      case 'ControllerPublishVolume':
      case 'NodeUnpublishVolume':
    }
  }

  #judgeArguments(call: VolumeCallRecord, history: History): void {
    const { method, request } = call;
    const wish = this.#parts.wishHistory(request.volumeId);
    const { secrets = {}, ...plain } = request as NodePublishVolumeRequest;
    const text = JSON.stringify(plain);
    if (text.includes(CANARY))
      this.#parts.violate('INV-25', `${method} of ${request.volumeId} carries a secret in the open`);
    if (wish === undefined) return;
    if (method === 'NodeStageVolume') this.#judgeSecrets(method, secrets, wish.stageSecrets);
    if (method === 'NodePublishVolume') this.#judgeSecrets(method, secrets, wish.publishSecrets);
    if (method !== 'NodeStageVolume' && method !== 'NodePublishVolume') return;
    const context = JSON.stringify(withoutPodInfo(request.volumeContext));
    if (!wish.attributes.has(context)) {
      this.#parts.violate(
        'INV-40',
        `${method} of ${request.volumeId} with attributes nobody wished: ${context}`,
      );
    }
    if (
      request.volumeCapability?.accessMode === undefined ||
      request.volumeCapability.accessType === undefined
    ) {
      this.#parts.violate('order', `${method} of ${request.volumeId} without a capability`);
    }
    if (wish.attributes.size > 1) return;
    const { publishContext: _, ...stable } = plain as Partial<NodePublishVolumeRequest>;
    const key = `${method} ${(request as NodePublishVolumeRequest).targetPath ?? request.stagingTargetPath}`;
    const now = JSON.stringify(stable);
    const before = history.argumentsSeen.get(key);
    history.argumentsSeen.set(key, now);
    if (before !== undefined && before !== now) {
      this.#parts.violate(
        'INV-40',
        `${key}: arguments changed without a change of the wish: ${before} -> ${now}`,
      );
    }
  }

  #judgeSecrets(
    method: string,
    secrets: Readonly<Record<string, string>>,
    wished: ReadonlySet<string> | undefined,
  ): void {
    const carried = JSON.stringify(secrets);
    if (wished === undefined ? carried !== '{}' : !wished.has(carried)) {
      this.#parts.violate(
        'secrets',
        `${method} carries ${carried.length} bytes of secrets that the wish does not name`,
      );
    }
  }
}

function mayOverlap(a: VolumeCallRecord, b: VolumeCallRecord): boolean {
  return (
    'targetPath' in a.request && 'targetPath' in b.request && a.request.targetPath !== b.request.targetPath
  );
}

const NOT_FOUND = 5;

/** Answers that promise that nothing has happened: the rung is where it was. */
const REFUSALS: ReadonlySet<number> = new Set([3, 5, 7, 9, 11, 12, 16]);

/** From the moment a call arrives, its rung is unsure; the answer takes that back for a call that was refused. */
function doubt(call: VolumeCallRecord, history: History): () => void {
  const { attached, staged, published } = history;
  switch (call.method) {
    case 'ControllerPublishVolume':
    case 'ControllerUnpublishVolume':
      history.attached = 'unsure';
      return () => {
        history.attached = attached;
      };
    case 'NodeStageVolume':
    case 'NodeUnstageVolume':
      history.staged = 'unsure';
      return () => {
        history.staged = staged;
      };
    case 'NodePublishVolume':
    case 'NodeUnpublishVolume': {
      const { targetPath } = call.request;
      const before = published.get(targetPath);
      if (before !== undefined || call.method === 'NodePublishVolume') published.set(targetPath, 'unsure');
      return () => {
        if (before === undefined) published.delete(targetPath);
        else published.set(targetPath, before);
      };
    }
  }
}

function believe(call: VolumeCallRecord, history: History, isMounted: (path: string) => boolean): void {
  switch (call.method) {
    case 'ControllerPublishVolume':
      history.attached = 'yes';
      return;
    case 'ControllerUnpublishVolume':
      history.attached = 'none';
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
      return;
    case 'NodeUnpublishVolume':
      history.published.delete(call.request.targetPath);
  }
}

const POD_INFO_PREFIX = 'csi.storage.k8s.io/';

function withoutPodInfo(context: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(context).filter(([key]) => !key.startsWith(POD_INFO_PREFIX)));
}
