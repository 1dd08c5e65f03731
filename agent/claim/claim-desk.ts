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
import { Retries } from '../../mount/process/back-off.ts';
import { createGathered, type Gathered } from '../../mount/process/gathered.ts';
import type { Log } from '../../mount/process/log.ts';
import type { PodUid } from '../../plugins/volume.ts';
import { claimChange } from './claim-change.ts';
import { isMarkedBy, KEPT_AS_IT_WAS } from './claim-mark.ts';
import { type GrowthFacts, isGrowthOpen, type StatusChange } from './growth-report.ts';

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

/** The claims that pods of this node lead to, at one moment. */
export interface ClaimsInSight {
  readonly seen: readonly SeenClaim[];
  readonly led: ReadonlySet<ObjectKey>;
  /** Those that ended pods lead to: of these a mark is taken away, and with the pod goes the right to write. */
  readonly ended: ReadonlySet<ObjectKey>;
}

/** What is on this machine; volumes by the names of PersistentVolumes. */
export interface VolumesHere {
  /** Something of them stands here. */
  readonly standing: () => ReadonlySet<string>;
  /** Undefined for one of no known size, or that no pod here wants. */
  readonly growthOf: (volumeName: string) => GrowthFacts | undefined;
  onChange(listener: () => void): Cancel;
}

/** Who is asked before a pod gets the volume of a claim that is being deleted. */
export interface ClaimProtection {
  /**
   * Why it is not sure yet that the claim stays for as long as the pod is there; undefined when it is, and for one that
   * is not being deleted. Asking is the reason to make sure of it, and `onAnswer` tells of the end.
   */
  doubt(claim: SeenClaim, pod: PodUid): string | undefined;
  keep(claims: ClaimsInSight): void;
  /** Each claim that was written or read here, as it is now; undefined: it is not known, and one may look again. */
  onAnswer(listener: (reference: NamedReference, object: ApiObjectEnvelope | undefined) => void): Cancel;
}

export interface ClaimDesk extends ClaimProtection {
  /** From now on it is known what is here: growth is told, and marks of what does not stand any more are taken away. */
  begin(here: VolumesHere): void;
  stop(): void;
}

/** What changes within this is looked at once. */
const LOOK_MS = 50;
const RETRY = { firstMs: 100, maxMs: 60_000 } as const;
const MAKING_SURE = 'it is being deleted, and it is being made sure that it stays until then';
const RIGHT_TO_WRITE =
  '; if it stays so, an administrator has to let this node patch persistentvolumeclaims/status';
const NOT_MADE_SURE = 'it is being deleted, and the API server does not take the mark that keeps it';

/**
 * Guarantees: a pod is told that the claim stays only after a write to the claim that was begun after the pod was seen,
 * and whose answer still has the protection. Because: the controller that takes it away does so with the version that
 * it has read before it looked for pods, so what it decided before our write fails, and what it decides after it counts
 * our pod. Each write is bound to the version that it was made for; no volume waits for what is told of its growth.
 */
export function createClaimDesk(parts: ClaimDeskParts): ClaimDesk {
  return new DeskOfClaims(parts);
}

interface Entry extends SeenClaim {
  readonly uid: string;
  object: ApiObjectEnvelope;
  /** A version that the server has no more: its data was set back, and who reads by name has yet to believe that. */
  lostVersion: string | undefined;
  /** Pods that wait, and those that the claim was written for. */
  readonly waiting: Set<PodUid>;
  readonly sure: Set<PodUid>;
  /** The server's words for why it does not take what is to be written. */
  refusal: Pick<ApiFailure, 'code' | 'message'> | undefined;
  isWriting: boolean;
  readonly retries: Retries;
  cancelRetry: Cancel | undefined;
}

