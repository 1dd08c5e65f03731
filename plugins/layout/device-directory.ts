/** The staging directory of a volume, when nothing tells any more whose it was. */
import { done } from '../../mount/failure.ts';
import { below } from '../../mount/host.ts';
import { paths } from '../../mount/path-steps.ts';
import { transition, type TransitionArgs } from '../../mount/transition.ts';
import { GLOBAL_MOUNT } from './component.ts';
import { removeEach } from './pod-directory.ts';
import { eraseVolumeData, lookUpVolumeData } from './volume-data.ts';
import { namesVolume } from './volume-data-text.ts';

/**
 * Removes `globalmount`, a vol_data.json that says nothing, and the directory, as far as they are empty. A mounted
 * `globalmount`, or one with files in it, keeps everything as it is, and so does a vol_data.json that names a volume:
 * one may have begun to be staged since the directory was looked at.
 */
export const removeEmptyDeviceDirectory = transition<TransitionArgs, void>(
  'remove-empty-device-directory',
  function* ({ path }) {
    const data = yield* lookUpVolumeData(path);
    if (!data.ok || namesVolume(data.value)) return data.ok ? done : data;
    const mountPoint = yield* paths.removeEmptyDirectory(below(path, GLOBAL_MOUNT));
    if (!mountPoint.ok && mountPoint.failure.code !== 'path-missing') return done;
    const forgotten = yield* eraseVolumeData(path);
    return forgotten.ok ? yield* removeEach([path]) : forgotten;
  },
);
