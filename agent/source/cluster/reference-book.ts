/** The objects that pods of this node lead to: followed from the first reference on, and a while after the last. */
import type { ApiFailure } from '../../../kubernetes/api/api-failure.ts';
import type { ApiObjectEnvelope } from '../../../kubernetes/api/api-object.ts';
import type { ApiTransport } from '../../../kubernetes/api/api-transport.ts';
import { createReflector } from '../../../kubernetes/api/reflector.ts';
import { claimPath, oneContent, volumePath } from '../../../kubernetes/api/resource-path.ts';
import { CLAIM_PROTECTION, isLeaving, VOLUME_PROTECTION } from '../../../kubernetes/fields/protection.ts';
import type { Cancel, Clock } from '../../../mount/host.ts';
import { BEING_READ, createNamedObject, type NamedAnswer, type Untold } from './named-object.ts';
import { type ContentReference, type Reference, referenceKey, type StorageReference } from './references.ts';

export interface ReferenceBookParts {
  readonly transport: ApiTransport;
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly onChange: () => void;
}

/** What is known of one reference. */
export interface Followed {
  readonly answer: NamedAnswer;
  /** Host clock: when what is known was asked for last; -Infinity before. */
  readonly askedMs: number;
  /** Why nothing newer is known; undefined when it is not known that something keeps it. */
  readonly trouble: Untold | undefined;
}

export interface ReferenceBook {
  /** Opened when it is not yet. */
  follow(reference: Reference): Followed;
  /** It is read once more, because what is known may be older than who asks. */
  read(reference: Reference): void;
  /** The server has answered a write with it; undefined: one may look again. What is not followed is left so. */
  learn(reference: StorageReference, object: ApiObjectEnvelope | undefined): void;
  /** All that are led to now; the others are closed when nobody has led to them for a minute. */
  keep(references: ReadonlySet<string>): void;
  stop(): void;
}

interface Follower {
  readonly current: () => Followed;
  readonly read: () => void;
  readonly learn: (object: ApiObjectEnvelope) => void;
  readonly stop: () => void;
  cancelClose: Cancel | undefined;
}

const CLOSE_AFTER_MS = 60_000;

export function createReferenceBook(parts: ReferenceBookParts): ReferenceBook {
  const followers = new Map<string, Follower>();

  function open(reference: Reference): Follower {
    const key = referenceKey(reference);
    const known = followers.get(key);
    if (known !== undefined) return known;
    const opened = isContent(reference) ? followContent(parts, reference) : followByName(parts, reference);
    const follower = { ...opened, cancelClose: undefined };
    followers.set(key, follower);
    return follower;
  }

  return {
    follow: (reference) => open(reference).current(),
    read: (reference) => open(reference).read(),
    learn(reference, object) {
      const follower = followers.get(referenceKey(reference));
      if (object === undefined) follower?.read();
      else follower?.learn(object);
    },
    keep(references) {
      for (const [key, follower] of followers) {
        if (references.has(key)) {
          follower.cancelClose?.();
          follower.cancelClose = undefined;
        } else {
          follower.cancelClose ??= parts.clock.timer(CLOSE_AFTER_MS, () => {
            followers.delete(key);
            follower.stop();
          });
        }
      }
    },
    stop() {
      for (const follower of followers.values()) {
        follower.cancelClose?.();
        follower.stop();
      }
      followers.clear();
    },
  };
}

function isContent(reference: Reference): reference is ContentReference {
  return reference.kind === 'Secret' || reference.kind === 'ConfigMap';
}

/** A node may watch a Secret or ConfigMap, if it watches that one alone. */
function followContent(
  { transport, clock, random, onChange }: ReferenceBookParts,
  reference: ContentReference,
): Omit<Follower, 'cancelClose'> {
  const selection = oneContent(reference.kind, reference);
  const reflector = createReflector({ transport, clock, random, selection, onChange });
  reflector.start();
  return {
    current() {
      const { objects, listedMs = Number.NEGATIVE_INFINITY, trouble } = reflector.current();
      const untold = trouble === undefined ? BEING_READ : untoldBy(trouble.failure);
      if (objects === undefined) return { answer: untold, askedMs: listedMs, trouble: untold };
      const [object] = objects.values();
      return {
        answer: object === undefined ? { kind: 'absent' } : { kind: 'present', object },
        askedMs: listedMs,
        trouble: trouble === undefined ? undefined : untold,
      };
    },
    read: () => reflector.relist(),
    // Nobody here writes one.
    learn: () => {},
    stop: () => reflector.stop(),
  };
}

function untoldBy({ code, message }: ApiFailure): Untold {
  return { kind: 'unknown', message, isDenied: code === 'denied' };
}

/** A node may only get a claim or a volume, and only while a pod of its own leads there. */
function followByName(parts: ReferenceBookParts, reference: StorageReference): Omit<Follower, 'cancelClose'> {
  const isClaim = reference.kind === 'PersistentVolumeClaim';
  const one = createNamedObject({
    ...parts,
    path: isClaim ? claimPath(reference) : volumePath(reference.name),
    isWaitedFor(answer) {
      if (answer.kind !== 'present') return true;
      const { value } = answer.object;
      // One that leaves is missing, and may be made anew.
      return isClaim
        ? !isBound(value) || isLeaving(value, CLAIM_PROTECTION)
        : isLeaving(value, VOLUME_PROTECTION);
    },
  });
  return {
    current: () => ({ answer: one.answer(), askedMs: one.askedMs(), trouble: one.trouble() }),
    read: () => one.readInTurn(),
    learn: (object) => one.learn(object),
    stop: () => one.stop(),
  };
}

const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';

/** The binder has written both sides. */
export function isBound(claim: Readonly<Record<string, unknown>>): boolean {
  const { annotations } = (claim['metadata'] ?? {}) as {
    readonly annotations?: Readonly<Record<string, unknown>>;
  };
  return (
    typeof annotations === 'object' && annotations !== null && Object.hasOwn(annotations, BIND_COMPLETED)
  );
}
