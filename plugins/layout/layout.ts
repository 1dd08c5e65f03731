/**
 * Identity to path, and by owner.ts back: the kubelet's layout below its root, bit for bit, so that unmodified CSI
 * drivers work and a kubelet's node can be taken over (D-7; the layout is that of v1.36).
 */
import { hash } from 'node:crypto';
import { type AbsolutePath, below } from '../../mount/host.ts';
import {
  BLOCK_DATA,
  BLOCK_HOLDS,
  BLOCK_STAGES,
  BLOCK_TARGETS,
  DEVICES,
  DRIVER_VOLUMES,
  escapePlugin,
  GLOBAL_MOUNT,
  LOCAL_VOLUMES,
  MARKERS,
  MOUNT,
  OWN,
  OWN_FILES,
  PLUGINS,
  PODS,
  RECORDS,
  REGISTRY,
  STAGES,
  SUBPATHS,
  VOLUMES,
  WRAPPED,
} from './component.ts';
import { type LocalLayout, localLayout } from './local-layout.ts';
import { type IscsiLayout, iscsiLayout } from './iscsi-layout.ts';
import { ownerBelow } from './owner.ts';
import type { PathOwner } from './path-owner.ts';
import type { DevicePublicationLayout, PlaceInPod } from './place-in-pod.ts';
import {
  type CsiVolumeSpec,
  hasDevice,
  pluginOf,
  type PluginName,
  type PodUid,
  type Subpath,
  type VolumeSpec,
} from '../volume.ts';

export interface Layout extends LocalLayout, IscsiLayout {
  readonly root: AbsolutePath;
  /** `<root>/pods` */
  readonly pods: AbsolutePath;
  /** `<root>/plugins` */
  readonly plugins: AbsolutePath;
  /** `<root>/plugins_registry` */
  readonly registry: AbsolutePath;
  /** `<root>/mooring`: ours, beside the kubelet's. */
  readonly own: AbsolutePath;
  /** `<root>/mooring/records` */
  readonly records: AbsolutePath;
  /** `<root>/mooring/source.json`: which directory the wish was read from. */
  readonly source: AbsolutePath;
  /** `<root>/mooring/agent.lock`: held by the one agent that runs. */
  readonly agentLock: AbsolutePath;
  /** `<root>/mooring/helpers.lock`: held by the children of an agent. */
  readonly helpersLock: AbsolutePath;
  /** The file of one volume's record. */
  record(name: string): AbsolutePath;
  podDirectory(pod: PodUid): AbsolutePath;
  /** The directories below a pod's own; `pod` is its name among the pods' directories, whether it is a uid or not. */
  podFolders(pod: string): PodFolders;
  /** `pods/<uid>/volumes/<plugin with ~>/<specName>` */
  volumeDirectory(spec: Pick<VolumeSpec, 'id'>, publication: PlaceInPod): AbsolutePath;
  /**
   * `pods/<uid>/plugins/kubernetes.io~empty-dir/<specName>`, holding the kubelet's `ready` marker. For a secret,
   * configMap or their like the name is `wrapped_<specName>`: the kubelet wraps an emptyDir of that name.
   */
  readyDirectory(spec: Pick<VolumeSpec, 'kind'>, publication: PlaceInPod): AbsolutePath;
  /**
   * Where the pod sees it: the volume directory, for CSI its `mount`, for a device the link
   * `pods/<uid>/volumeDevices/<plugin with ~>/<specName>`. hostPath has no place of its own.
   */
  target(spec: VolumeSpec, publication: PlaceInPod): AbsolutePath;
  /** `target` of any CSI volume with files. */
  csiTarget(publication: PlaceInPod): AbsolutePath;
  /** The target_path the driver of a CSI volume is given: `target`, and for a block volume `published`. */
  driverTarget(spec: CsiVolumeSpec, publication: PlaceInPod): AbsolutePath;
  /** `pods/<uid>/volume-subpaths/<specName>`: the binds of parts of the volume. */
  subpathDirectory(publication: PlaceInPod): AbsolutePath;
  /** `pods/<uid>/volume-subpaths/<specName>/<container>/<index>`: where a part of it is bound. */
  subpath(publication: PlaceInPod, subpath: Pick<Subpath, 'container' | 'index'>): AbsolutePath;
  /** Where the kernel has a mount when it is published: `target`, and for a device the `held` file. */
  mountPoint(spec: VolumeSpec, publication: PlaceInPod): AbsolutePath;
  /** `plugins/kubernetes.io/csi`: a directory for each driver that stages, and `blockDevices`. */
  readonly stages: AbsolutePath;
  /** `plugins/kubernetes.io/csi/<driver>` */
  driverDirectory(driver: string): AbsolutePath;
  /** `plugins/kubernetes.io/csi/<driver>/<sha256hex(volumeHandle)>` */
  deviceDirectory(driver: string, volumeHandle: string): AbsolutePath;
  /** The staging_target_path: its `globalmount`, and for a block volume `…/csi/volumeDevices/staging/<specName>`. */
  stagingPath(spec: StagedSpec): AbsolutePath;
  /** `plugins/kubernetes.io/csi/volumeDevices`: all that block volumes have outside the pods. */
  readonly blockDevices: AbsolutePath;
  /** `plugins/kubernetes.io/csi/volumeDevices/staging` */
  readonly blockStages: AbsolutePath;
  /** `plugins/kubernetes.io/csi/volumeDevices/publish` */
  readonly blockTargets: AbsolutePath;
  /** What all publications of the block volume of this name share. */
  blockVolume(specName: string): BlockVolumeLayout;
  /** The places of one publication of a block volume. */
  blockPublication(publication: PlaceInPod): BlockPublicationLayout;
  /** The same of any volume of which pods have a device; `published` is what its link leads to. */
  devicePublication(spec: VolumeSpec, publication: PlaceInPod): DevicePublicationLayout;
  /** The inverse of all of these, as `ownerBelow`. */
  ownerOf(path: string): PathOwner | undefined;
}

