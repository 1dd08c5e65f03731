/** What a node writes on the claims of its pods: each is written by one hand, from the newest version that is known. */
import type { ApiFailure, ApiResult } from '../../kubernetes/api/api-failure.ts';
import type { ApiObjectEnvelope } from '../../kubernetes/api/api-object.ts';
import type { ApiTransport } from '../../kubernetes/api/api-transport.ts';
import { claimPath, claimStatusPath } from '../../kubernetes/api/resource-path.ts';
import { compareResourceVersions } from '../../kubernetes/api/resource-version.ts';
import { patchObject, readOne } from '../../kubernetes/api/write-object.ts';
import { mappingIn } from '../../kubernetes/fields/plain-value.ts';
import { CLAIM_PROTECTION, isHeldBack } from '../../kubernetes/fields/protection.ts';
import { type NamedReference, objectKey, type ObjectKey } from '../../kubernetes/objects/objects.ts';
import type { Cancel, Clock } from '../../mount/host.ts';
import type { Log } from '../../mount/process/log.ts';
import type { PodUid } from '../../plugins/volume.ts';
import { conditionsIn, isMarkedBy, withMark, withoutMark } from './claim-mark.ts';

export interface ClaimDeskParts {
  readonly transport: ApiTransport;
  readonly clock: Pick<Clock, 'nowMs' | 'wallMs' | 'timer'>;
  readonly nodeName: string;
  readonly log: Pick<Log, 'warn'>;
}

/** A claim as it was read last. */
export interface SeenClaim {
  readonly reference: NamedReference;
  readonly object: ApiObjectEnvelope;
}

/** What stands on this machine. */
export interface StandingVolumes {
  /** The names of PersistentVolumes of which pods have a place here. */
  readonly names: () => ReadonlySet<string>;
  onChange(listener: () => void): Cancel;
}

/** Who is asked before a pod gets the volume of a claim that is being deleted. */
export interface ClaimProtection {
  /**
   * Why it is not sure yet that the claim stays for as long as the pod is there; undefined when it is, and for one that
   * is not being deleted. Asking is the reason to make sure of it, and `onAnswer` tells of the end.
   */
  doubt(claim: SeenClaim, pod: PodUid): string | undefined;
  /**
   * All claims that pods of this node lead to. Of those that only ended pods lead to no more is written than that
   * nothing of them is here, and of the others nothing: with the pod goes the right to write.
   */
  keep(led: ReadonlySet<ObjectKey>, ended: ReadonlySet<ObjectKey>): void;
  /** Each claim that was written or read here, as it is now; undefined: it is not known, and one may look again. */
  onAnswer(listener: (reference: NamedReference, object: ApiObjectEnvelope | undefined) => void): Cancel;
}

export interface ClaimDesk extends ClaimProtection {
  /** From now on what stands is known, and marks of what does not are taken away. */
  begin(standing: StandingVolumes): void;
  stop(): void;
}

const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 60_000;
const MAKING_SURE = 'it is being deleted, and it is being made sure that it stays until then';

/**
 * Guarantees: a pod is told that the claim stays only after a write to the claim that was begun after the pod was seen,
 * and whose answer still has the protection. Because: the controller that takes it away does so with the version that
 * it has read before it looked for pods, so what it decided before our write fails, and what it decides after it counts
 * our pod. Each write is bound to the version that it was made for.
 */
export function createClaimDesk(parts: ClaimDeskParts): ClaimDesk {
  return new DeskOfClaims(parts);
}

interface Entry {
  readonly reference: NamedReference;
  readonly uid: string;
  object: ApiObjectEnvelope;
  /** Pods that wait, and those that the claim was written for. */
  readonly waiting: Set<PodUid>;
  readonly sure: Set<PodUid>;
  refusal: string | undefined;
  isWriting: boolean;
  retryMs: number;
  cancelRetry: Cancel | undefined;
}

class DeskOfClaims implements ClaimDesk {
  readonly #parts: ClaimDeskParts;
  readonly #entries = new Map<ObjectKey, Entry>();
  readonly #listeners = new Set<Parameters<ClaimProtection['onAnswer']>[0]>();
  #led: ReadonlySet<ObjectKey> = new Set();
  #ended: ReadonlySet<ObjectKey> = new Set();
  #standing: StandingVolumes | undefined;
  #cancelStanding: Cancel = () => {};
  #isStopped = false;

  constructor(parts: ClaimDeskParts) {
    this.#parts = parts;
  }

