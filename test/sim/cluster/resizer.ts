/**
 * Who grows claims on the side of the storage: PersistentVolumes are as large as the user wishes at once, and then the
 * claim is told that it is the node's turn. As external-resizer with statuses of its own (KEP-1790), or without.
 */
import type { Random } from '../random.ts';
import type { VirtualTime } from '../virtual-time.ts';
import { CLAIMS, VOLUMES } from './cluster-objects.ts';
import { at, type Json, nameOf } from './json-object.ts';
import type { ObjectStore } from './object-store.ts';

export interface ResizerParts {
  readonly store: ObjectStore;
  readonly time: Pick<VirtualTime, 'after'>;
  readonly random: Random;
  /** It says in the claim how far it is. */
  readonly hasStatuses: boolean;
  readonly lagMsMax: () => number;
  readonly growsOnNode: (driver: string) => boolean;
}

const PENDING = { type: 'FileSystemResizePending', status: 'True' };

export class Resizer {
  readonly #parts: ResizerParts;

  constructor(parts: ResizerParts) {
    this.#parts = parts;
    parts.store.onChange(({ collection, before, after }) => {
      if (collection !== VOLUMES || before === undefined || after === undefined) return;
      if (capacityOf(before) !== capacityOf(after)) this.#begin(after);
    });
  }

  #begin(volume: Json): void {
    const { time, random, lagMsMax, hasStatuses } = this.#parts;
    const size = capacityOf(volume);
    if (hasStatuses)
      this.#write(volume, () => ({
        allocatedResources: { storage: size },
        allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
      }));
    time.after(random.between(1, lagMsMax()), () => {
      const { driver } = at(volume, 'spec', 'csi');
      if (!this.#parts.growsOnNode(String(driver)))
        return this.#write(volume, () => ({ capacity: { storage: size }, allocatedResourceStatuses: {} }));
      const turn = {
        allocatedResources: { storage: size },
        allocatedResourceStatuses: { storage: 'NodeResizePending' },
      };
      this.#write(volume, (status) => ({
        conditions: [...othersIn(status), PENDING],
        ...(hasStatuses ? turn : {}),
      }));
    });
  }

  /** One that grows again meanwhile is told of by its next turn; another claim of its name is not its claim. */
  #write(volume: Json, change: (status: Json) => Json): void {
    const { store } = this.#parts;
    const { name } = at(volume, 'spec', 'claimRef');
    const claim = store.get(CLAIMS, String(name));
    if (claim === undefined || at(claim, 'spec')['volumeName'] !== nameOf(volume)) return;
    const now = store.get(VOLUMES, nameOf(volume));
    if (now === undefined || capacityOf(now) !== capacityOf(volume)) return;
    const status = at(claim, 'status');
    store.replace(CLAIMS, { ...claim, status: { ...status, ...change(status) } });
  }
}

function capacityOf(volume: Json): unknown {
  return at(volume, 'spec', 'capacity')['storage'];
}

function othersIn({ conditions }: Json): readonly Json[] {
  const all: readonly Json[] = Array.isArray(conditions) ? conditions : [];
  return all.filter(({ type }) => type !== PENDING.type);
}
