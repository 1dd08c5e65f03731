/** Whether the layout on disk was read whole since the start, and what may be in what was not read. */
import type { Failure } from '../../mount/failure.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { PodUid, VolumeId } from '../../plugins/volume.ts';
import type { BeliefView } from '../model/belief.ts';
import type { DesiredState } from '../model/desired-state.ts';
import type { Gate } from '../model/plan.ts';
import { specs } from '../model/specs.ts';
import type { Reconstruction } from './reconstruct.ts';
import {
  possibleUseOf,
  stagedDevices,
  type StagedMounts,
  stagedMounts,
  type UnattributedMounts,
  type UnreadPlace,
  whyPodUnknown,
} from './unattributed-mounts.ts';

export interface LayoutReadingParts {
  readonly layout: Layout;
  readonly belief: Pick<BeliefView, 'volumes'>;
  readonly desired: () => DesiredState;
  readonly touch: (volume: VolumeId) => void;
}

const NOWHERE: ReadonlySet<string> = new Set();
const NOTHING_STAGED: StagedMounts = new Map();

const NOT_READ_YET: Failure = {
  code: 'removed-last',
  message: 'the state root has not been read yet since the start',
  effect: 'none',
};

export class LayoutReading {
  readonly #parts: LayoutReadingParts;
  readonly #read = { layoutRead: false, placesRead: false };
  #unknown: UnattributedMounts | undefined;
  /** What was staged when they were looked at. */
  #staged = NOTHING_STAGED;
  /** As the last scan left them; undefined: there was none. */
  #unread: readonly UnreadPlace[] | undefined;
  /** While places are unknown: all that each volume was seen staged from. */
  readonly #stagedFrom = new Map<VolumeId, ReadonlySet<string>>();

  constructor(parts: LayoutReadingParts) {
    this.#parts = parts;
  }

  /** What was once read whole stays so: of all that came later there is a record. */
  note(found: Reconstruction): void {
    const { belief, desired, touch, layout } = this.#parts;
    const before = this.#signature();
    this.#read.layoutRead ||= found.complete;
    this.#read.placesRead ||= found.placesRead;
    const unknown = this.#read.layoutRead ? undefined : found.unknown;
    this.#unknown = unknown;
    this.#staged =
      unknown === undefined ? NOTHING_STAGED : stagedMounts(belief.volumes, unknown.table, layout);
    this.#unread = found.unreadPlaces ?? this.#unread;
    for (const id of belief.volumes.keys()) this.#noteStaged(id);
    if (this.#read.layoutRead) this.#stagedFrom.clear();
    if (this.#signature() !== before) for (const id of specs(belief.volumes, desired()).keys()) touch(id);
  }

  gateOf(id: VolumeId): Pick<Gate, 'layoutRead' | 'placesRead' | 'possibleUse'> {
    const { layoutRead, placesRead } = this.#read;
    const unknown = this.#unknown;
    if (layoutRead || unknown === undefined) return { placesRead, layoutRead };
    this.#noteStaged(id);
    const stagedFrom = this.#stagedFrom.get(id) ?? NOWHERE;
    const possibleUse = possibleUseOf(id, { unknown, staged: this.#staged, stagedFrom });
    return { placesRead, layoutRead: possibleUse === undefined, possibleUse };
  }

  /** As for `lastToGo`. */
  whyUnknown(pod: PodUid): Failure | undefined {
    return this.#unread === undefined ? NOT_READ_YET : whyPodUnknown(pod, this.#unread, this.#parts.layout);
  }

  forgotten(id: VolumeId): void {
    this.#stagedFrom.delete(id);
  }

  #signature(): string {
    const blockers = this.#unknown?.unread.map(({ blocker }) => blocker);
    return JSON.stringify([
      this.#read,
      this.#unknown?.mounts,
      blockers,
      this.#unread?.map(({ path }) => path),
    ]);
  }

  #noteStaged(id: VolumeId): void {
    const volume = this.#parts.belief.volumes.get(id);
    if (volume === undefined || this.#unknown === undefined) return;
    const devices = stagedDevices(volume, this.#unknown.table, this.#parts.layout);
    const seen = this.#stagedFrom.get(id) ?? [];
    if (devices.length > 0) this.#stagedFrom.set(id, new Set([...seen, ...devices]));
  }
}
