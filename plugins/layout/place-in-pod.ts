/** Where in a pod a volume is, and the places of one that is a device there. */
import type { AbsolutePath } from '../../mount/host.ts';
import type { PublicationSpec } from '../volume.ts';

/** Which volume of which pod. */
export type PlaceInPod = Pick<PublicationSpec, 'specName'> & {
  readonly pod: Pick<PublicationSpec['pod'], 'uid'>;
};

/** The places of a device that a pod has. */
export interface DevicePublicationLayout {
  /** What the link leads to. */
  readonly published: AbsolutePath;
  /** Our bind of the device, which a loop device holds open. */
  readonly held: AbsolutePath;
  /** `pods/<podUid>/volumeDevices/<plugin with ~>/<specName>`: what the runtime of the pod resolves. */
  readonly link: AbsolutePath;
}