class DeskOfClaims implements ClaimDesk {
  readonly #parts: ClaimDeskParts;
  readonly #entries = new Map<ObjectKey, Entry>();
  readonly #listeners = new Set<Parameters<ClaimProtection['onAnswer']>[0]>();
  #sight: ClaimsInSight = { seen: [], led: new Set(), ended: new Set() };
  #here: VolumesHere | undefined;
  /** What stands, while all claims are looked at: it is put together of all volumes. */
  #standing: ReadonlySet<string> | undefined;
  #cancelHere: Cancel = () => {};
  readonly #gathered: Gathered;
  #isStopped = false;

  constructor(parts: ClaimDeskParts) {
    this.#parts = parts;
    this.#gathered = createGathered(parts.clock, LOOK_MS, () => this.#look());
  }

  begin(here: VolumesHere): void {
    this.#here = here;
    this.#cancelHere = here.onChange(() => this.#gathered.soon());
    this.#gathered.soon();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelHere();
    this.#gathered.stop();
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
    if (!isHeldBack(entry.object.value, CLAIM_PROTECTION) || entry.sure.has(pod)) return undefined;
    entry.waiting.add(pod);
    void this.#write(entry);
    if (entry.refusal === undefined) return MAKING_SURE;
    const { code, message } = entry.refusal;
    return `${NOT_MADE_SURE}: ${message}${code === 'denied' ? RIGHT_TO_WRITE : ''}`;
  }

  keep(claims: ClaimsInSight): void {
    this.#sight = claims;
    for (const claim of claims.seen) this.#open(claim);
    this.#gathered.soon();
  }

