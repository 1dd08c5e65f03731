/** Where things are on the simulated machine. */
import type { AbsolutePath } from '../../mount/host.ts';

export const ROOT = '/var/lib/mooring' as AbsolutePath;
export const MANIFESTS = '/etc/mooring/manifests' as AbsolutePath;
export const HOST_DATA = '/srv' as AbsolutePath;
