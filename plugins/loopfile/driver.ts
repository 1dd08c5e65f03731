/** The driver put together: its parts, its sockets, and what it says about failures. */
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Cancel } from '../../mount/host.ts';
import { ControllerService, IdentityService, NodeService } from '../csi/wire/generated/csi.ts';
import { RegistrationService } from '../csi/wire/generated/pluginregistration.ts';
import type { GrpcServer } from '../csi/wire/grpc-service.ts';
import { serveGrpc } from '../csi/wire/grpc.ts';
import { createControllerService } from './controller-service.ts';
import type { Report } from './events.ts';
import type { FsType } from './device/file-system.ts';
import { createIdentityService } from './identity-service.ts';
import { createNodeService } from './node-service.ts';
import type { Pool } from './pool/pool.ts';
import { lockPool } from './pool/pool-lock.ts';
import { createPublishing } from './publishing.ts';
import { createRegistrationService } from './registration-service.ts';
import { createStaging } from './staging.ts';
import { status, statusOf, unlessAbsent } from './device/status.ts';
import { createVolumeLocks } from './volume-locks.ts';

export interface DriverOptions {
  readonly pool: Pool;
  /** The path of the CSI socket. */
  readonly endpoint: string;
  /** The node agent's registration directory; undefined: somebody else registers the driver. */
  readonly registry: string | undefined;
  readonly nodeId: string;
  readonly name: string;
  readonly attach: boolean;
  readonly defaultFs: FsType;
  readonly bootId: string;
  readonly report: Report;
}

export interface Driver {
  /** Stops answering. What is mounted stays mounted: pods outlive their driver. */
  close(): Promise<void>;
}

/**
 * Serves the CSI socket, in a directory it makes (0750) when missing, and only then tells the node agent about it.
 * Rejects with nothing served and the pool given back, so that the process ends and its supervisor starts it again.
 */
export async function startDriver(options: DriverOptions): Promise<Driver> {
  const { endpoint, registry, pool } = options;
  // Asked first: bind(2) in a directory that is not there is told as EACCES by Node.
  if (registry !== undefined && (await unlessAbsent(stat(registry))) === undefined)
    throw status('NOT_FOUND', `--registry ${registry} is not there: the node agent makes it when it starts`);
  await mkdir(dirname(endpoint), { recursive: true, mode: 0o750 });
  const lock = await lockPool(pool.directory);
  const servers: GrpcServer[] = [];
  let cancelSweep: Cancel = () => {};
  const close = async (): Promise<void> => {
    cancelSweep();
    for (const server of servers.reverse()) await server.close();
    await lock.release();
  };
  try {
    cancelSweep = await pool.sweep();
    await serve(options, servers);
    return { close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Each server is added to `servers` as soon as it answers. */
async function serve(options: DriverOptions, servers: GrpcServer[]): Promise<void> {
  const { pool, endpoint, registry, nodeId, name, attach, defaultFs, bootId, report } = options;
  const locks = createVolumeLocks();
  const topologyKey = `topology.${name}/node`;
  const staging = createStaging(pool, bootId, report);
  const publishing = createPublishing(pool, staging);
  const node = createNodeService({ nodeId, topologyKey, attach, pool, staging, publishing, locks });
  const controller = createControllerService({ nodeId, topologyKey, attach, defaultFs, pool, locks });
  servers.push(
    await serveGrpc(endpoint, [
      { definition: IdentityService, implementation: reported(createIdentityService(name, pool), report) },
      { definition: ControllerService, implementation: reported(controller, report) },
      { definition: NodeService, implementation: reported(node, report) },
    ]),
  );
  if (registry === undefined) return;
  const registration = createRegistrationService(name, endpoint, report);
  servers.push(
    await serveGrpc(`${registry}/${name}-reg.sock`, [
      { definition: RegistrationService, implementation: reported(registration, report) },
    ]),
  );
}

/** The same service, with every failure turned into a status and told once. Requests are not: they may hold secrets. */
function reported<Service extends object>(service: Service, report: Report): Service {
  const methods = Object.entries(service).map(([method, call]) => {
    const answer = async (request: { readonly volumeId?: string }) => {
      try {
        return await call(request);
      } catch (error) {
        const { code, message } = statusOf(error);
        report('call failed', { method, volume: request.volumeId, code, message });
        throw statusOf(error);
      }
    };
    return [method, answer] as const;
  });
  return Object.fromEntries(methods) as Service;
}
