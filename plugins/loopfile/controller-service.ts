/** CSI Controller: volumes of the pool, made, grown, listed and deleted. */
import {
  type CapacityRange,
  ControllerServiceCapability_RPC_Type as Rpc,
  type ControllerService,
  type CreateVolumeRequest,
  type ListVolumesResponse_Entry as Entry,
  type Topology,
  type Volume as WireVolume,
} from '../csi/wire/generated/csi.ts';
import type { GrpcImplementation } from '../csi/wire/grpc-service.ts';
import { parseAccess, requireAccess } from './device/capability.ts';
import { bytesMin, type FsType } from './device/file-system.ts';
import { type Pool, type Volume, volumeIdOf, type VolumeRequest } from './pool/pool.ts';
import { requireVolumeId } from './request-fields.ts';
import { status } from './device/status.ts';
import type { VolumeLocks } from './volume-locks.ts';
import { parseVolumeId, type VolumeId } from './pool/volume-record.ts';
import { chooseSize } from './pool/volume-size.ts';

export interface ControllerParts {
  readonly nodeId: string;
  readonly topologyKey: string;
  readonly attach: boolean;
  readonly defaultFs: FsType;
  readonly pool: Pool;
  readonly locks: VolumeLocks;
}

const CAPABILITIES = [
  Rpc.CREATE_DELETE_VOLUME,
  Rpc.LIST_VOLUMES,
  Rpc.GET_VOLUME,
  Rpc.GET_CAPACITY,
  Rpc.EXPAND_VOLUME,
  Rpc.SINGLE_NODE_MULTI_WRITER,
] as const;

const ATTACH_CAPABILITIES = [Rpc.PUBLISH_UNPUBLISH_VOLUME, Rpc.LIST_VOLUMES_PUBLISHED_NODES] as const;

export function createControllerService(
  parts: ControllerParts,
): GrpcImplementation<typeof ControllerService> {
  const base = { ...making(parts), ...looking(parts) };
  return parts.attach ? { ...base, ...attachment(parts) } : base;
}

/** Volumes are made, grown and deleted. */
function making(parts: ControllerParts): GrpcImplementation<typeof ControllerService> {
  const { nodeId, topologyKey, attach, defaultFs, pool, locks } = parts;
  /** Room is looked up and taken by one call at a time, or two volumes would get the same bytes. */
  const allocations = createQueue();
  return {
    createVolume: async (request) => {
      const wanted = readVolumeRequest(request, defaultFs);
      refuseOtherNodes(request, topologyKey, nodeId);
      const volume = await locks.exclusively(volumeIdOf(request.name), async () => {
        const existing = await pool.find(volumeIdOf(request.name));
        if (existing === undefined) return allocations(() => create(pool, wanted));
        refuseIncompatible(existing, request, wanted);
        return existing;
      });
      return { volume: shown(volume, parts) };
    },

    deleteVolume: async ({ volumeId }) => {
      if (volumeId === '') throw status('INVALID_ARGUMENT', 'volume_id is missing');
      const id = parseVolumeId(volumeId);
      // What was never there is as good as deleted (CSI, DeleteVolume).
      if (id === undefined) return {};
      await locks.exclusively(id, async () => {
        const volume = await pool.find(id);
        if (volume === undefined) return;
        const { attachedTo } = volume.record;
        if (attach && attachedTo !== null)
          throw status('FAILED_PRECONDITION', `${id} is attached to ${attachedTo}`);
        await pool.remove(volume);
      });
      return {};
    },

    controllerExpandVolume: async ({ volumeId, capacityRange }) => {
      const id = requireVolumeId(volumeId);
      if (capacityRange === undefined) throw status('INVALID_ARGUMENT', 'capacity_range is missing');
      const volume = await locks.exclusively(id, () => allocations(() => expand(pool, id, capacityRange)));
      return { capacityBytes: BigInt(volume.sizeBytes), nodeExpansionRequired: true };
    },
  };
}

async function create(pool: Pool, request: VolumeRequest): Promise<Volume> {
  const room = await pool.roomBytes();
  if (request.sizeBytes > room) throw status('RESOURCE_EXHAUSTED', `the pool has room for ${room} bytes`);
  return pool.create(request);
}

