/**
 * A driver with one planted fault: the bundled loopfile driver behind a wrapper that lies about one thing. Without a
 * fault it is a good driver, so the wrapper itself breaks nothing.
 *
 * argv: --pool DIR --endpoint unix:///PATH.sock [--fault NAME] [--attach]
 */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import type { SocketIdentity } from '../../mount/remote-call.ts';
import { parseMountTable } from '../../mount/mount-table.ts';
import { runTool } from '../../mount/tool.ts';
import {
  ControllerService,
  IdentityService,
  NodeService,
  NodeServiceCapability_RPC_Type as Rpc,
  type NodePublishVolumeRequest,
  type NodeStageVolumeRequest,
} from '../../plugins/csi/wire/generated/csi.ts';
import { createGrpcRemote, serveGrpc } from '../../plugins/csi/wire/grpc.ts';
import { type GrpcImplementation, GrpcStatus } from '../../plugins/csi/wire/grpc-service.ts';
import { startDriver } from '../../plugins/loopfile/driver.ts';
import { openPool } from '../../plugins/loopfile/pool/pool.ts';

/** What is broken, and the duty that must say so. */
export const FAULTS = {
  'name-too-long': 'identity',
  'node-id-changes': 'node-info',
  'capabilities-change': 'capabilities',
  'attach-anywhere': 'attach',
  'stage-mounts-again': 'stage',
  'stage-any-capability': 'stage-capability',
  'unstage-leaves-mount': 'unstage',
  'publish-mounts-again': 'publish',
  'publish-mounts-nothing': 'publish',
  'second-target-refused': 'second-publish',
  'read-only-ignored': 'read-only',
  'context-changes': 'volume-context',
  'stats-negative': 'stats',
  'stats-hang': 'stats',
  'health-in-prose': 'health',
  'expand-grows-nothing': 'expand',
  'target-left': 'unpublish',
  'unpublish-once-only': 'unpublish',
  'block-is-a-file': 'block',
  'unknown-volume-internal': 'errors',
  'secret-echoed': 'secrets',
  'no-lock': 'concurrency',
  'forgets-at-restart': 'restart',
} as const satisfies Readonly<Record<string, string>>;

export type Fault = keyof typeof FAULTS;

export const DRIVER = 'broken.mooring.dev';

const CALL_MS = 300_000;
const TOOL_MS = 120_000;
const NOT_FOUND = 5;
const INVALID_ARGUMENT = 3;
const INTERNAL = 13;
const FAILED_PRECONDITION = 9;

type Node = GrpcImplementation<typeof NodeService>;
type Controller = GrpcImplementation<typeof ControllerService>;
type Identity = GrpcImplementation<typeof IdentityService>;
type Handler = (request: never) => Promise<unknown>;

/** Every method of a service, passed on to the driver behind. */
function passedOn(definition: object, socket: SocketIdentity): Record<string, Handler> {
  const remote = createGrpcRemote();
  return Object.fromEntries(
    Object.entries(definition).map(([name, method]) => {
      const pass = async (request: never): Promise<unknown> => {
        const reply = await remote.call({ socket, method, request, deadlineMs: CALL_MS });
        if (reply.kind === 'ok') return reply.reply;
        throw new GrpcStatus(reply.kind === 'status' ? reply.status : INTERNAL, reply.message);
      };
      return [name, pass];
    }),
  );
}

async function mount(...argv: readonly string[]): Promise<void> {
  const done = await runTool({ tool: 'mount', argv, deadlineMs: TOOL_MS });
  if (!done.ok || done.value.exitCode !== 0) throw new GrpcStatus(INTERNAL, 'mount failed');
}

async function isMounted(path: string): Promise<boolean> {
  const table = parseMountTable(await readFile('/proc/self/mountinfo', 'utf8'));
  return table.ok && table.value.at(path as never).length > 0;
}

