/** Volumes and places found on disk that nothing is known of, as they are gathered. */
import type { Ground } from '../../mount/ground.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import type { MountTable } from '../../mount/mount-table.ts';
import { driverOf, isInline, isOrphan, stagingDirectoryOf } from '../../plugins/kinds/volume-questions.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import {
  RECONSTRUCTED,
  type PodUid,
  type PublicationKey,
  publicationKey,
  type PublicationSpec,
  type VolumeId,
  type VolumeSpec,
} from '../../plugins/volume.ts';
import {
  ABSENT,
  type ActualPublication,
  type ActualState,
  type ActualVolume,
  RESTARTED,
  isBegun,
  wasAbsent,
} from '../model/actual-state.ts';
import { latePlaces } from '../model/tombstone.ts';
import type { DiskReader } from './disk-reader.ts';

/** One look at the layout on disk: everything that reads it, or adds to what is found, is given this first. */
export interface LayoutReading {
  readonly host: Host;
  readonly layout: Layout;
  /** What is believed already; read as the look goes, so it may change meanwhile. */
  readonly known: ActualState;
  readonly ground: Pick<Ground, 'strangerOver'>;
  readonly disk: DiskReader;
  /** As the kernel had it when the look began, or when it was asked again. */
  readonly table: MountTable;
  readonly reconstructed: Reconstructed;
}

/** What was found so far, with what is known already. */
export interface Reconstructed {
  /** Adds a place unless it is known. That it is being set up says nothing of what was there before. */
  place(spec: VolumeSpec, stage: boolean, publication: PublicationSpec): void;
  staged(spec: VolumeSpec): void;
  isKnownPlace(publication: PublicationKey): boolean;
  /** And not as something that nobody explains: an orphan does not tell whose the place is. */
  isExplainedPlace(publication: PublicationKey): boolean;
  /** As `isKnownPlace`, with what became known since the scan began. */
  isBelieved(publication: PublicationKey): boolean;
  isKnownPod(pod: PodUid): boolean;
  /** Takes a volume back that was added. */
  drop(volume: VolumeId): void;
  all(): ActualState;
  list(): readonly ActualVolume[];
}

/** One that is being taken down has its mount still; one that is being set up has none yet. */
function stagedIn(known: ActualState): ReadonlySet<VolumeId> {
  const isStaged = ({ staged, stagedMount }: ActualVolume): boolean =>
    !wasAbsent(staged) || (isBegun(staged) && stagedMount !== undefined);
  return new Set([...known.values()].filter(isStaged).map(({ spec }) => spec.id));
}

export function createReconstructed(known: ActualState): Reconstructed {
  const found = new Map<VolumeId, ActualVolume>();
  const placesOf = (volumes: readonly ActualVolume[]): readonly ActualPublication[] =>
    volumes.flatMap((one) => [...one.publications.values()]);
  const publications = placesOf([...known.values()]);
  const isSure = ({ presence }: ActualPublication): boolean => !wasAbsent(presence);
  const placeOf = (volume: VolumeId, publication: PublicationKey): string => `${volume} ${publication}`;
  // What is taken down while the look goes may have been listed before: it stays what it was at the beginning.
  const knownAtFirst = new Set(
    [...known.values()].flatMap(({ spec: { id }, publications: places }) =>
      [...places.values()].filter(isSure).map(({ spec }) => placeOf(id, spec.key)),
    ),
  );
  const stagedAtFirst = stagedIn(known);
  const late = [...known.values()].flatMap(latePlaces).map(({ publication }) => publication);
  const keysOf = (volumes: readonly ActualVolume[]): Set<PublicationKey> => {
    const sure = placesOf(volumes).filter(isSure);
    return new Set([...sure.map(({ spec }) => spec), ...late].map(({ key }) => key));
  };
  const places = keysOf([...known.values()]);
  const explained = keysOf([...known.values()].filter(({ spec }) => !isOrphan(spec)));
  const pods = new Set([...publications.map(({ spec }) => spec), ...late].map(({ pod }) => pod.uid));
  const volume = (spec: VolumeSpec, stage: boolean): ActualVolume =>
    found.get(spec.id) ?? {
      spec: known.get(spec.id)?.spec ?? spec,
      reconstructed: known.has(spec.id) ? undefined : true,
      isInherited: true,
      needs: { attach: false, stage, expand: false },
      // Only the driver could tell; one that does not attach says so at once. An inline volume never is.
      attached: driverOf(spec) !== undefined && !isInline(spec) ? RESTARTED : ABSENT,
      staged: stage ? RESTARTED : ABSENT,
      publishContext: undefined,
      stagedMount: undefined,
      publications: new Map<PublicationKey, ActualPublication>(),
      sizeBytes: undefined,
      refusedExpansion: undefined,
      quarantine: undefined,
    };
  return {
    place(spec, stage, publication) {
      if (knownAtFirst.has(placeOf(spec.id, publication.key))) return;
      const believed = known.get(spec.id)?.publications.get(publication.key);
      if (believed !== undefined && isSure(believed)) return;
      const entry = { spec: publication, presence: RESTARTED, generation: undefined, mount: undefined };
      const now = volume(spec, stage);
      pods.add(publication.pod.uid);
      places.add(publication.key);
      if (!isOrphan(spec)) explained.add(publication.key);
      found.set(spec.id, { ...now, publications: new Map([...now.publications, [publication.key, entry]]) });
    },
    staged(spec) {
      const { staged = ABSENT } = known.get(spec.id) ?? {};
      if (stagedAtFirst.has(spec.id) || !wasAbsent(staged)) return;
      found.set(spec.id, {
        ...volume(spec, true),
        needs: { attach: false, stage: true, expand: false },
        staged: RESTARTED,
      });
    },
    isKnownPlace: (publication) => places.has(publication),
    isExplainedPlace: (publication) => explained.has(publication),
    isBelieved: (publication) => [...known.values()].some((one) => one.publications.has(publication)),
    isKnownPod: (pod) => pods.has(pod),
    drop: (id) => void found.delete(id),
    all: () => found,
    list: () => [...found.values()],
  };
}

/** Whether a volume is known, staged or not, that has this staging directory. */
export function isStagingDirectory({ known, layout }: LayoutReading, directory: AbsolutePath): boolean {
  return [...known.values()].some(({ spec }) => stagingDirectoryOf(spec, layout) === directory);
}

/** Those of the driver's volumes that are staged, or may be. */
export function stagedDirectories(
  known: ActualState,
  layout: Layout,
  driver: string,
): ReadonlySet<AbsolutePath> {
  const directories = new Set<AbsolutePath>();
  for (const { spec, staged } of known.values()) {
    if (driverOf(spec) !== driver || wasAbsent(staged)) continue;
    const directory = stagingDirectoryOf(spec, layout);
    if (directory !== undefined) directories.add(directory);
  }
  return directories;
}

/** A pod found on disk has no name any more; its uid is what teardown needs. */
export function reconstructedPublication(uid: PodUid, specName: string): PublicationSpec {
  const pod = { uid, name: '', namespace: '', serviceAccount: '' };
  return { key: publicationKey(uid, specName), pod, specName, readOnly: false, origin: RECONSTRUCTED };
}
