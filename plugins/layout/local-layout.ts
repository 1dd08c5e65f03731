/** Where local volumes lie outside the pods, and the links to their devices in pods. */
import { type AbsolutePath, below } from '../../mount/host.ts';
import { DEVICES, FORMATS, intentFile, LOCAL_DEVICES, LOCAL_STAGES, LOCAL_VOLUMES } from './component.ts';
import type { DevicePublicationLayout, PlaceInPod } from './place-in-pod.ts';

export interface LocalLayout {
  /** `plugins/kubernetes.io/local-volume/mounts`: the file systems of local devices, by PersistentVolume. */
  readonly localStages: AbsolutePath;
  localStage(specName: string): AbsolutePath;
  /**
   * `<root>/mooring/formats/<specName>.json` (`.j` where the name is long): its device is being formatted, or was when
   * that was cut short.
   */
  formatIntent(specName: string): AbsolutePath;
  /** `plugins/kubernetes.io~local-volume/volumeDevices`: the devices that pods have, by PersistentVolume. */
  readonly localDevices: AbsolutePath;
  /** `<specName>` there: the `held` files, by uid of the pod. */
  localDevice(specName: string): AbsolutePath;
  /** The places of one publication of a local device: nobody else makes anything for it. */
  localDevicePublication(publication: PlaceInPod): DevicePublicationLayout;
}

export function localLayout(own: AbsolutePath, plugins: AbsolutePath, pods: AbsolutePath): LocalLayout {
  const localStages = below(plugins, ...LOCAL_STAGES);
  const localDevices = below(plugins, ...LOCAL_DEVICES);
  return {
    localStages,
    localStage: (specName) => below(localStages, specName),
    formatIntent: (specName) => below(own, FORMATS, intentFile(specName)),
    localDevices,
    localDevice: (specName) => below(localDevices, specName),
    localDevicePublication: ({ pod, specName }) => {
      const held = below(localDevices, specName, pod.uid);
      const link = below(pods, pod.uid, DEVICES, LOCAL_VOLUMES, specName);
      return { published: held, held, link };
    },
  };
}