function answered<T>(work: () => Promise<T>): Promise<T | GrpcStatus> {
  return work().catch((error: unknown) => {
    if (error instanceof GrpcStatus) return error;
    throw error;
  });
}

/** The methods that lie. `next` is the good driver. */
function brokenNode(fault: string, next: Required<Node>, died: string): Node {
  let asked = 0;
  let working = 0;
  const unpublished = new Set<string>();
  const staged = new Set<string>();
  const targets = new Map<string, string>();
  switch (fault) {
    case 'node-id-changes':
      return {
        nodeGetInfo: async (request) => {
          asked += 1;
          return { ...(await next.nodeGetInfo(request)), nodeId: `node-${asked}` };
        },
      };
    case 'capabilities-change':
      return {
        nodeGetCapabilities: async (request) => {
          asked += 1;
          const { capabilities } = await next.nodeGetCapabilities(request);
          return { capabilities: asked > 1 ? capabilities.slice(1) : capabilities };
        },
      };
    case 'stage-mounts-again':
      return {
        nodeStageVolume: async (request) => {
          const before = await isMounted(request.stagingTargetPath);
          const reply = await next.nodeStageVolume(request);
          if (before) await mount('--bind', '--', request.stagingTargetPath, request.stagingTargetPath);
          return reply;
        },
        nodeUnstageVolume: async (request) => {
          await runTool({ tool: 'umount', argv: ['--', request.stagingTargetPath], deadlineMs: TOOL_MS });
          return next.nodeUnstageVolume(request);
        },
      };
    case 'stage-any-capability':
      return {
        nodeStageVolume: async (request) => {
          if (await isMounted(request.stagingTargetPath)) return {};
          return next.nodeStageVolume(request);
        },
      };
    case 'unstage-leaves-mount':
      return { nodeUnstageVolume: async () => ({}) };
    case 'publish-mounts-again':
      return {
        nodePublishVolume: async (request) => {
          const before = await isMounted(request.targetPath);
          const reply = await next.nodePublishVolume(request);
          if (before) await mount('--bind', '--', request.targetPath, request.targetPath);
          return reply;
        },
      };
    case 'publish-mounts-nothing':
      return {
        nodePublishVolume: async ({ targetPath }) => {
          mkdirSync(targetPath, { recursive: true });
          return {};
        },
      };
    case 'second-target-refused':
      return {
        nodePublishVolume: async (request) => {
          const at = targets.get(request.volumeId);
          if (at !== undefined && at !== request.targetPath)
            throw new GrpcStatus(FAILED_PRECONDITION, 'published already');
          const reply = await next.nodePublishVolume(request);
          targets.set(request.volumeId, request.targetPath);
          return reply;
        },
        nodeUnpublishVolume: async (request) => {
          targets.delete(request.volumeId);
          return next.nodeUnpublishVolume(request);
        },
      };
    case 'read-only-ignored':
      return {
        nodePublishVolume: (request) => next.nodePublishVolume({ ...request, readonly: false }),
      };
    case 'stats-negative':
      return {
        nodeGetVolumeStats: async (request) => {
          const reply = await next.nodeGetVolumeStats(request);
          return { ...reply, usage: reply.usage.map((one) => ({ ...one, available: -1n })) };
        },
      };
    case 'publish-refused':
      return {
        nodePublishVolume: async () => {
          throw new GrpcStatus(FAILED_PRECONDITION, 'not today');
        },
      };
    case 'dies-once':
      return {
        nodePublishVolume: async (request) => {
          if (!existsSync(died)) {
            writeFileSync(died, '');
            process.exit(7);
          }
          return next.nodePublishVolume(request);
        },
      };
    case 'stats-hang':
      return { nodeGetVolumeStats: () => new Promise(() => {}) };
    case 'strict-handles':
      return strict(next);
    case 'healthy':
      return healthy(next, 'PoolFull');
    case 'health-in-prose':
      return healthy(next, 'the pool is full');
    case 'expand-grows-nothing':
      return {
        nodeExpandVolume: async (request) => {
          if (request.volumePath === '') throw new GrpcStatus(INVALID_ARGUMENT, 'volume_path is missing');
          return { capacityBytes: request.capacityRange?.requiredBytes ?? 0n };
        },
      };
    case 'target-left':
      return {
        nodeUnpublishVolume: async (request) => {
          const reply = await next.nodeUnpublishVolume(request);
          if (request.targetPath !== '') mkdirSync(request.targetPath, { recursive: true });
          return reply;
        },
      };
    case 'unpublish-once-only':
      return {
        nodeUnpublishVolume: async (request) => {
          if (unpublished.has(request.targetPath)) throw new GrpcStatus(INTERNAL, 'not mounted');
          const reply = await next.nodeUnpublishVolume(request);
          unpublished.add(request.targetPath);
          return reply;
        },
        nodePublishVolume: (request) => {
          unpublished.delete(request.targetPath);
          return next.nodePublishVolume(request);
        },
      };
    case 'block-is-a-file':
      return {
        nodePublishVolume: async (request) => {
          if (request.volumeCapability?.accessType?.$case !== 'block') return next.nodePublishVolume(request);
          mkdirSync(request.targetPath, { recursive: true });
          return {};
        },
      };
    case 'unknown-volume-internal': {
      const spoilt = async <T>(work: () => Promise<T>): Promise<T> => {
        const answer = await answered(work);
        if (!(answer instanceof GrpcStatus)) return answer;
        throw answer.code === NOT_FOUND ? new GrpcStatus(INTERNAL, answer.message) : answer;
      };
      return {
        nodeStageVolume: (request) => spoilt(() => next.nodeStageVolume(request)),
        nodePublishVolume: (request) => spoilt(() => next.nodePublishVolume(request)),
      };
    }
    case 'secret-echoed': {
      const echoed = async <T>(
        request: NodeStageVolumeRequest | NodePublishVolumeRequest,
        work: () => Promise<T>,
      ): Promise<T> => {
        const answer = await answered(work);
        if (!(answer instanceof GrpcStatus)) return answer;
        throw new GrpcStatus(
          answer.code,
          `mount -o ${Object.values(request.secrets).join()}: ${answer.message}`,
        );
      };
      return {
        nodeStageVolume: (request) => echoed(request, () => next.nodeStageVolume(request)),
        nodePublishVolume: (request) => echoed(request, () => next.nodePublishVolume(request)),
      };
    }
    case 'no-lock':
      return {
        // Whoever comes while another call works does the work once more.
        nodePublishVolume: async (request) => {
          working += 1;
          const answer = await answered(() => next.nodePublishVolume(request));
          const crowded = working > 1;
          working -= 1;
          if (crowded) await mount('--bind', '--', dirname(request.targetPath), request.targetPath);
          else if (answer instanceof GrpcStatus) throw answer;
          return {};
        },
      };
    case 'forgets-at-restart': {
      const known = (volumeId: string): void => {
        if (volumeId.startsWith('vol-') && !staged.has(volumeId))
          throw new GrpcStatus(INTERNAL, 'not staged: no such entry in memory');
      };
      return {
        nodeStageVolume: async (request) => {
          const reply = await next.nodeStageVolume(request);
          staged.add(request.volumeId);
          return reply;
        },
        nodePublishVolume: async (request) => {
          known(request.volumeId);
          return next.nodePublishVolume(request);
        },
        nodeUnpublishVolume: async (request) => {
          known(request.volumeId);
          return next.nodeUnpublishVolume(request);
        },
      };
    }
    default:
      return {};
  }
}

