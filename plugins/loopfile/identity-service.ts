/** CSI Identity: who the driver is and what it can do in general. */
import { access, constants } from 'node:fs/promises';
import {
  type IdentityService,
  PluginCapability_Service_Type as Service,
  PluginCapability_VolumeExpansion_Type as Expansion,
} from '../csi/wire/generated/csi.ts';
import type { GrpcImplementation } from '../csi/wire/grpc-service.ts';
import type { Pool } from './pool/pool.ts';
import { status } from './device/status.ts';
import { VENDOR_VERSION } from './version.ts';

export function createIdentityService(
  driver: string,
  pool: Pool,
): GrpcImplementation<typeof IdentityService> {
  return {
    getPluginInfo: async () => ({ name: driver, vendorVersion: VENDOR_VERSION, manifest: {} }),

    // Topology: a file of this node is of no use on another one.
    getPluginCapabilities: async () => ({
      capabilities: [
        { type: { $case: 'service', value: { type: Service.CONTROLLER_SERVICE } } },
        { type: { $case: 'service', value: { type: Service.VOLUME_ACCESSIBILITY_CONSTRAINTS } } },
        { type: { $case: 'volumeExpansion', value: { type: Expansion.ONLINE } } },
      ],
    }),

    probe: async () => {
      for (const path of [pool.directory, '/dev/loop-control']) {
        try {
          await access(path, constants.R_OK | constants.W_OK);
        } catch {
          throw status('FAILED_PRECONDITION', `${path} is not accessible`);
        }
      }
      return { ready: true };
    },
  };
}
