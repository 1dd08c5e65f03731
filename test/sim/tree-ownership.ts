/** What the ownership walk does to a tree in memory, one entry after the other, so that it can be cut short. */
import type { OwnershipRequest } from '../../mount/ownership.ts';
import type { PathKind } from '../../mount/host.ts';

/** What it is to be given to, and how. */
export type OwnershipTerms = Pick<OwnershipRequest, 'gid' | 'readOnly'>;

export interface OwnedEntry {
  readonly kind: Exclude<PathKind, 'absent'>;
  readonly mode: number;
  readonly gid: number;
}

/** The mode it has to have, its group being right: `Host.changeOwnership`. */
export function ownedMode(entry: OwnedEntry, { readOnly }: OwnershipTerms): number {
  if (entry.kind === 'symlink' || entry.kind === 'block' || entry.kind === 'character') return entry.mode;
  return entry.mode | (readOnly ? 0o440 : 0o660) | (entry.kind === 'directory' ? 0o2110 : 0);
}

export function isOwned(entry: OwnedEntry, request: OwnershipTerms): boolean {
  return entry.gid === request.gid && ownedMode(entry, request) === entry.mode;
}

/** chown(2) of a file takes setuid away; and setgid, where the group may execute it. */
export function modeAfterChown(entry: OwnedEntry, gid: number): number {
  if (entry.gid === gid || entry.kind === 'directory' || entry.kind === 'symlink') return entry.mode;
  return entry.mode & ((entry.mode & 0o010) === 0 ? ~0o4000 : ~0o6000);
}
