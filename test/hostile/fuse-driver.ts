/**
 * A CSI driver in this process whose volumes are file systems in user space: a test hangs them, makes the driver
 * refuse, and keeps its questions open. It registers as a driver does, in `plugins_registry`.
 */
import { spawnSync } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  ControllerService,
  IdentityService,
  NodeService,
  NodeServiceCapability_RPC_Type as NodeCapability,
} from '../../plugins/csi/wire/generated/csi.ts';
import { RegistrationService } from '../../plugins/csi/wire/generated/pluginregistration.ts';
import { GrpcStatus } from '../../plugins/csi/wire/grpc-service.ts';
import { serveGrpc } from '../../plugins/csi/wire/grpc.ts';
import { createRegistrationService } from '../../plugins/loopfile/registration-service.ts';
import { type FuseMount, mountFuse } from './fuse-server.ts';

export const FUSE_DRIVER = 'fuse.mooring.dev';
const INTERNAL = 13;

/** `NodePublishVolume handle`, and how often it was made. */
export interface CountedCall {
  readonly call: string;
  readonly count: number;
}

export interface FuseDriver {
  /** `NodePublishVolume handle`, in the order of their arrival. */
  readonly calls: readonly string[];
  /** By handle. */
  readonly mounts: ReadonlyMap<string, FuseMount>;
  /** What NodeUnpublishVolume answers instead of doing anything; undefined: it does it. */
  busyWith: string | undefined;
  /** Handles whose NodeGetVolumeStats is never answered. */
  readonly silentAbout: Set<string>;
  /** Settles when there was a call for which it holds; rejects when there is none in time. */
  called(holds: (counted: CountedCall) => boolean, withinMs: number): Promise<void>;
  close(): Promise<void>;
}

export async function startFuseDriver(root: string): Promise<FuseDriver> {
  const socket = join(root, 'plugins', FUSE_DRIVER, 'csi.sock');
  const registry = join(root, 'plugins_registry');
  for (const directory of [dirname(socket), registry]) mkdirSync(directory, { recursive: true, mode: 0o750 });
  const calls: string[] = [];
  const mounts = new Map<string, FuseMount>();
  const counts = new Map<string, number>();
  const arrivals = new EventEmitter();
  const note = (call: string): void => {
    calls.push(call);
    counts.set(call, (counts.get(call) ?? 0) + 1);
    arrivals.emit('call');
  };

  const driver: FuseDriver = {
    calls,
    mounts,
    busyWith: undefined,
    silentAbout: new Set(),
    async called(holds, withinMs) {
      const signal = AbortSignal.timeout(withinMs);
      while (![...counts].some(([call, count]) => holds({ call, count })))
        await once(arrivals, 'call', { signal });
    },
    async close() {
      await Promise.all([server.close(), registration.close()]);
      for (const mount of mounts.values()) await mount.kill();
    },
  };

  const server = await serveGrpc(socket, [
    {
      definition: IdentityService,
      implementation: {
        getPluginInfo: async () => ({ name: FUSE_DRIVER, vendorVersion: '1', manifest: {} }),
        getPluginCapabilities: async () => ({ capabilities: [] }),
        probe: async () => ({ ready: true }),
      },
    },
    { definition: ControllerService, implementation: {} },
    {
      definition: NodeService,
      implementation: {
        nodeGetInfo: async () => ({
          nodeId: 'fuse-node',
          maxVolumesPerNode: 0n,
          accessibleTopology: undefined,
        }),
        async nodeGetCapabilities() {
          const type = { $case: 'rpc', value: { type: NodeCapability.GET_VOLUME_STATS } } as const;
          return { capabilities: [{ type }] };
        },
        async nodePublishVolume({ volumeId, targetPath }) {
          note(`NodePublishVolume ${volumeId}`);
          if (!mounts.has(volumeId)) {
            mkdirSync(targetPath, { recursive: true });
            mounts.set(volumeId, await mountFuse(targetPath, volumeId));
          }
          return {};
        },
        async nodeUnpublishVolume({ volumeId, targetPath }) {
          note(`NodeUnpublishVolume ${volumeId}`);
          if (driver.busyWith !== undefined) throw new GrpcStatus(INTERNAL, driver.busyWith);
          await mounts.get(volumeId)?.kill();
          mounts.delete(volumeId);
          spawnSync('umount', ['-i', '--', targetPath]);
          return {};
        },
        async nodeGetVolumeStats({ volumeId }) {
          note(`NodeGetVolumeStats ${volumeId}`);
          if (driver.silentAbout.has(volumeId)) return new Promise(() => {});
          return { usage: [{ unit: 1, total: 100n, used: 1n, available: 99n }], volumeCondition: undefined };
        },
      },
    },
  ]);
  const registration = await serveGrpc(join(registry, `${FUSE_DRIVER}-reg.sock`), [
    {
      definition: RegistrationService,
      implementation: createRegistrationService(FUSE_DRIVER, socket, () => undefined),
    },
  ]);
  return driver;
}

/** A PersistentVolume of that handle and name, with its claim, as YAML. */
export function fuseVolume(name: string): string {
  return `apiVersion: v1
kind: PersistentVolume
metadata: { name: ${name} }
spec:
  capacity: { storage: 1Mi }
  accessModes: [ReadWriteOnce]
  storageClassName: ''
  csi: { driver: ${FUSE_DRIVER}, volumeHandle: ${name} }
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: ${name}, namespace: default }
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ''
  volumeName: ${name}
  resources: { requests: { storage: 1Mi } }
`;
}
