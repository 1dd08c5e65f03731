/** The plugin registration socket: the driver registers itself, with no node-driver-registrar beside it. */
import type { RegistrationService } from '../csi/wire/generated/pluginregistration.ts';
import type { GrpcImplementation } from '../csi/wire/grpc-service.ts';
import type { Report } from './events.ts';

/** The node agent dials `csiSocket` after it has read this. Versions are those of the CSI protocol. */
export function createRegistrationService(
  driver: string,
  csiSocket: string,
  report: Report,
): GrpcImplementation<typeof RegistrationService> {
  return {
    getInfo: async () => ({
      type: 'CSIPlugin',
      name: driver,
      endpoint: csiSocket,
      supportedVersions: ['1.0.0'],
    }),

    notifyRegistrationStatus: async ({ pluginRegistered, error }) => {
      report(
        pluginRegistered ? 'registered' : 'registration refused',
        pluginRegistered ? {} : { message: error },
      );
      return {};
    },
  };
}
