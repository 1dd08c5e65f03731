/**
 * Identity to path and back: the kubelet's layout below its root, bit for bit, so that unmodified CSI drivers work and
 * a kubelet's node can be taken over (D-7; the layout is that of v1.36).
 */
import { createHash } from 'node:crypto';
import { type AbsolutePath, below } from '../../mount/host.ts';
import {
  type CsiVolumeSpec,
  isBlock,
  type PodUid,
  type PublicationSpec,
  SPEC_PLUGIN,
  type VolumeSpec,
} from '../volume.ts';

export interface Layout {
  readonly root: AbsolutePath;
  /** `<root>/pods` */
  readonly pods: AbsolutePath;
  /** `<root>/plugins` */
  readonly plugins: AbsolutePath;
  /** `<root>/plugins_registry` */
  readonly registry: AbsolutePath;
  /** `<root>/mooring/records`: ours, beside the kubelet's. */
  readonly records: AbsolutePath;
  /** `<root>/mooring/source.json`: which directory the wish was read from. */
  readonly source: AbsolutePath;
  podDirectory(pod: PodUid): AbsolutePath;
  /** `pods/<uid>/volumes/<plugin with ~>/<specName>` */
  volumeDirectory(spec: VolumeSpec, publication: Pick<PublicationSpec, 'pod' | 'specName'>): AbsolutePath;
  /**
   * `pods/<uid>/plugins/kubernetes.io~empty-dir/<name>`, holding the kubelet's `ready` marker; `name` is the volume's,
   * and `wrapped_<name>` for a secret or configMap.
   */
  readyDirectory(pod: PodUid, name: string): AbsolutePath;
  /**
   * Where the pod sees it: the volume directory, for CSI its `mount`, for a block volume the link
   * `pods/<uid>/volumeDevices/kubernetes.io~csi/<specName>`. hostPath has no place of its own.
   */
  target(spec: VolumeSpec, publication: Pick<PublicationSpec, 'pod' | 'specName'>): AbsolutePath;
  /** The target_path the driver of a CSI volume is given: `target`, and for a block volume `published`. */
  driverTarget(spec: CsiVolumeSpec, publication: Pick<PublicationSpec, 'pod' | 'specName'>): AbsolutePath;
  /** Where the kernel has a mount when it is published: `target`, and for a block volume the `held` file. */
  mountPoint(spec: VolumeSpec, publication: Pick<PublicationSpec, 'pod' | 'specName'>): AbsolutePath;
  /** `plugins/kubernetes.io/csi/<driver>/<sha256hex(volumeHandle)>` */
  deviceDirectory(driver: string, volumeHandle: string): AbsolutePath;
  /** The staging_target_path: its `globalmount`, and for a block volume `…/csi/volumeDevices/staging/<specName>`. */
  stagingPath(spec: StagedSpec): AbsolutePath;
  /** `plugins/kubernetes.io/csi/volumeDevices`: all that block volumes have outside the pods. */
  readonly blockDevices: AbsolutePath;
  /** The places of one publication of a block volume. */
  blockPublication(publication: Pick<PublicationSpec, 'pod' | 'specName'>): BlockPublicationLayout;
}

/** What of a CSI volume decides where it is staged. */
export type StagedSpec = Pick<CsiVolumeSpec, 'driver' | 'volumeHandle' | 'mode' | 'specName'>;

/** Below `plugins/kubernetes.io/csi/volumeDevices`, and in the pod. */
export interface BlockPublicationLayout {
  /** `<specName>/data`: the directory of the kubelet's vol_data.json. */
  readonly data: AbsolutePath;
  /** `publish/<specName>/<podUid>`: the target_path of the driver. */
  readonly published: AbsolutePath;
  /** `<specName>/dev/<podUid>`: our bind of it, which a loop device holds open. */
  readonly held: AbsolutePath;
  /** `pods/<podUid>/volumeDevices/kubernetes.io~csi/<specName>`: the link the pod's runtime resolves. */
  readonly link: AbsolutePath;
}

export function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** The kubelet escapes `/` in plugin names as `~`. */
export function escapePlugin(plugin: string): string {
  return plugin.replaceAll('/', '~');
}

export function createLayout(root: AbsolutePath): Layout {
  const pods = below(root, 'pods');
  const plugins = below(root, 'plugins');
  const blockDevices = below(plugins, 'kubernetes.io', 'csi', 'volumeDevices');
  // Asked at every look at a volume, and a digest costs more than the look; a spec is never changed.
  const stagingPaths = new WeakMap<StagedSpec, AbsolutePath>();
  const layout: Layout = {
    root,
    pods,
    plugins,
    registry: below(root, 'plugins_registry'),
    records: below(root, 'mooring', 'records'),
    source: below(root, 'mooring', 'source.json'),
    podDirectory: (pod) => below(pods, pod),
    volumeDirectory: (spec, { pod, specName }) =>
      below(pods, pod.uid, 'volumes', escapePlugin(SPEC_PLUGIN[spec.kind]), specName),
    readyDirectory: (pod, name) => below(pods, pod, 'plugins', escapePlugin(SPEC_PLUGIN['empty-dir']), name),
    target: (spec, publication) => {
      if (spec.kind === 'host-path') return spec.path;
      if (spec.kind === 'orphan') return spec.path;
      if (isBlock(spec)) return layout.blockPublication(publication).link;
      const directory = layout.volumeDirectory(spec, publication);
      return spec.kind === 'csi' ? below(directory, 'mount') : directory;
    },
    driverTarget: (spec, publication) =>
      spec.mode === 'Block'
        ? layout.blockPublication(publication).published
        : layout.target(spec, publication),
    deviceDirectory: (driver, volumeHandle) =>
      below(plugins, 'kubernetes.io', 'csi', driver, sha256Hex(volumeHandle)),
    mountPoint: (spec, publication) =>
      isBlock(spec) ? layout.blockPublication(publication).held : layout.target(spec, publication),
    stagingPath: (spec) => {
      const known = stagingPaths.get(spec);
      if (known !== undefined) return known;
      const path =
        spec.mode === 'Block'
          ? below(blockDevices, 'staging', spec.specName)
          : below(layout.deviceDirectory(spec.driver, spec.volumeHandle), 'globalmount');
      stagingPaths.set(spec, path);
      return path;
    },
    blockDevices,
    blockPublication: ({ pod, specName }) => ({
      data: below(blockDevices, specName, 'data'),
      published: below(blockDevices, 'publish', specName, pod.uid),
      held: below(blockDevices, specName, 'dev', pod.uid),
      link: below(pods, pod.uid, 'volumeDevices', escapePlugin(SPEC_PLUGIN.csi), specName),
    }),
  };
  return layout;
}
