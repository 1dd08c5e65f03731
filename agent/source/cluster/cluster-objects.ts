/** From what an API server has sent to the objects of the wish: which pods are shown, and what keeps the others. */
import type { ApiObjectEnvelope } from '../../../kubernetes/api/api-object.ts';
import {
  type ApiObject,
  identityOf,
  type ObjectKey,
  objectKey,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type Stamped,
} from '../../../kubernetes/objects/objects.ts';
import { readObject, type ShapeReading } from '../../../kubernetes/objects/read-object.ts';
import type { PodUid } from '../../../plugins/volume.ts';
import type { Rejection, SourcePart } from '../objects-source.ts';
import type { ClaimProtection, SeenClaim } from '../../claim/claim-desk.ts';
import { type Lack, lackBehind, lackOf, READ_AGAIN, waitingPod } from './lack.ts';
import { podLife } from './pod-life.ts';
import { isBound, type ReferenceBook } from './reference-book.ts';
import {
  claimReferences,
  type ClaimReference,
  podReferences,
  type Reference,
  referenceKey,
  volumeSecrets,
} from './references.ts';

/** What was heard of the selections that a node follows as a whole. */
export interface HeardObjects {
  readonly pods: Iterable<ApiObjectEnvelope>;
  readonly others: Iterable<ApiObjectEnvelope>;
}

export interface ClusterObjects {
  /** `nowMs`: host clock. All that pods lead to is followed from here on. */
  part(heard: HeardObjects, nowMs: number): SourcePart;
}

export interface ClusterObjectsParts {
  /** The part has this name, and all that is read this origin. */
  readonly origin: string;
  readonly book: ReferenceBook;
  readonly claims: ClaimProtection;
}

/**
 * Guarantees: a pod is shown when the server has answered for each object that it names, present or absent, and for
 * each claim after the pod was seen, and one that is being deleted is sure to stay or to be gone; until then it is
 * frozen. Once shown it stays so: what was heard of an object last counts until another answer.
 */
export function createClusterObjects(parts: ClusterObjectsParts): ClusterObjects {
  return new ObjectsOfCluster(parts);
}

interface Growing {
  readonly objects: Map<string, Stamped<ApiObject>>;
  readonly rejected: Rejection[];
  readonly frozenPods: Set<PodUid>;
  readonly shownPods: Set<PodUid>;
  readonly led: Set<string>;
  /** Claims that pods lead to, and that ended ones do. */
  readonly claims: Set<ObjectKey>;
  readonly endedClaims: Set<ObjectKey>;
  readonly seenClaims: SeenClaim[];
  /** What was refused and told: many pods may lead to it. */
  readonly refused: Set<ApiObjectEnvelope>;
}

class ObjectsOfCluster implements ClusterObjects {
  readonly #origin: string;
  readonly #book: ReferenceBook;
  readonly #claims: ClaimProtection;
  readonly #shapes = new WeakMap<ApiObjectEnvelope, ShapeReading>();
  /** Host clock: when each pod was seen first. */
  #seenMs = new Map<string, number>();
  #shown = new Set<string>();

  constructor({ origin, book, claims }: ClusterObjectsParts) {
    this.#origin = origin;
    this.#book = book;
    this.#claims = claims;
  }

  part({ pods, others }: HeardObjects, nowMs: number): SourcePart {
    const growing: Growing = {
      objects: new Map(),
      rejected: [],
      frozenPods: new Set(),
      shownPods: new Set(),
      led: new Set(),
      claims: new Set(),
      endedClaims: new Set(),
      seenClaims: [],
      refused: new Set(),
    };
    const seenMs = new Map<string, number>();
    const shown = new Set<string>();
    for (const one of others) this.#read(growing, one);
    for (const one of pods) {
      seenMs.set(one.uid, this.#seenMs.get(one.uid) ?? nowMs);
      if (this.#addPod(growing, one, seenMs.get(one.uid) ?? nowMs)) shown.add(one.uid);
    }
    this.#seenMs = seenMs;
    this.#shown = shown;
    this.#book.keep(growing.led);
    this.#claims.keep({ seen: growing.seenClaims, led: growing.claims, ended: growing.endedClaims });
    return {
      name: this.#origin,
      objects: [...growing.objects.values()],
      rejected: growing.rejected,
      unknown: false,
      frozenPods: growing.frozenPods,
      shownPods: growing.shownPods,
    };
  }

  /** The answer: whether it is shown. */
  #addPod(growing: Growing, envelope: ApiObjectEnvelope, seenMs: number): boolean {
    const life = podLife(envelope.value);
    if (life === 'mirror') return false;
    growing.shownPods.add(envelope.uid as PodUid);
    if (life === 'over' || life === 'ending') {
      this.#addLeaving(growing, envelope, life);
      return false;
    }
    const pod = this.#read(growing, envelope);
    if (pod === undefined || pod.kind !== 'Pod') {
      growing.frozenPods.add(envelope.uid as PodUid);
      return false;
    }
    const lacking = this.#lacking(
      growing,
      pod,
      this.#shown.has(envelope.uid) ? Number.NEGATIVE_INFINITY : seenMs,
    );
    if (lacking === undefined) return true;
    growing.objects.delete(identityOf(pod));
    growing.frozenPods.add(pod.reference.uid);
    const waiting = { ...waitingPod(envelope), podVolumes: pod.volumes.length };
    growing.rejected.push({ origin: this.#origin, subject: identityOf(pod), ...lacking, ...waiting });
    return false;
  }

  /** What it leads to may be needed until its containers have stopped. */
  #addLeaving(growing: Growing, envelope: ApiObjectEnvelope, life: 'over' | 'ending'): void {
    if (life === 'ending') growing.frozenPods.add(envelope.uid as PodUid);
    const shape = this.#shape(envelope);
    if (shape.kind !== 'object' || shape.object.kind !== 'Pod') return;
    const references = podReferences(shape.object);
    if (life === 'ending') return this.#lead(growing, references);
    for (const reference of references)
      if (reference.kind === 'PersistentVolumeClaim') growing.endedClaims.add(objectKey(reference));
  }

  /** Adds all that the pod leads to. The answer: what the server has not told of it yet. */
  #lacking(growing: Growing, pod: Pod, claimsAfterMs: number): Lack | undefined {
    let lacking: Lack | undefined;
    const isNew = claimsAfterMs > Number.NEGATIVE_INFINITY;
    for (const reference of podReferences(pod)) {
      const isClaim = reference.kind === 'PersistentVolumeClaim';
      const afterMs = isClaim ? claimsAfterMs : Number.NEGATIVE_INFINITY;
      const lack =
        this.#addReferred(growing, reference, afterMs) ??
        (isClaim && isNew ? this.#doubt(reference, pod.reference.uid) : undefined);
      if (lack !== undefined) lacking ??= lackBehind(`it waits for ${referenceKey(reference)}`, lack);
    }
    return lacking;
  }

  /** The answer: why its claim, which is there, may be gone before the pod is. */
  #doubt(reference: ClaimReference, pod: PodUid): Lack | undefined {
    const { answer } = this.#book.follow(reference);
    if (answer.kind !== 'present') return undefined;
    const message = this.#claims.doubt({ reference, object: answer.object }, pod);
    return message === undefined ? undefined : { message };
  }