/** Looks at the form of a handle first: INVALID_ARGUMENT for one that it never gives out. */
function strict(next: Required<Node>): Node {
  const checked = <Request extends { readonly volumeId: string }, Reply>(
    pass: (request: Request) => Promise<Reply>,
  ) => {
    return async (request: Request): Promise<Reply> => {
      if (request.volumeId.startsWith('vol-')) return pass(request);
      throw new GrpcStatus(INVALID_ARGUMENT, `${request.volumeId} is no handle of this driver`);
    };
  };
  return {
    nodeStageVolume: checked(next.nodeStageVolume),
    nodePublishVolume: checked(next.nodePublishVolume),
    nodeGetVolumeStats: checked(next.nodeGetVolumeStats),
    nodeExpandVolume: checked(next.nodeExpandVolume),
  };
}

/** Claims the health calls of CSI 1.13 and the condition of 1.12. */
function healthy(next: Required<Node>, reason: string): Node {
  const claims = [Rpc.VOLUME_CONDITION, Rpc.GET_VOLUME_HEALTH, Rpc.GET_STORAGE_HEALTH];
  return {
    nodeGetCapabilities: async (request) => ({
      capabilities: [
        ...(await next.nodeGetCapabilities(request)).capabilities,
        ...claims.map((type) => ({ type: { $case: 'rpc' as const, value: { type } } })),
      ],
    }),
    nodeGetVolumeStats: async (request) => ({
      ...(await next.nodeGetVolumeStats(request)),
      volumeCondition: { abnormal: false, message: 'fine' },
    }),
    nodeGetVolumeHealth: async ({ volumeId }) => ({
      volumeHealth: { volumeId, healthStatuses: [{ status: 1, reason, message: 'degraded' }] },
    }),
    nodeGetStorageHealth: async () => ({ backendHealth: [] }),
  };
}

