/** What a node writes on a claim whose volume it grows, or cannot grow (KEP-1790). Pure. */
import { mappingIn } from '../../kubernetes/fields/plain-value.ts';
import { parseExactBytes } from '../../kubernetes/fields/quantity.ts';
import type { FailureCode } from '../../mount/failure.ts';
import { type Bytes, isMoreThan } from '../../plugins/volume.ts';
import type { RefusedExpansion } from '../../reconciler/model/actual-state.ts';

type Json = Readonly<Record<string, unknown>>;

/** How far the growth of a volume has come on this node. */
export interface GrowthFacts {
  readonly wantedBytes: Bytes;
  /** Undefined when it is not known. */
  readonly hasBytes: Bytes | undefined;
  /** Why it is not to be grown here, or not now. */
  readonly held: string | undefined;
  /** Its driver is at work on it, or was and has failed. */
  readonly hasBegun: boolean;
  readonly refused: RefusedExpansion | undefined;
  /** What the last try ran into. */
  readonly failure: { readonly code: FailureCode; readonly message: string } | undefined;
}

/** Fields of the status to write; a field that is null is taken away. */
export type StatusChange = Readonly<Record<string, unknown>>;

type NodeResize = 'NodeResizePending' | 'NodeResizeInProgress';

const STORAGE = 'storage';
const IS_ERROR = 'NodeResizeError';
/** Over when the volume has grown. */
const OF_GROWTH: ReadonlySet<unknown> = new Set(['FileSystemResizePending', 'Resizing', IS_ERROR]);
/** The driver has said that it is over; after others it may still be at work (kubelet: `isFinalError`). */
const FINAL: ReadonlySet<FailureCode> = new Set([
  'driver-failed',
  'driver-conflict',
  'driver-refused',
  'driver-not-found',
  'driver-precondition',
  'driver-unimplemented',
  'driver-answer-invalid',
]);

/** Whether there may be anything to write: cheap, and asked often. */
export function isGrowthOpen(claim: Json): boolean {
  const { status } = sizesIn(claim);
  return status === '' ? hasLessThanAsked(claim) : isNodesTurn(status);
}

/**
 * Undefined: it says already what is so. It is made of what is, never of what happened: what a crash kept from being
 * written is written by the next life. `wall`: as Kubernetes writes a time.
 */
export function growthChange(
  claim: Json,
  conditions: readonly Json[],
  facts: GrowthFacts,
  wall: string,
): StatusChange | undefined {
  const { status, hasBytes } = sizesIn(claim);
  if (status !== '' && !isNodesTurn(status)) return undefined;
  const bytes = sizeMeant(claim, facts);
  if (hasBytes !== undefined && isMoreThan(hasBytes, bytes)) return undefined;
  // Held by now, as it is when only readers are left of the pods it was grown for: it has grown all the same.
  if (facts.hasBytes !== undefined && !isMoreThan(bytes, facts.hasBytes)) {
    const isToldLess = facts.held === undefined && hasBytes !== undefined && isMoreThan(bytes, hasBytes);
    return isNodesTurn(status) || isToldLess ? grown(claim, conditions, bytes) : undefined;
  }
  // A resizer that writes no statuses does not read them. What was tried for another size says nothing of this one.
  if (facts.held !== undefined || !isNodesTurn(status) || facts.wantedBytes !== bytes) return undefined;
  const trouble = troubleOf(facts);
  if (trouble === undefined)
    return status === 'NodeResizePending' && facts.hasBegun ? withStatus('NodeResizeInProgress') : undefined;
  const failed = withError(conditions, trouble.message, wall);
  const infeasible = trouble.isForEver ? withStatus('NodeResizeInfeasible') : undefined;
  if (failed === undefined) return infeasible;
  return { ...infeasible, conditions: failed };
}

/** The claim may have been read later than what is wanted was made of it: its own word is about its own status. */
function sizeMeant(claim: Json, { wantedBytes }: GrowthFacts): Bytes {
  const { status, allocatedBytes } = sizesIn(claim);
  return isNodesTurn(status) ? (allocatedBytes ?? wantedBytes) : wantedBytes;
}

function grown(claim: Json, conditions: readonly Json[], bytes: Bytes): StatusChange {
  return {
    capacity: { [STORAGE]: asWritten(claim, bytes) },
    ...(sizesIn(claim).status === '' ? {} : withStatus(null)),
    conditions: conditions.filter(({ type }) => !OF_GROWTH.has(type)),
  };
}

function withStatus(status: string | null): StatusChange {
  return { allocatedResourceStatuses: { [STORAGE]: status } };
}

function troubleOf({
  refused,
  wantedBytes,
  failure,
}: GrowthFacts): { readonly message: string; readonly isForEver: boolean } | undefined {
  if (refused?.because === 'infeasible' && refused.toBytes === wantedBytes)
    return { message: refused.message, isForEver: true };
  if (refused?.because === 'in-use') return { message: refused.message, isForEver: false };
  if (failure === undefined || !FINAL.has(failure.code)) return undefined;
  return { message: failure.message, isForEver: false };
}

/** Undefined: it is told in these words already. */
function withError(conditions: readonly Json[], message: string, wall: string): readonly Json[] | undefined {
  const told = conditions.find(({ type }) => type === IS_ERROR);
  if (told?.['status'] === 'True' && told['message'] === message) return undefined;
  const error = { type: IS_ERROR, status: 'True', lastTransitionTime: wall, message };
  return [...conditions.filter((one) => one !== told), error];
}

function isNodesTurn(status: string): status is NodeResize {
  return status === 'NodeResizePending' || status === 'NodeResizeInProgress';
}

function hasLessThanAsked(claim: Json): boolean {
  const { hasBytes, askedBytes } = sizesIn(claim);
  return hasBytes !== undefined && askedBytes !== undefined && isMoreThan(askedBytes, hasBytes);
}

function sizesIn(claim: Json): {
  readonly status: string;
  readonly hasBytes: Bytes | undefined;
  readonly askedBytes: Bytes | undefined;
  readonly allocatedBytes: Bytes | undefined;
} {
  const status = mappingIn(claim['status']);
  const told = mappingIn(status['allocatedResourceStatuses'])[STORAGE];
  return {
    status: typeof told === 'string' ? told : '',
    hasBytes: bytesIn(mappingIn(status['capacity'])[STORAGE]),
    askedBytes: bytesIn(askedIn(claim)),
    allocatedBytes: bytesIn(mappingIn(status['allocatedResources'])[STORAGE]),
  };
}

function askedIn(claim: Json): unknown {
  return mappingIn(mappingIn(mappingIn(claim['spec'])['resources'])['requests'])[STORAGE];
}

function bytesIn(quantity: unknown): Bytes | undefined {
  return typeof quantity === 'string' ? parseExactBytes(quantity) : undefined;
}

/** In the words of the cluster where it has some: people compare them. */
function asWritten(claim: Json, bytes: Bytes): string {
  const allocated = mappingIn(mappingIn(claim['status'])['allocatedResources'])[STORAGE];
  const written = [allocated, askedIn(claim)].find((one) => bytesIn(one) === bytes);
  return typeof written === 'string' ? written : bytes;
}
