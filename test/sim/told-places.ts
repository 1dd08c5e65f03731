/** Which places pods were told of: what nobody was told of may go although it is wanted, to be set up otherwise. */
import type { AbsolutePath } from '../../mount/host.ts';
import type { Layout } from '../../plugins/layout.ts';
import type { PublicationKey, VolumeId } from '../../plugins/volume.ts';
import type { ActualState, ActualVolume } from '../../reconciler/actual-state.ts';
import type { DesiredVolume } from '../../reconciler/desired-state.ts';
import type { Operation } from '../../reconciler/operation.ts';

export class ToldPlaces {
  readonly #layout: Layout;
  readonly #told = new Map<VolumeId, Map<PublicationKey, readonly AbsolutePath[]>>();
  readonly #seen = new Map<VolumeId, ActualVolume>();

  constructor(layout: Layout) {
    this.#layout = layout;
  }

  /** After every event: from the first moment that a place is believed present until it is believed absent. */
  look(actual: ActualState): void {
    for (const [id, volume] of actual) {
      if (this.#seen.get(id) === volume) continue;
      this.#seen.set(id, volume);
      const before = this.#told.get(id);
      const told = new Map<PublicationKey, readonly AbsolutePath[]>();
      for (const [key, { presence, spec }] of volume.publications) {
        const known = before?.get(key);
        if (known === undefined && presence.kind !== 'present') continue;
        const { target, mountPoint, blockPublication } = this.#layout;
        const { published } = blockPublication(spec);
        told.set(key, known ?? [target(volume.spec, spec), mountPoint(volume.spec, spec), published]);
      }
      this.#told.set(id, told);
    }
    for (const id of this.#told.keys()) {
      if (actual.has(id)) continue;
      this.#told.delete(id);
      this.#seen.delete(id);
    }
  }

  /** No container outlives the power. */
  forgetAll(): void {
    this.#told.clear();
    this.#seen.clear();
  }

  has(path: string): boolean {
    return [...this.#told.values()].some((places) =>
      [...places.values()].some((paths) => paths.some((one) => one === path)),
    );
  }

  /**
   * Is the operation the way down of what is wanted otherwise than it was set up, or of a place beside another pod's of
   * a volume for one pod alone, and of which no pod was told?
   */
  isRenewal(operation: Operation, known: ActualVolume | undefined, wanted: DesiredVolume): boolean {
    if (known?.spec.kind !== 'csi') return false;
    const told = this.#told.get(operation.volume);
    if (!('publication' in operation))
      return (told?.size ?? 0) === 0 && JSON.stringify(known.spec) !== JSON.stringify(wanted.spec);
    const { publication } = operation;
    if (told?.has(publication) !== true && isForOnePod(known, wanted) && known.publications.size > 1)
      return true;
    const places = [known, wanted].map((one) => one.publications.get(publication)?.spec);
    const [there, then] = [known, wanted].map(({ spec }, index) => JSON.stringify([spec, places[index]]));
    return told?.has(publication) !== true && there !== then;
  }
}

function isForOnePod(...volumes: readonly Pick<DesiredVolume, 'spec'>[]): boolean {
  return volumes.some(({ spec }) => spec.kind === 'csi' && spec.accessModes.join() === 'ReadWriteOncePod');
}
