/** From a pod and what stands of its volumes to what each of its containers gets. Pure. */
import type { Container, SeLinuxLabel, VolumeMount } from '../../kubernetes/objects/container.ts';
import type { Pod } from '../../kubernetes/objects/objects.ts';
import { driverOf, imageOf, isDevice } from '../../plugins/kinds/volume-questions.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import { isSameSubpaths, type WantedImage } from '../../plugins/volume.ts';
import { shownVolumeId } from '../status/status-text.ts';
import { reasonSentence } from '../status/sentence.ts';
import { isOnlyRead, standingSpec } from '../status/status-changed.ts';
import type { PodStatus, PodVolumeStatus } from '../status/status-document.ts';
import type { StatusFacts } from '../status/status-facts.ts';
import { type PodPlace, podsOf, volumesOf } from '../status/status-places.ts';
import type { Reason, VolumeState } from '../status/volume-status.ts';
import type {
  ContainerMount,
  ContainerMounts,
  MountsDocument,
  PlaceInContainer,
  StatedLabel,
} from './mounts-document.ts';

/** What stands of one volume of the pod, by the pod's own name for it. */
interface StandingVolume {
  readonly state: VolumeState;
  /** Where it is, or will be. */
  readonly path: string;
  readonly readOnly: boolean;
  readonly isDevice: boolean;
  /** Nothing of it is on this machine. */
  readonly image: WantedImage | undefined;
  readonly driver: string | undefined;
  readonly reason: Reason | null;
  /** Where a part of it is bound for a container, by the index of its mount; undefined: not yet as it is wanted. */
  subpath(container: string, index: number): string | undefined;
}

type StandingVolumes = ReadonlyMap<string, StandingVolume>;

/** `status` is the pod's, and of the same moment as `facts`: the one word for how a volume is comes from there. */
export function mountsOf(facts: StatusFacts, layout: Layout, pod: Pod, status: PodStatus): MountsDocument {
  const volumes = standingVolumes(facts, layout, pod, status);
  const containers = pod.containers.map((container) => containerMounts(container, pod, volumes));
  const { namespace, name, uid } = pod.reference;
  return {
    apiVersion: 'mooring/v1',
    kind: 'Mounts',
    pod: { namespace, name, uid },
    ready: containers.every(isReady),
    containers,
  };
}

/** It can be bound, or is an image that what starts the container mounts. */
export function isMountReady({ hostPath, image }: ContainerMount): boolean {
  return hostPath !== null || image !== null;
}

/** Every place of the container can be bound, or mounted by what starts it. */
export function isReady({ mounts, devices }: ContainerMounts): boolean {
  return mounts.every(isMountReady) && devices.every(({ hostPath }) => hostPath !== null);
}

function standingVolumes(
  facts: StatusFacts,
  layout: Layout,
  { reference: { uid } }: Pod,
  status: PodStatus,
): StandingVolumes {
  const volumes = new Map<string, StandingVolume>();
  const places = podsOf(facts, volumesOf(facts)).find(({ reference }) => reference.uid === uid)?.places ?? [];
  for (const place of places) {
    const { spec, wanted } = place;
    const told = status.volumes.find((one) => isSamePlace(one, place));
    if (wanted === undefined || told === undefined) continue;
    const standing = standingSpec(place.volume);
    const subpath = (container: string, index: number): string | undefined => {
      const isBound = place.actual !== undefined && isSameSubpaths(place.actual.spec, wanted.spec);
      return isBound ? layout.subpath(spec, { container, index }) : undefined;
    };
    for (const name of wanted.volumeNames ?? [spec.specName]) {
      volumes.set(name, {
        state: told.state,
        path: layout.target(standing, spec),
        readOnly: isOnlyRead(place),
        isDevice: isDevice(standing),
        image: imageOf(standing),
        driver: driverOf(standing),
        reason: told.reason,
        subpath,
      });
    }
  }
  for (const { name, state, reason, id } of status.volumes) {
    if (id !== null || volumes.has(name)) continue;
    volumes.set(name, { ...NOTHING_STANDS, state, reason });
  }
  return volumes;
}

const NOTHING_STANDS = {
  path: '',
  readOnly: false,
  isDevice: false,
  image: undefined,
  driver: undefined,
  subpath: () => undefined,
} as const satisfies Partial<StandingVolume>;

