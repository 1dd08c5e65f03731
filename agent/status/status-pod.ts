/** Pods and their places as the status has them. Pure. */
import { driverOf, imageOf, persistentVolumeOf } from '../../plugins/kinds/volume-questions.ts';
import { pluginOf, RECONSTRUCTED, type VolumeSpec } from '../../plugins/volume.ts';
import type { UnresolvedVolume } from '../../reconciler/model/desired-state.ts';
import { isOnlyRead, standingSpec } from './status-changed.ts';
import { quarantineOf, standingQuarantine } from './status-condition.ts';
import type { PodStatus, PodVolumeStatus } from './status-document.ts';
import type { StatusFacts } from './status-facts.ts';
import type { PodPlace, PodPlaces } from './status-places.ts';
import type { DocumentParts } from './status-reason.ts';
import { rung, rungsOf, stateOf } from './status-state.ts';
import { shown, shownVolumeId } from './status-text.ts';

export function podStatuses(pods: readonly PodPlaces[], parts: DocumentParts): readonly PodStatus[] {
  const wantedPods = new Set(parts.facts.pods.map(({ uid }) => uid));
  return pods.map(({ reference, places, unresolved }) => {
    const volumes = [
      ...places.map((place) => placeStatus(place, parts)),
      ...unresolved.map((one) => unresolvedPlace(one, parts)),
    ];
    volumes.sort((a, b) => (a.name < b.name ? -1 : 1));
    const { namespace, name, uid } = reference;
    const wanted = wantedPods.has(uid) || volumes.some((volume) => volume.wanted);
    const ready = wanted && volumes.every((volume) => !volume.wanted || volume.state === 'mounted');
    return { namespace, name, uid, wanted, ready, volumes };
  });
}

function placeStatus(one: PodPlace, { facts, layout, reasons }: DocumentParts): PodVolumeStatus {
  const { volume, spec, wanted, actual } = one;
  const standing = actual === undefined ? volume.spec : standingSpec(volume);
  const image = imageOf(standing);
  const published = rung(actual?.presence);
  const obstacle = reasons.obstacleOf(one);
  const isQuarantined = quarantineOf(volume, standingQuarantine(volume, facts.desired)) !== null;
  const state = stateOf({ wanted: wanted !== undefined, published, isQuarantined, obstacle });
  return {
    name: spec.specName,
    id: shownVolumeId(volume.spec.id),
    plugin: pluginOf(volume.spec.id),
    driver: driverOf(volume.spec) ?? null,
    wanted: wanted !== undefined,
    state,
    rungs: { ...rungsOf(volume), published },
    readOnly: isOnlyRead(one),
    path: image === undefined ? shown(layout.target(standing, spec)) : null,
    image: image?.reference ?? null,
    supplementalGid: supplementalGid(volume.spec, facts),
    origin: spec.origin === RECONSTRUCTED ? null : shown(spec.origin),
    reason: state === 'mounted' && obstacle?.publication === undefined ? null : reasons.reasonOf(obstacle),
  };
}

/** A volume of the wish for which there is no VolumeSpec: nothing but its name and the reason is known. */
function unresolvedPlace(one: UnresolvedVolume, { reasons }: DocumentParts): PodVolumeStatus {
  return { ...NOTHING_RESOLVED, name: shown(one.volumeName), reason: reasons.reasonOfUnresolved(one) };
}

function supplementalGid(spec: VolumeSpec, { persistentVolumes }: StatusFacts): number | null {
  const name = persistentVolumeOf(spec);
  const gid = name === undefined ? undefined : persistentVolumes.get(name)?.supplementalGid;
  return typeof gid === 'number' ? gid : null;
}

const NOTHING_RESOLVED = {
  id: null,
  plugin: null,
  driver: null,
  wanted: true,
  state: 'blocked',
  rungs: { attached: 'absent', staged: 'absent', published: 'absent' },
  readOnly: false,
  path: null,
  image: null,
  supplementalGid: null,
  origin: null,
} as const satisfies Partial<PodVolumeStatus>;