  #open({ reference, object }: SeenClaim): Entry {
    const key = objectKey(reference);
    const known = this.#entries.get(key);
    if (known?.uid === object.uid) {
      this.#learn(known, object);
      return known;
    }
    known?.cancelRetry?.();
    const entry: Entry = {
      ...{ reference, uid: object.uid, object, waiting: new Set<PodUid>(), sure: new Set<PodUid>() },
      ...{ lostVersion: undefined, refusal: undefined, isWriting: false },
      ...{ retries: new Retries(RETRY), cancelRetry: undefined },
    };
    this.#entries.set(key, entry);
    return entry;
  }

  #learn(entry: Entry, object: ApiObjectEnvelope): void {
    const { resourceVersion } = object;
    if (isLater(object, entry.object) && resourceVersion !== entry.lostVersion) entry.object = object;
  }

  /** Asked for because the server refused what was written for the version that is known. */
  #relearn(entry: Entry, object: ApiObjectEnvelope): void {
    const { resourceVersion } = entry.object;
    if (compareResourceVersions(object.resourceVersion, resourceVersion) < 0)
      entry.lostVersion = resourceVersion;
    entry.object = object;
  }

  #look(): void {
    this.#standing = this.#here?.standing();
    for (const [key, entry] of this.#entries) {
      void this.#write(entry);
      if (!this.#isLed(entry)) entry.waiting.clear();
      if (!this.#isHere(entry) && !entry.isWriting && entry.cancelRetry === undefined)
        this.#forget(key, entry);
    }
    this.#standing = undefined;
  }

  #forget(key: ObjectKey, entry: Entry): void {
    entry.cancelRetry?.();
    if (this.#entries.get(key) === entry) this.#entries.delete(key);
  }

  #isLed({ reference }: Entry): boolean {
    return this.#sight.led.has(objectKey(reference));
  }

  /** A pod leads to it, or something of its volume stands, or nobody knows what does. */
  #isHere(entry: Entry): boolean {
    if (this.#here === undefined || this.#isLed(entry)) return true;
    const volumeName = volumeNameIn(entry.object);
    return volumeName !== undefined && (this.#standing ?? this.#here.standing()).has(volumeName);
  }

  async #write(entry: Entry): Promise<void> {
    if (this.#isStopped || entry.isWriting || entry.cancelRetry !== undefined) return;
    const pods = [...entry.waiting];
    const status = this.#wanted(entry, pods);
    if (status === undefined) return;
    entry.isWriting = true;
    const { transport } = this.#parts;
    const path = claimStatusPath(entry.reference);
    const before = entry.object;
    const written = await patchObject(transport, { path, before, change: { status } });
    // Another version than the one that was written for: what is to be written of it is another question.
    const isConflict = !written.ok && written.failure.code === 'conflict';
    const answer = isConflict ? await readOne(transport, claimPath(entry.reference)) : written;
    entry.isWriting = false;
    if (this.#isStopped) return;
    // What made no version lets what was decided before succeed. The same mark, in the same second, is written again.
    const isKept = written.ok && isLater(written.value, before);
    const isSame = written.ok && isMarkedBy(this.#parts.nodeName, written.value.value);
    if (written.ok && !isKept && !isSame && pods.length > 0) return this.#refused(entry, KEPT_AS_IT_WAS);
    for (const pod of isKept ? pods : []) {
      entry.sure.add(pod);
      entry.waiting.delete(pod);
    }
    this.#hear(entry, answer, isConflict);
  }

  #hear(entry: Entry, answer: ApiResult<ApiObjectEnvelope>, isConflict: boolean): void {
    if (!answer.ok) return this.#refused(entry, answer.failure);
    entry.refusal = undefined;
    if (answer.value.uid === entry.uid && isConflict) this.#relearn(entry, answer.value);
    else if (answer.value.uid === entry.uid) this.#learn(entry, answer.value);
    // What others write at the same time, or the server does not keep, is not written at the pace of its answers.
    if (this.#wanted(entry, [...entry.waiting]) === undefined) entry.retries.reset();
    else this.#writeLater(entry, 0);
    this.#tell(entry.reference, answer.value);
    this.#gathered.soon();
  }

  /** Undefined: it is as it should be. */
  #wanted(entry: Entry, pods: readonly PodUid[]): StatusChange | undefined {
    const { nodeName, clock } = this.#parts;
    const { value } = entry.object;
    const volumeName = volumeNameIn(entry.object);
    const isTold = this.#isLed(entry) && volumeName !== undefined && isGrowthOpen(value);
    return claimChange(value, {
      ...{ nodeName, pods },
      wall: new Date(clock.wallMs()).toISOString().replace(/\.\d+Z$/, 'Z'),
      isGone: this.#sight.ended.has(objectKey(entry.reference)) && !this.#isHere(entry),
      growth: isTold ? this.#here?.growthOf(volumeName) : undefined,
    });
  }

  #refused(entry: Entry, { code, message, retryAfterMs = 0 }: ApiFailure): void {
    const key = objectKey(entry.reference);
    // With the pod goes the right to write, and with the claim what was written.
    if (code === 'absent' || (code === 'denied' && !this.#isHere(entry))) {
      this.#forget(key, entry);
      return this.#tell(entry.reference, undefined);
    }
    if (entry.refusal?.message !== message)
      this.#parts.log.warn('claim not written', { claim: key, code, message });
    entry.refusal = { code, message };
    this.#writeLater(entry, retryAfterMs);
    this.#tell(entry.reference, undefined);
  }

  #writeLater(entry: Entry, leastMs: number): void {
    entry.cancelRetry = this.#parts.clock.timer(entry.retries.nextMs({ leastMs }), () => {
      entry.cancelRetry = undefined;
      void this.#write(entry);
    });
  }

  #tell(reference: NamedReference, object: ApiObjectEnvelope | undefined): void {
    for (const listener of [...this.#listeners]) listener(reference, object);
  }
}

function volumeNameIn({ value }: ApiObjectEnvelope): string | undefined {
  const { volumeName } = mappingIn(value['spec']);
  return typeof volumeName === 'string' ? volumeName : undefined;
}

function isLater(one: ApiObjectEnvelope, other: ApiObjectEnvelope): boolean {
  return compareResourceVersions(one.resourceVersion, other.resourceVersion) > 0;
}