function isSamePlace({ name, id }: PodVolumeStatus, { volume, spec }: PodPlace): boolean {
  return name === spec.specName && id === shownVolumeId(volume.spec.id);
}

function containerMounts(container: Container, pod: Pod, volumes: StandingVolumes): ContainerMounts {
  const sourceIsReadOnly = new Set(
    pod.volumes.filter(({ source }) => 'readOnly' in source && source.readOnly).map(({ name }) => name),
  );
  const place = (name: string, path: string, readOnly: boolean, block: boolean): PlaceInContainer => ({
    volume: name,
    containerPath: absolute(path),
    ...standingAs(volumes.get(name), block),
    readOnly: readOnly || sourceIsReadOnly.has(name) || volumes.get(name)?.readOnly === true,
  });
  return {
    name: container.name,
    kind: container.kind,
    seLinux: statedLabel(container.seLinux),
    mounts: container.mounts.map((mount, index) => ({
      ...partOf(
        place(mount.volume, mount.path, mount.readOnly, false),
        mount,
        volumes.get(mount.volume)?.subpath(container.name, index),
      ),
      ...imageIn(volumes.get(mount.volume), mount),
      recursiveReadOnly: RECURSION[mount.recursiveReadOnly],
      propagation: mount.propagation,
      subPath: mount.part?.text ?? null,
    })),
    devices: container.devices.map(({ volume, path }) => place(volume, path, false, true)),
  };
}

const RECURSION = { Disabled: 'no', IfPossible: 'if-possible', Enabled: 'required' } as const;

type Standing = Pick<PlaceInContainer, 'hostPath' | 'state' | 'sentence' | 'reason'>;

/** A path is told of what stands and nothing else: below one that is still empty a container writes elsewhere. */
function standingAs(volume: StandingVolume | undefined, block: boolean): Standing {
  if (volume === undefined) {
    const sentence = 'nothing is known of this volume yet';
    return { hostPath: null, state: 'mounting', sentence, reason: null };
  }
  const { state, path, driver, reason } = volume;
  if (state !== 'mounted') {
    const sentence = reason === null ? WITHOUT_REASON[state] : reasonSentence(reason, driver ?? null);
    return { hostPath: null, state, sentence, reason };
  }
  if (volume.image !== undefined) return { hostPath: null, state, sentence: null, reason };
  if (volume.isDevice !== block) {
    const sentence = block ? 'it stands as files, not as a device' : 'it stands as a device, not as files';
    return { hostPath: null, state: 'blocked', sentence, reason };
  }
  return { hostPath: path, state, sentence: null, reason };
}

const WITHOUT_REASON: Readonly<Record<Exclude<VolumeState, 'mounted'>, string>> = {
  mounting: 'it is on its way up',
  waiting: 'it will be tried again by itself',
  blocked: 'it is blocked',
  unmounting: 'it is on its way down',
  kept: 'it is not wanted any more as far as is known',
};

/** The bind of the part, in place of the volume that it is of. */
function partOf(place: PlaceInContainer, { part }: VolumeMount, path: string | undefined): PlaceInContainer {
  if (part === undefined || place.hostPath === null) return place;
  if (path !== undefined) return { ...place, hostPath: path };
  const sentence = 'the volume stands, and this part of it is not bound yet';
  return { ...place, hostPath: null, state: 'mounting', sentence };
}

/** Where the volume is an image: who mounts it, in words too. */
function imageIn(
  volume: StandingVolume | undefined,
  { part }: VolumeMount,
): Pick<ContainerMount, 'image'> & Partial<ContainerMount> {
  const image = volume?.state === 'mounted' ? volume.image : undefined;
  if (image === undefined) return { image: null };
  if (part !== undefined)
    return { image: null, state: 'blocked', sentence: 'a part of an image is not supported by this version' };
  return { image, sentence: `what starts the container mounts the image ${image.reference}` };
}

/** As the kubelet takes a path that is not absolute. */
function absolute(path: string): string {
  return path.startsWith('/') ? path : `/${path}`;
}

function statedLabel(label: SeLinuxLabel | undefined): StatedLabel | null {
  if (label === undefined) return null;
  const { user = null, role = null, type = null, level = null } = label;
  return { user, role, type, level };
}