function brokenController(fault: string, next: Required<Controller>): Controller {
  let made = 0;
  if (fault === 'attach-anywhere')
    return {
      controllerPublishVolume: async (request) => {
        if (request.nodeId.includes('no-such')) return { publishContext: {} };
        return next.controllerPublishVolume(request);
      },
    };
  if (fault !== 'context-changes') return {};
  return {
    createVolume: async (request) => {
      made += 1;
      const { volume } = await next.createVolume(request);
      return { volume: volume && { ...volume, volumeContext: { made: String(made) } } };
    },
  };
}

function brokenIdentity(fault: string, next: Required<Identity>): Identity {
  if (fault !== 'name-too-long') return {};
  return {
    getPluginInfo: async (request) => ({
      ...(await next.getPluginInfo(request)),
      name: `${'long-'.repeat(13)}name.example`,
    }),
  };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      pool: { type: 'string', default: '' },
      endpoint: { type: 'string', default: '' },
      fault: { type: 'string', default: '' },
      attach: { type: 'boolean', default: false },
      registry: { type: 'string' },
    },
  });
  const endpoint = values.endpoint.replace(/^unix:\/\//, '');
  const inner = join(dirname(endpoint), 'good.sock');
  rmSync(inner, { force: true });
  await startDriver({
    pool: await openPool(values.pool, undefined),
    endpoint: inner,
    registry: undefined,
    nodeId: 'node-1',
    name: DRIVER,
    attach: values.attach || values.fault === 'attach-anywhere',
    defaultFs: 'ext4',
    bootId: (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim(),
    report: () => {},
  });
  const socket = { path: inner, inode: 1 } as SocketIdentity;
  const identity = passedOn(IdentityService, socket) as Required<Identity>;
  const controller = passedOn(ControllerService, socket) as Required<Controller>;
  const node = passedOn(NodeService, socket) as Required<Node>;
  await serveGrpc(endpoint, [
    {
      definition: IdentityService,
      implementation: { ...identity, ...brokenIdentity(values.fault, identity) },
    },
    ...(values.fault === 'controller-elsewhere'
      ? []
      : [
          {
            definition: ControllerService,
            implementation: { ...controller, ...brokenController(values.fault, controller) },
          },
        ]),
    {
      definition: NodeService,
      implementation: { ...node, ...brokenNode(values.fault, node, join(values.pool, 'died')) },
    },
  ]);
}

if (process.argv.includes('--endpoint')) await main();
