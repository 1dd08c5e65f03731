/** What `mooring quarantine` and /v1/quarantine show (docs/API.md). Pure. */
import { type ExplainedObstacle, type ExplainedPlace, obstaclesOf } from './explain.ts';
import { quarantineSentence } from './sentence.ts';
import type { QuarantineStatus, VolumeStatus } from './volume-status.ts';
import type { StatusDocument } from './status-document.ts';

/** A volume that is not to be used on this node before it was proven clean. */
export interface QuarantinedVolume extends QuarantineStatus {
  readonly id: string;
  readonly name: string;
  readonly driver: string | null;
  /** namespace/name of pods, sorted. */
  readonly wantedBy: readonly string[];
  readonly publishedTo: readonly string[];
  /** Why it is there, and what it waits for. */
  readonly sentence: string;
  /** What delays its end, with who blocks it. */
  readonly obstacles: readonly ExplainedObstacle[];
}

export interface QuarantineDocument {
  readonly apiVersion: 'mooring/v1';
  readonly kind: 'Quarantine';
  readonly volumes: readonly QuarantinedVolume[];
}

export interface QuarantineChangeDocument {
  readonly apiVersion: 'mooring/v1';
  readonly kind: 'QuarantineChange';
  /** `unchanged`: it was in quarantine already. */
  readonly change: 'added' | 'unchanged' | 'cleared';
  readonly volume: { readonly id: string; readonly name: string };
  /** As it is now; null: in quarantine no more. */
  readonly quarantine: QuarantinedVolume | null;
  /** What happens now, for people. */
  readonly next: string;
}

/** Volumes in the order of the status. */
export function quarantineDocument(status: StatusDocument): QuarantineDocument {
  const places = placesById(status);
  const volumes = status.volumes.flatMap((volume) => {
    return quarantinedVolume(volume, places.get(volume.id) ?? []) ?? [];
  });
  return { apiVersion: 'mooring/v1', kind: 'Quarantine', volumes };
}

/** The one volume of the status, by id; undefined when it is not in quarantine, or not there. */
export function quarantinedById(id: string, status: StatusDocument): QuarantinedVolume | undefined {
  const volume = status.volumes.find((one) => one.id === id);
  return volume === undefined ? undefined : quarantinedVolume(volume, placesById(status).get(id) ?? []);
}

function quarantinedVolume(
  volume: VolumeStatus,
  places: readonly ExplainedPlace[],
): QuarantinedVolume | undefined {
  const { quarantine, id, name, driver, wantedBy, publishedTo } = volume;
  const sentence = quarantineSentence(volume);
  if (quarantine === null || sentence === undefined) return undefined;
  // That it is held back by the quarantine is no news here.
  const obstacles = obstaclesOf(volume, places).filter(({ reason }) => reason.kind !== 'quarantined');
  return { id, name, driver, ...quarantine, wantedBy, publishedTo, sentence, obstacles };
}

function placesById(status: StatusDocument): ReadonlyMap<string, readonly ExplainedPlace[]> {
  const places = new Map<string, ExplainedPlace[]>();
  for (const pod of status.pods) {
    for (const place of pod.volumes) {
      if (place.id === null) continue;
      const ofVolume = places.get(place.id);
      if (ofVolume === undefined) places.set(place.id, [{ pod, place }]);
      else ofVolume.push({ pod, place });
    }
  }
  return places;
}