/** Structural directories of a pod: they hold what is the pod's and nothing else. */
export interface PodFolders {
  /** `volumes` */
  readonly volumes: AbsolutePath;
  /** `volumes/<plugin with ~>` */
  volumesOf(plugin: PluginName): AbsolutePath;
  /** `volumeDevices` */
  readonly devices: AbsolutePath;
  /** `volumeDevices/kubernetes.io~csi`: the links to the pod's block devices. */
  readonly links: AbsolutePath;
  /** `volumeDevices/kubernetes.io~local-volume`: those to devices of the machine. */
  readonly localLinks: AbsolutePath;
  /** `volume-subpaths` */
  readonly subpaths: AbsolutePath;
  /** `plugins` */
  readonly plugins: AbsolutePath;
  /** `plugins/kubernetes.io~empty-dir`: the directories of the readiness markers. */
  readonly markers: AbsolutePath;
}

/** What of a CSI volume decides where it is staged. */
export type StagedSpec = Pick<CsiVolumeSpec, 'driver' | 'volumeHandle' | 'mode' | 'specName'>;

/** Below `plugins/kubernetes.io/csi/volumeDevices`. */
export interface BlockVolumeLayout {
  /** `<specName>` */
  readonly directory: AbsolutePath;
  /** `<specName>/data`: the directory of the kubelet's vol_data.json. */
  readonly data: AbsolutePath;
  /** `<specName>/dev`: the `held` files, by uid of the pod. */
  readonly holds: AbsolutePath;
  /** `publish/<specName>`: the targets of the driver, by uid of the pod. */
  readonly targets: AbsolutePath;
  /** `staging/<specName>`: the staging_target_path. */
  readonly stage: AbsolutePath;
}

/**
 * Below `plugins/kubernetes.io/csi/volumeDevices`, and in the pod. `published` is `publish/<specName>/<podUid>`, the
 * target_path of the driver; `held` is `<specName>/dev/<podUid>`.
 */
export interface BlockPublicationLayout extends DevicePublicationLayout {
  /** `<specName>/data`: the directory of the kubelet's vol_data.json. */
  readonly data: AbsolutePath;
}

export function sha256Hex(text: string): string {
  return hash('sha256', text);
}

/** The directories of the root that the agent manages, or a kubelet does. */
export function takenBelow(root: AbsolutePath): readonly AbsolutePath[] {
  return [PODS, PLUGINS, REGISTRY, OWN].map((name) => below(root, name));
}

