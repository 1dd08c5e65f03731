/** All transitions, as a broker has them. What they import a broker loads, so it is little. */
import { findMount, proveOwnTmpfs } from '../../mount/mounter.ts';
import type { AnyTransition } from '../../mount/transition.ts';
import {
  placeVolumeData,
  prepareVolumeDirectory,
  removeVolumeDirectory,
  undoVolumeDirectory,
} from '../csi/call/volume-directory.ts';
import { lookAtPlaces } from '../../mount/expected-place.ts';
import { removeIscsiStage } from '../iscsi/kubelet-stage.ts';
import { removeBlockDirectories, removeUnknownBlock } from '../layout/block-directory.ts';
import { removeEmptyDeviceDirectory } from '../layout/device-directory.ts';
import { placeDirectory } from '../layout/place-directory.ts';
import { removeUnused } from '../layout/pod-directory.ts';
import { removeVolumeData } from '../layout/volume-data.ts';
import { bindLocalDirectory, bindStagedRoot, removeLocalPlace } from '../local/bind-directory.ts';
import { findLocalPlace } from '../local/local-place.ts';
import { placeNfsMount } from '../nfs/nfs-mount.ts';
import { dropGeneration, isWritten, showGeneration } from '../pod/atomic-writer.ts';
import { publishContent, removeContent } from '../pod/content.ts';
import {
  markMemoryDirectory,
  markReady,
  placeEmptyDirectory,
  removeDirectory,
  removeMemoryDirectory,
} from '../pod/empty-dir.ts';
import { findHiddenNames } from '../pod/nested-mount-points.ts';
import { checkHostPath } from '../pod/host-path.ts';
import { placeSubpaths, removeLeftBinds, removeSubpaths } from '../subpath/subpath-binds.ts';

export const TRANSITIONS: readonly AnyTransition[] = [
  bindLocalDirectory,
  bindStagedRoot,
  checkHostPath,
  dropGeneration,
  findHiddenNames,
  findLocalPlace,
  findMount,
  isWritten,
  lookAtPlaces,
  markMemoryDirectory,
  markReady,
  placeEmptyDirectory,
  placeNfsMount,
  placeSubpaths,
  proveOwnTmpfs,
  publishContent,
  removeContent,
  removeDirectory,
  removeMemoryDirectory,
  removeLeftBinds,
  removeLocalPlace,
  removeSubpaths,
  showGeneration,
  placeDirectory,
  placeVolumeData,
  prepareVolumeDirectory,
  removeBlockDirectories,
  removeEmptyDeviceDirectory,
  removeIscsiStage,
  removeUnknownBlock,
  removeUnused,
  removeVolumeData,
  removeVolumeDirectory,
  undoVolumeDirectory,
];