async function expand(pool: Pool, id: VolumeId, range: CapacityRange): Promise<Volume> {
  const volume = await pool.get(id);
  const sizeBytes = chooseSize(range, bytesMin(volume.record.fsType), volume.sizeBytes);
  const more = sizeBytes - volume.sizeBytes;
  if (more > 0 && more > (await pool.roomBytes()))
    throw status('OUT_OF_RANGE', `the pool has no ${more} bytes more`);
  return pool.grow(volume, sizeBytes);
}

/** What is there, and what the driver can do. */
function looking(parts: ControllerParts): GrpcImplementation<typeof ControllerService> {
  const { nodeId, topologyKey, attach, defaultFs, pool } = parts;
  return {
    controllerGetCapabilities: async () => ({
      capabilities: [...CAPABILITIES, ...(attach ? ATTACH_CAPABILITIES : [])].map((type) => ({
        type: { $case: 'rpc', value: { type } },
      })),
    }),

    controllerGetVolume: async ({ volumeId }) => entryOf(await pool.get(requireVolumeId(volumeId)), parts),

    listVolumes: async ({ maxEntries, startingToken }) => {
      if (maxEntries < 0) throw status('INVALID_ARGUMENT', 'max_entries is negative');
      const after = readToken(startingToken);
      const rest = (await pool.list()).volumes.filter(({ record }) => record.id > after);
      const page = maxEntries === 0 ? rest : rest.slice(0, maxEntries);
      const last = page.at(-1)?.record.id;
      return {
        entries: page.map((volume) => entryOf(volume, parts)),
        nextToken: page.length < rest.length && last !== undefined ? `${TOKEN_PREFIX}${last}` : '',
      };
    },

    getCapacity: async ({ volumeCapabilities, accessibleTopology }) => {
      const elsewhere =
        accessibleTopology !== undefined && accessibleTopology.segments[topologyKey] !== nodeId;
      const unsupported = volumeCapabilities.some((one) => !parseAccess(one).ok);
      const room = BigInt(elsewhere || unsupported ? 0 : await pool.roomBytes());
      return {
        availableCapacity: room,
        maximumVolumeSize: room,
        minimumVolumeSize: BigInt(bytesMin(defaultFs)),
      };
    },

    validateVolumeCapabilities: async (request) => {
      const id = requireVolumeId(request.volumeId);
      if (request.volumeCapabilities.length === 0)
        throw status('INVALID_ARGUMENT', 'volume_capabilities is missing');
      await pool.get(id);
      const { volumeContext, volumeCapabilities, parameters, mutableParameters } = request;
      const refused = volumeCapabilities.map(parseAccess).find((one) => !one.ok);
      if (refused?.ok === false) return { confirmed: undefined, message: refused.failure.message };
      return { confirmed: { volumeContext, volumeCapabilities, parameters, mutableParameters }, message: '' };
    },
  };
}

function shown(
  { record, sizeBytes }: Volume,
  { topologyKey, nodeId }: Pick<ControllerParts, 'topologyKey' | 'nodeId'>,
): WireVolume {
  const here: Topology = { segments: { [topologyKey]: nodeId } };
  return {
    volumeId: record.id,
    capacityBytes: BigInt(sizeBytes),
    volumeContext: {},
    contentSource: undefined,
    accessibleTopology: [here],
  };
}

function entryOf(volume: Volume, parts: ControllerParts): Entry {
  const { attachedTo } = volume.record;
  return {
    volume: shown(volume, parts),
    status: { publishedNodeIds: attachedTo === null ? [] : [attachedTo] },
  };
}

/** Attaching is book-keeping here: the loop device itself belongs to the stage. */
function attachment({
  nodeId: here,
  pool,
  locks,
}: ControllerParts): GrpcImplementation<typeof ControllerService> {
  return {
    controllerPublishVolume: async ({ volumeId, nodeId, volumeCapability, readonly }) => {
      const id = requireVolumeId(volumeId);
      if (nodeId === '') throw status('INVALID_ARGUMENT', 'node_id is missing');
      requireAccess(volumeCapability);
      if (readonly) throw status('INVALID_ARGUMENT', 'readonly: PUBLISH_READONLY is not offered');
      await locks.exclusively(id, async () => {
        const { record } = await pool.get(id);
        if (nodeId !== here) throw status('NOT_FOUND', `no node ${nodeId}; the volume is a file on ${here}`);
        await pool.save({ ...record, attachedTo: nodeId });
      });
      return { publishContext: {} };
    },

    controllerUnpublishVolume: async ({ volumeId, nodeId }) => {
      const id = requireVolumeId(volumeId);
      await locks.exclusively(id, async () => {
        const volume = await pool.find(id);
        // An empty node_id means every node (CSI, ControllerUnpublishVolume).
        if (volume === undefined || (nodeId !== '' && volume.record.attachedTo !== nodeId)) return;
        const { attached } = await pool.loopDevices(id);
        if (attached.length > 0) throw status('FAILED_PRECONDITION', `${id} is still staged on ${here}`);
        await pool.save({ ...volume.record, attachedTo: null });
      });
      return {};
    },
  };
}