  begin(standing: StandingVolumes): void {
    this.#standing = standing;
    this.#cancelStanding = standing.onChange(() => this.#look());
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelStanding();
    for (const { cancelRetry } of this.#entries.values()) cancelRetry?.();
    this.#entries.clear();
    this.#listeners.clear();
  }

  onAnswer(listener: Parameters<ClaimProtection['onAnswer']>[0]): Cancel {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  doubt(claim: SeenClaim, pod: PodUid): string | undefined {
    const entry = this.#open(claim);
    if (entry === undefined || !isHeldBack(entry.object.value, CLAIM_PROTECTION) || entry.sure.has(pod))
      return undefined;
    entry.waiting.add(pod);
    void this.#write(entry);
    return entry.refusal ?? MAKING_SURE;
  }

  keep(led: ReadonlySet<ObjectKey>, ended: ReadonlySet<ObjectKey>): void {
    this.#led = led;
    this.#ended = ended;
    this.#look();
  }

  /** Undefined for one of which nothing is to be written. */
  #open({ reference, object }: SeenClaim): Entry | undefined {
    const key = objectKey(reference);
    const known = this.#entries.get(key);
    if (known?.uid === object.uid) {
      this.#learn(known, object);
      return known;
    }
    known?.cancelRetry?.();
    this.#entries.delete(key);
    if (!isHeldBack(object.value, CLAIM_PROTECTION) && !isMarkedBy(this.#parts.nodeName, object.value))
      return undefined;
    const entry: Entry = {
      ...{ reference, uid: object.uid, object, waiting: new Set<PodUid>(), sure: new Set<PodUid>() },
      ...{ refusal: undefined, isWriting: false, retryMs: RETRY_MS_MIN, cancelRetry: undefined },
    };
    this.#entries.set(key, entry);
    return entry;
  }

  #learn(entry: Entry, object: ApiObjectEnvelope): void {
    if (compareResourceVersions(object.resourceVersion, entry.object.resourceVersion) > 0)
      entry.object = object;
  }

  #look(): void {
    for (const [key, entry] of this.#entries) {
      if (this.#isHere(entry)) continue;
      entry.waiting.clear();
      const isOurs = isMarkedBy(this.#parts.nodeName, entry.object.value);
      if (isOurs && this.#ended.has(key)) void this.#write(entry);
      else if (!entry.isWriting) this.#forget(key, entry);
    }
  }

  #forget(key: ObjectKey, entry: Entry): void {
    entry.cancelRetry?.();
    if (this.#entries.get(key) === entry) this.#entries.delete(key);
  }

  /** A pod leads to it, or has a place of its volume, or nobody knows what stands. */
  #isHere({ reference, object }: Entry): boolean {
    const volumeName = volumeNameIn(object);
    if (this.#standing === undefined || this.#led.has(objectKey(reference))) return true;
    return volumeName !== undefined && this.#standing.names().has(volumeName);
  }

  async #write(entry: Entry): Promise<void> {
    if (this.#isStopped || entry.isWriting || entry.cancelRetry !== undefined) return;
    const pods = [...entry.waiting];
    const conditions = this.#wanted(entry, pods);
    if (conditions === undefined) return;
    entry.isWriting = true;
    const written = await patchObject(this.#parts.transport, {
      path: claimStatusPath(entry.reference),
      before: entry.object,
      change: { status: { conditions } },
    });
    // Another version than the one that was written for: what is to be written of it is another question.
    const isConflict = !written.ok && written.failure.code === 'conflict';
    const answer = isConflict ? await readOne(this.#parts.transport, claimPath(entry.reference)) : written;
    entry.isWriting = false;
    if (this.#isStopped) return;
    if (written.ok) for (const pod of pods) entry.sure.add(pod);
    if (written.ok) for (const pod of pods) entry.waiting.delete(pod);
    this.#hear(entry, answer);
  }

  #hear(entry: Entry, answer: ApiResult<ApiObjectEnvelope>): void {
    if (!answer.ok) return this.#refused(entry, answer.failure);
    entry.refusal = undefined;
    entry.retryMs = RETRY_MS_MIN;
    if (answer.value.uid === entry.uid) this.#learn(entry, answer.value);
    this.#tell(entry.reference, answer.value);
    // Who has come meanwhile has asked, and a mark may have to go by now.
    if (entry.waiting.size > 0 && isHeldBack(entry.object.value, CLAIM_PROTECTION)) void this.#write(entry);
    else this.#look();
  }

  /** Undefined: it is as it should be. */
  #wanted(entry: Entry, pods: readonly PodUid[]): readonly object[] | undefined {
    const { nodeName, clock } = this.#parts;
    const { object } = entry;
    const conditions = conditionsIn(object.value);
    if (pods.length > 0 && isHeldBack(object.value, CLAIM_PROTECTION)) {
      const wall = new Date(clock.wallMs()).toISOString().replace(/\.\d+Z$/, 'Z');
      return withMark(conditions, { nodeName, pods, wall });
    }
    if (this.#isHere(entry) || !isMarkedBy(nodeName, object.value)) return undefined;
    return withoutMark(conditions);
  }

  #refused(entry: Entry, failure: ApiFailure): void {
    const key = objectKey(entry.reference);
    // With the pod goes the right to write, and with the claim what was written.
    if (failure.code === 'absent' || (failure.code === 'denied' && !this.#isHere(entry))) {
      this.#forget(key, entry);
      return this.#tell(entry.reference, undefined);
    }
    const refusal = `it is being deleted, and the API server does not take the mark that keeps it: ${failure.message}`;
    if (entry.refusal !== refusal)
      this.#parts.log.warn('claim not marked', { claim: key, code: failure.code, message: failure.message });
    entry.refusal = refusal;
    const waitMs = Math.max(entry.retryMs, failure.retryAfterMs ?? 0);
    entry.retryMs = Math.min(2 * entry.retryMs, RETRY_MS_MAX);
    entry.cancelRetry = this.#parts.clock.timer(waitMs, () => {
      entry.cancelRetry = undefined;
      void this.#write(entry);
    });
    this.#tell(entry.reference, undefined);
  }

  #tell(reference: NamedReference, object: ApiObjectEnvelope | undefined): void {
    for (const listener of [...this.#listeners]) listener(reference, object);
  }
}

function volumeNameIn({ value }: ApiObjectEnvelope): string | undefined {
  const { volumeName } = mappingIn(value['spec']);
  return typeof volumeName === 'string' ? volumeName : undefined;
}
