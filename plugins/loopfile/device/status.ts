/** The driver's failures are gRPC statuses, named as the CSI specification's error tables name them. */
import { errnoIn } from '../../../mount/errno.ts';
import { GrpcStatus } from '../../csi/wire/grpc-service.ts';

const CODE = {
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  INTERNAL: 13,
} as const;

export type StatusName = keyof typeof CODE;

/** A failure to throw. The message is for people: it never holds a secret or a mount flag. */
export function status(name: StatusName, message: string): GrpcStatus {
  return new GrpcStatus(CODE[name], message);
}

/**
 * What a caller is told about anything thrown: a status as it is, a full disk as RESOURCE_EXHAUSTED, and the rest,
 * other failed system calls and bugs alike, as INTERNAL.
 */
export function statusOf(error: unknown): GrpcStatus {
  if (error instanceof GrpcStatus) return error;
  const code = errnoIn(error);
  const full = code === 'ENOSPC' || code === 'EDQUOT';
  return status(
    full ? 'RESOURCE_EXHAUSTED' : 'INTERNAL',
    error instanceof Error ? error.message : String(error),
  );
}

/** A file of sysfs whose device goes away while it is read says ENODEV. */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENODEV', 'ENXIO']);

/** The value of `promise`, or undefined when the file it is about does not exist. */
export async function unlessAbsent<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    if (ABSENT.has(errnoIn(error) ?? '')) return undefined;
    throw error;
  }
}