const NAME_BYTES_MAX = 128;
/** CSI, CreateVolumeRequest.name: characters a name must not have. */
const NAME_FORBIDDEN = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]/;
/** The external provisioner adds who the volume is for; nothing here depends on it. */
const IGNORED_PARAMETER = /^csi\.storage\.k8s\.io\//;

function readVolumeRequest(request: CreateVolumeRequest, defaultFs: FsType): VolumeRequest {
  const { name, volumeCapabilities, parameters, mutableParameters, volumeContentSource, capacityRange } =
    request;
  if (name === '') throw status('INVALID_ARGUMENT', 'name is missing');
  if (Buffer.byteLength(name) > NAME_BYTES_MAX || NAME_FORBIDDEN.test(name)) {
    throw status('INVALID_ARGUMENT', `name is longer than ${NAME_BYTES_MAX} bytes or has control characters`);
  }
  if (volumeCapabilities.length === 0) throw status('INVALID_ARGUMENT', 'volume_capabilities is missing');
  const unknown = Object.keys({ ...parameters, ...mutableParameters }).find(
    (key) => !IGNORED_PARAMETER.test(key),
  );
  if (unknown !== undefined) throw status('INVALID_ARGUMENT', `unknown parameter ${unknown}`);
  if (volumeContentSource !== undefined)
    throw status('INVALID_ARGUMENT', 'volumes cannot be made from another one');
  const [fsType = defaultFs, other] = fsTypesOf(request);
  if (other !== undefined)
    throw status('INVALID_ARGUMENT', `one volume cannot be both ${fsType} and ${other}`);
  return { name, fsType, sizeBytes: chooseSize(capacityRange, bytesMin(fsType)) };
}

function fsTypesOf({ volumeCapabilities }: CreateVolumeRequest): readonly FsType[] {
  return [
    ...new Set(volumeCapabilities.map((one) => requireAccess(one).fsType).filter((one) => one !== undefined)),
  ];
}

/** CreateVolume with the name of an existing volume is fine exactly when that volume would do. */
function refuseIncompatible(
  { record, sizeBytes }: Volume,
  request: CreateVolumeRequest,
  wanted: VolumeRequest,
): void {
  const required = Number(request.capacityRange?.requiredBytes ?? 0n);
  const limit = Number(request.capacityRange?.limitBytes ?? 0n);
  const fits = sizeBytes >= required && (limit === 0 || sizeBytes <= limit);
  const sameType = fsTypesOf(request).length === 0 || record.fsType === wanted.fsType;
  if (!fits || !sameType) {
    throw status('ALREADY_EXISTS', `${record.name} exists with ${sizeBytes} bytes for ${record.fsType}`);
  }
}

function refuseOtherNodes(
  { accessibilityRequirements }: CreateVolumeRequest,
  key: string,
  nodeId: string,
): void {
  const requisite = accessibilityRequirements?.requisite ?? [];
  if (requisite.length === 0 || requisite.some(({ segments }) => segments[key] === nodeId)) return;
  throw status('RESOURCE_EXHAUSTED', `volumes can only be made on node ${nodeId}`);
}

const TOKEN_PREFIX = 'after:';

/** A page begins after an id, so a token stays good when the volume it names is deleted. */
function readToken(token: string): string {
  if (token === '') return '';
  const id = token.startsWith(TOKEN_PREFIX) ? parseVolumeId(token.slice(TOKEN_PREFIX.length)) : undefined;
  if (id === undefined) throw status('ABORTED', 'starting_token is not one of this driver');
  return id;
}

/** Runs work one after the other, in order. */
function createQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  let tail: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = tail.then(work, work);
    tail = result;
    return result;
  };
}
