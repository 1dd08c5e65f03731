/** Where a CSI volume is staged and published: as files in a directory of ours, as a block device by a link. */
import type { Host } from '../../mount/host.ts';
import { createBlockPlaces } from './block/block-places.ts';
import {
  attachmentId,
  type DriverPath,
  driverPathIn,
  type VolumeDirectory,
} from './call/volume-directory.ts';
import type { Layout } from '../layout/layout.ts';
import { podDirectories } from '../layout/pod-directory.ts';
import type { CsiVolumeSpec, PublicationSpec } from '../volume.ts';

export interface CsiPlaces {
  staging(spec: CsiVolumeSpec): DriverPath;
  publication(spec: CsiVolumeSpec, publication: PublicationSpec): DriverPath;
}

export function createCsiPlaces(host: Host, layout: Layout, nodeName: string): CsiPlaces {
  const blockPlaces = createBlockPlaces(host, layout, nodeName);
  return {
    staging: (spec) =>
      spec.mode === 'Block' ? blockPlaces.staging(spec) : driverPathIn(host, deviceDirectory(layout, spec)),
    publication: (spec, publication) =>
      spec.mode === 'Block'
        ? blockPlaces.publication(spec, publication)
        : driverPathIn(host, publicationDirectory(layout, nodeName, spec, publication)),
  };
}

function deviceDirectory(layout: Layout, spec: CsiVolumeSpec): VolumeDirectory {
  return {
    path: layout.deviceDirectory(spec.driver, spec.volumeHandle),
    mountPoint: layout.stagingPath(spec),
    mountPointMadeBy: 'us',
    data: { driver: spec.driver, volumeHandle: spec.volumeHandle, seLinuxContext: spec.seLinuxContext },
    above: undefined,
  };
}

function publicationDirectory(
  layout: Layout,
  nodeName: string,
  spec: CsiVolumeSpec,
  publication: PublicationSpec,
): VolumeDirectory {
  return {
    path: layout.volumeDirectory(spec, publication),
    mountPoint: layout.target(spec, publication),
    mountPointMadeBy: 'driver',
    data: {
      driver: spec.driver,
      volumeHandle: spec.volumeHandle,
      specName: publication.specName,
      nodeName,
      attachmentId: attachmentId(spec.volumeHandle, spec.driver, nodeName),
      lifecycle: spec.lifecycle,
      seLinuxContext: spec.seLinuxContext,
    },
    above: podDirectories(layout, publication.pod.uid),
  };
}
