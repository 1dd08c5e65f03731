/**
 * A CSI driver that does as little as a driver can and still be true: it binds one directory to wherever it is told,
 * with mount(8). It measures its own time, so that what is left of a mount's time is the agent's.
 *
 * Its parent asks over the IPC channel and gets every call since it last asked; it ends with its parent.
 */
import { mkdir, rmdir } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { runTool } from '../../mount/tool.ts';
import {
  IdentityService,
  NodeService,
  NodeServiceCapability_RPC_Type as NodeCapability,
} from '../../plugins/csi/wire/generated/csi.ts';
import { RegistrationService } from '../../plugins/csi/wire/generated/pluginregistration.ts';
import { type GrpcImplementation, GrpcStatus } from '../../plugins/csi/wire/grpc-service.ts';
import { serveGrpc } from '../../plugins/csi/wire/grpc.ts';
import { nowMs } from './clock.ts';
import type { DriverCall } from './noop-driver-process.ts';

const { values: flags } = parseArgs({
  options: {
    name: { type: 'string', default: '' },
    endpoint: { type: 'string', default: '' },
    registration: { type: 'string', default: '' },
    source: { type: 'string', default: '' },
    'no-stage': { type: 'boolean', default: false },
  },
});
const TOOL_MS = 30_000;
const STATUS_INTERNAL = 13;

let calls: DriverCall[] = [];
/** What is mounted where: a repeated call is answered and does nothing, as CSI demands. */
const mounted = new Set<string>();

async function tool(name: string, argv: readonly string[]): Promise<void> {
  const ran = await runTool({ tool: name, argv, deadlineMs: TOOL_MS });
  if (ran.ok && ran.value.exitCode === 0) return;
  throw new GrpcStatus(STATUS_INTERNAL, ran.ok ? ran.value.stderr.trim() : ran.failure.message);
}

async function bind(target: string): Promise<void> {
  if (mounted.has(target)) return;
  await tool('mount', ['--bind', '--', flags.source, target]);
  mounted.add(target);
}

async function unbind(target: string): Promise<void> {
  if (!mounted.has(target)) return;
  await tool('umount', ['--', target]);
  mounted.delete(target);
}

async function measured(
  method: string,
  volume: string,
  work: () => Promise<void>,
): Promise<Record<string, never>> {
  const startMs = nowMs();
  try {
    await work();
    return {};
  } finally {
    calls.push({ method, volume, startMs, endMs: nowMs() });
  }
}

const identity: GrpcImplementation<typeof IdentityService> = {
  getPluginInfo: async () => ({ name: flags.name, vendorVersion: '1.0.0', manifest: {} }),
  getPluginCapabilities: async () => ({ capabilities: [] }),
  probe: async () => ({ ready: true }),
};

const node: GrpcImplementation<typeof NodeService> = {
  nodeGetInfo: async () => ({ nodeId: 'bench', maxVolumesPerNode: 0n, accessibleTopology: undefined }),
  nodeGetCapabilities: async () => {
    const stage = { type: { $case: 'rpc', value: { type: NodeCapability.STAGE_UNSTAGE_VOLUME } } } as const;
    return { capabilities: flags['no-stage'] ? [] : [stage] };
  },
  nodeStageVolume: ({ volumeId, stagingTargetPath }) =>
    measured('NodeStageVolume', volumeId, () => bind(stagingTargetPath)),
  nodeUnstageVolume: ({ volumeId, stagingTargetPath }) =>
    measured('NodeUnstageVolume', volumeId, () => unbind(stagingTargetPath)),
  nodePublishVolume: ({ volumeId, targetPath }) =>
    measured('NodePublishVolume', volumeId, async () => {
      // CSI: the driver makes the target, the orchestrator its parent.
      await mkdir(targetPath, { recursive: true });
      await bind(targetPath);
    }),
  nodeUnpublishVolume: ({ volumeId, targetPath }) =>
    measured('NodeUnpublishVolume', volumeId, async () => {
      await unbind(targetPath);
      await rmdir(targetPath);
    }),
};

process.on('message', () => {
  process.send?.(calls);
  calls = [];
});
process.on('disconnect', () => process.exit(0));
process.on('SIGTERM', () => process.exit(0));

await serveGrpc(flags.endpoint, [
  { definition: IdentityService, implementation: identity },
  { definition: NodeService, implementation: node },
]);
await serveGrpc(flags.registration, [
  {
    definition: RegistrationService,
    implementation: {
      getInfo: async () => ({
        type: 'CSIPlugin',
        name: flags.name,
        endpoint: flags.endpoint,
        supportedVersions: ['1.0.0'],
      }),
      notifyRegistrationStatus: async () => ({}),
    },
  },
]);
