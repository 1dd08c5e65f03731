/** All transitions, as a broker has them. What they import a broker loads, so it is little. */
import type { AnyTransition } from '../../mount/transition.ts';
import {
  placeDirectory,
  placeVolumeData,
  prepareVolumeDirectory,
  removeVolumeDirectory,
  undoVolumeDirectory,
} from '../csi/call/volume-directory.ts';
import { removeBlockDirectories } from '../layout/block-directory.ts';
import { removeUnused } from '../layout/pod-directory.ts';
import { removeVolumeData } from '../layout/volume-data.ts';

export const TRANSITIONS: readonly AnyTransition[] = [
  placeDirectory,
  placeVolumeData,
  prepareVolumeDirectory,
  removeBlockDirectories,
  removeUnused,
  removeVolumeData,
  removeVolumeDirectory,
  undoVolumeDirectory,
];
