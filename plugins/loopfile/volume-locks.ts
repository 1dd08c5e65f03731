/** One call at a time per volume (CSI: a plugin answers ABORTED while another operation is pending for the volume). */
import { status } from './device/status.ts';

export interface VolumeLocks {
  /** Runs `work`, or throws ABORTED at once while other work for the same volume is running. */
  exclusively<T>(volumeId: string, work: () => Promise<T>): Promise<T>;
}

export function createVolumeLocks(): VolumeLocks {
  const busy = new Set<string>();
  return {
    exclusively: async (volumeId, work) => {
      if (busy.has(volumeId)) throw status('ABORTED', `another call for volume ${volumeId} is still running`);
      busy.add(volumeId);
      try {
        return await work();
      } finally {
        busy.delete(volumeId);
      }
    },
  };
}
