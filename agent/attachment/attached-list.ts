/** Which volumes may be here by the Node, state by state: an attachment can be another in a list that is the same. */
import type { ApiObjectEnvelope } from '../../kubernetes/api/api-object.ts';
import { nodeVolumes } from '../../kubernetes/objects/attachment-sight.ts';
import type { Cancel } from '../../mount/host.ts';
import { csiVolumeId, type CsiVolumeSpec } from '../../plugins/volume.ts';
import { AbsenceProofs } from './absence-proofs.ts';
import type { NodeObject, NodeState } from '../source/cluster/node-object.ts';

/**
 * Whether one volume's place in the list is as it was. `unseen`: it is there as before, and states have gone by that
 * nobody here has seen, in which it may have been missing.
 */
export type ListingChange = 'same' | 'changed' | 'unseen';

export interface AttachedListParts {
  readonly node: Pick<NodeObject, 'current' | 'onChange' | 'onState'>;
  /** The newest Node that anybody has read lists other volumes, or is told again. */
  readonly onNewest: (isChanged: (spec: CsiVolumeSpec) => boolean) => void;
  /** The watch tells a state. In order, each one: what is newer and was read by others makes none of them unheard. */
  readonly onState: (change: (spec: CsiVolumeSpec) => ListingChange) => void;
}

export interface AttachedList {
  /** By the newest Node that anybody has read. */
  has(spec: CsiVolumeSpec): boolean;
  /** The attachment that an answer, asked for at `answeredMs`, tells of was made after its use was acknowledged. */
  isNew(spec: CsiVolumeSpec, answeredMs: number): boolean;
  /** Its use is acknowledged; its attachment is asked for next. */
  noteUsed(spec: CsiVolumeSpec): void;
  /** Its attachment, asked for at `askedMs` after that, is not there. */
  noteAbsent(spec: CsiVolumeSpec, askedMs: number): void;
  begin(): void;
  stop(): void;
}

type Names = ReadonlySet<string>;

export function createAttachedList({ node, onNewest, onState }: AttachedListParts): AttachedList {
  const namesOf = createNames();
  const proofs = new AbsenceProofs();
  let newest: Names = new Set();
  let told: Names = new Set();
  let cancels: readonly Cancel[] = [];

  function isChanged(spec: CsiVolumeSpec, before: Names, now: Names): boolean {
    const name = csiVolumeId(spec.driver, spec.volumeHandle);
    return before.has(name) !== now.has(name);
  }

  function noteNewest(): void {
    const before = newest;
    const now = namesOf(node.current());
    newest = now;
    proofs.look(node.current(), false);
    onNewest((spec) => isChanged(spec, before, now));
  }

  function noteState({ node: state, isAfterGap }: NodeState): void {
    const before = told;
    const now = namesOf(state);
    told = now;
    proofs.look(state, isAfterGap);
    onState((spec) => {
      if (isChanged(spec, before, now)) return 'changed';
      return isAfterGap && now.has(csiVolumeId(spec.driver, spec.volumeHandle)) ? 'unseen' : 'same';
    });
  }

  return {
    has: ({ driver, volumeHandle }) => namesOf(node.current()).has(csiVolumeId(driver, volumeHandle)),
    isNew: ({ driver, volumeHandle }, answeredMs) =>
      proofs.holds(csiVolumeId(driver, volumeHandle), answeredMs),
    noteUsed({ driver, volumeHandle }) {
      proofs.begin(csiVolumeId(driver, volumeHandle), node.current());
    },
    noteAbsent({ driver, volumeHandle }, askedMs) {
      proofs.noteAbsent(csiVolumeId(driver, volumeHandle), askedMs);
    },
    begin() {
      cancels = [node.onChange(noteNewest), node.onState(noteState)];
    },
    stop() {
      for (const cancel of cancels) cancel();
    },
  };
}

/** The same Node is asked about for each volume. */
function createNames(): (node: ApiObjectEnvelope | undefined) => Names {
  let last: { readonly node: ApiObjectEnvelope; readonly names: Names } | undefined;
  return (node) => {
    if (node === undefined) return new Set();
    if (last?.node !== node) last = { node, names: nodeVolumes(node.value).attached };
    return last.names;
  };
}