export function createLayout(root: AbsolutePath): Layout {
  const pods = below(root, PODS);
  const plugins = below(root, PLUGINS);
  const own = below(root, OWN);
  const stages = below(plugins, ...STAGES);
  const blockDevices = below(stages, DEVICES);
  // Asked at every look at a volume, and a digest costs more than the look; a spec is never changed.
  const stagingPaths = new WeakMap<StagedSpec, AbsolutePath>();
  const layout: Layout = {
    root,
    pods,
    plugins,
    registry: below(root, REGISTRY),
    own,
    records: below(own, RECORDS),
    source: below(own, OWN_FILES.source),
    agentLock: below(own, OWN_FILES.agentLock),
    helpersLock: below(own, OWN_FILES.helpersLock),
    record: (name) => below(layout.records, name),
    podDirectory: (pod) => below(pods, pod),
    podFolders: (pod) => podFoldersIn(below(pods, pod)),
    volumeDirectory: ({ id }, { pod, specName }) =>
      below(pods, pod.uid, VOLUMES, escapePlugin(pluginOf(id)), specName),
    readyDirectory: ({ kind }, { pod, specName }) => {
      const name = kind === 'empty-dir' ? specName : WRAPPED + specName;
      return below(pods, pod.uid, PLUGINS, MARKERS, name);
    },
    target: (spec, publication) => {
      if (spec.kind === 'host-path') return spec.path;
      if (spec.kind === 'orphan') return spec.path;
      if (hasDevice(spec)) return layout.devicePublication(spec, publication).link;
      return spec.kind === 'csi' ? layout.csiTarget(publication) : layout.volumeDirectory(spec, publication);
    },
    csiTarget: ({ pod, specName }) => below(pods, pod.uid, VOLUMES, DRIVER_VOLUMES, specName, MOUNT),
    driverTarget: (spec, publication) =>
      spec.mode === 'Block'
        ? layout.blockPublication(publication).published
        : layout.target(spec, publication),
    stages,
    driverDirectory: (driver) => below(stages, driver),
    deviceDirectory: (driver, volumeHandle) => below(stages, driver, sha256Hex(volumeHandle)),
    subpathDirectory: ({ pod, specName }) => below(pods, pod.uid, SUBPATHS, specName),
    subpath: (publication, { container, index }) =>
      below(layout.subpathDirectory(publication), container, String(index)),
    mountPoint: (spec, publication) =>
      hasDevice(spec) ? layout.devicePublication(spec, publication).held : layout.target(spec, publication),
    stagingPath: (spec) => {
      const known = stagingPaths.get(spec);
      if (known !== undefined) return known;
      const path =
        spec.mode === 'Block'
          ? layout.blockVolume(spec.specName).stage
          : below(layout.deviceDirectory(spec.driver, spec.volumeHandle), GLOBAL_MOUNT);
      stagingPaths.set(spec, path);
      return path;
    },
    devicePublication: ({ kind }, place) =>
      kind === 'local' ? layout.localDevicePublication(place) : layout.blockPublication(place),
    ...localLayout(own, plugins, pods),
    ...iscsiLayout(plugins, own),
    ...blockLayout(blockDevices, pods),
    ownerOf: (path) => ownerBelow(root, path),
  };
  return layout;
}

type BlockLayout = Pick<
  Layout,
  'blockDevices' | 'blockStages' | 'blockTargets' | 'blockVolume' | 'blockPublication'
>;

function blockLayout(blockDevices: AbsolutePath, pods: AbsolutePath): BlockLayout {
  const blockStages = below(blockDevices, BLOCK_STAGES);
  const blockTargets = below(blockDevices, BLOCK_TARGETS);
  return {
    blockDevices,
    blockStages,
    blockTargets,
    blockVolume: (specName) => ({
      directory: below(blockDevices, specName),
      data: below(blockDevices, specName, BLOCK_DATA),
      holds: below(blockDevices, specName, BLOCK_HOLDS),
      targets: below(blockTargets, specName),
      stage: below(blockStages, specName),
    }),
    blockPublication: ({ pod, specName }) => ({
      data: below(blockDevices, specName, BLOCK_DATA),
      published: below(blockTargets, specName, pod.uid),
      held: below(blockDevices, specName, BLOCK_HOLDS, pod.uid),
      link: below(pods, pod.uid, DEVICES, DRIVER_VOLUMES, specName),
    }),
  };
}

function podFoldersIn(directory: AbsolutePath): PodFolders {
  const volumes = below(directory, VOLUMES);
  const devices = below(directory, DEVICES);
  const plugins = below(directory, PLUGINS);
  return {
    volumes,
    volumesOf: (plugin) => below(volumes, escapePlugin(plugin)),
    devices,
    links: below(devices, DRIVER_VOLUMES),
    localLinks: below(devices, LOCAL_VOLUMES),
    subpaths: below(directory, SUBPATHS),
    plugins,
    markers: below(plugins, MARKERS),
  };
}