  /** The answer: why the server's word on it is not known. */
  #addReferred(growing: Growing, reference: Reference, afterMs: number): Lack | undefined {
    this.#lead(growing, [reference]);
    const { answer, askedMs, trouble } = this.#book.follow(reference);
    if (answer.kind === 'unknown') {
      const subject = referenceKey(reference);
      const lack = lackOf(reference, answer);
      const told = lackBehind('the API server does not tell', lack);
      if (!growing.rejected.some((one) => one.subject === subject))
        growing.rejected.push({ origin: this.#origin, subject, ...told });
      return lack;
    }
    if (askedMs < afterMs) {
      this.#book.read(reference);
      return trouble === undefined ? READ_AGAIN : lackOf(reference, trouble);
    }
    return answer.kind === 'present' ? this.#addPresent(growing, answer.object, afterMs) : undefined;
  }

  /** The answer: why it is not known what it leads to. */
  #addPresent(growing: Growing, envelope: ApiObjectEnvelope, afterMs: number): Lack | undefined {
    const object = this.#read(growing, envelope);
    if (object?.kind === 'PersistentVolumeClaim') {
      growing.seenClaims.push({ reference: object, object: envelope });
      return this.#addVolumeOf(growing, object, envelope, afterMs);
    }
    if (object?.kind === 'PersistentVolume')
      for (const secret of volumeSecrets(object))
        this.#addReferred(growing, secret, Number.NEGATIVE_INFINITY);
    return undefined;
  }

  /**
   * A binding counts when both sides have it: until then the claim is shown as bound to nothing, and its volume not at
   * all. The answer: its volume is known as it was before the pod was seen, and may be another one by now.
   */
  #addVolumeOf(
    growing: Growing,
    claim: Stamped<PersistentVolumeClaim>,
    envelope: ApiObjectEnvelope,
    afterMs: number,
  ): Lack | undefined {
    const unbound = (): void => {
      growing.objects.set(identityOf(claim), { ...claim, volumeName: undefined });
    };
    let lacking: Lack | undefined;
    if (!isBound(envelope.value)) unbound();
    else
      for (const reference of claimReferences(claim)) {
        const isKnown = this.#book.follow(reference).answer.kind !== 'unknown';
        const why = this.#addReferred(growing, reference, afterMs);
        if (isKnown) lacking ??= why && lackBehind(referenceKey(reference), why);
        const volume = growing.objects.get(referenceKey(reference)) as Stamped<PersistentVolume> | undefined;
        if (volume !== undefined && volume.claimRef?.uid === undefined) {
          growing.objects.delete(identityOf(volume));
          unbound();
        }
      }
    return lacking;
  }

  #lead(growing: Growing, references: readonly Reference[]): void {
    for (const reference of references) {
      growing.led.add(referenceKey(reference));
      if (reference.kind === 'PersistentVolumeClaim') growing.claims.add(objectKey(reference));
    }
  }

  /** Undefined when it is refused, which is told. */
  #read(growing: Growing, envelope: ApiObjectEnvelope): Stamped<ApiObject> | undefined {
    const shape = this.#shape(envelope);
    if (shape.kind === 'object') {
      const place = `${this.#origin} ${identityOf(shape.object)}`;
      const object = { ...shape.object, origin: this.#origin, place };
      growing.objects.set(identityOf(object), object);
      return object;
    }
    if (growing.refused.has(envelope)) return undefined;
    growing.refused.add(envelope);
    const subject = shape.kind === 'refused' ? shape.subject : undefined;
    const problems = shape.kind === 'refused' ? shape.problems : [{ field: '', message: shape.message }];
    for (const { field, message } of problems)
      growing.rejected.push({
        origin: this.#origin,
        ...(subject === undefined ? {} : { subject: subject.identity }),
        field,
        message,
        ...(subject?.pod === undefined ? {} : waitingPod(envelope)),
      });
    return undefined;
  }

  #shape(envelope: ApiObjectEnvelope): ShapeReading {
    const known = this.#shapes.get(envelope);
    if (known !== undefined) return known;
    const shape = readObject(envelope.value, this.#origin);
    this.#shapes.set(envelope, shape);
    return shape;
  }
}
