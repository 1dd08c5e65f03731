/**
 * Identity to path and back: the kubelet's layout below its root, bit for bit, so that unmodified CSI drivers work and
 * a kubelet's node can be taken over (kubelet v1.36 layout; shared reference "kubelet-volume-manager" §3, §9.3).
 */
import { createHash } from 'node:crypto';
import { type AbsolutePath, below } from '../mount/host.ts';
import { type PodUid, type PublicationSpec, SPEC_PLUGIN, type VolumeSpec } from './volume.ts';

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
  podDirectory(pod: PodUid): AbsolutePath;
  /** `pods/<uid>/volumes/<plugin with ~>/<specName>` */
  volumeDirectory(spec: VolumeSpec, publication: Pick<PublicationSpec, 'pod' | 'specName'>): AbsolutePath;
  /**
   * `pods/<uid>/plugins/kubernetes.io~empty-dir/<name>`, holding the kubelet's `ready` marker; `name` is the volume's,
   * and `wrapped_<name>` for a secret or configMap.
   */
  readyDirectory(pod: PodUid, name: string): AbsolutePath;
  /** Where the pod sees it: the volume directory, and for CSI its `mount`. hostPath has no place of its own. */
  target(spec: VolumeSpec, publication: Pick<PublicationSpec, 'pod' | 'specName'>): AbsolutePath;
  /** `plugins/kubernetes.io/csi/<driver>/<sha256hex(volumeHandle)>` */
  deviceDirectory(driver: string, volumeHandle: string): AbsolutePath;
  /** Its `globalmount`: the staging_target_path. */
  stagingPath(driver: string, volumeHandle: string): AbsolutePath;
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
  const layout: Layout = {
    root,
    pods,
    plugins,
    registry: below(root, 'plugins_registry'),
    records: below(root, 'mooring', 'records'),
    podDirectory: (pod) => below(pods, pod),
    volumeDirectory: (spec, { pod, specName }) =>
      below(pods, pod.uid, 'volumes', escapePlugin(SPEC_PLUGIN[spec.kind]), specName),
    readyDirectory: (pod, name) => below(pods, pod, 'plugins', escapePlugin(SPEC_PLUGIN['empty-dir']), name),
    target: (spec, publication) => {
      if (spec.kind === 'host-path') return spec.path;
      if (spec.kind === 'orphan') return spec.path;
      const directory = layout.volumeDirectory(spec, publication);
      return spec.kind === 'csi' ? below(directory, 'mount') : directory;
    },
    deviceDirectory: (driver, volumeHandle) =>
      below(plugins, 'kubernetes.io', 'csi', driver, sha256Hex(volumeHandle)),
    stagingPath: (driver, volumeHandle) => below(layout.deviceDirectory(driver, volumeHandle), 'globalmount'),
  };
  return layout;
}
