/** A machine in memory with a driver of block volumes on it, for crashes and faults at every single effect. */
import type { Result } from '../../../mount/failure.ts';
import { type AbsolutePath, type DeviceNumber, type Host, parseAbsolutePath } from '../../../mount/host.ts';
import type { RemoteCall, RemoteReply } from '../../../mount/remote-call.ts';
import { createCsiPlugin } from '../../../plugins/csi/csi-plugin.ts';
import type { DriverInstance } from '../../../plugins/csi/driver/driver.ts';
import type {
  NodePublishVolumeRequest,
  NodeUnpublishVolumeRequest,
} from '../../../plugins/csi/wire/generated/csi.ts';
import { methodName } from '../../../plugins/csi/wire/status.ts';
import { createLayout, type Layout } from '../../../plugins/layout/layout.ts';
import { NO_SECRETS, type PublicationCall, type VolumePlugin } from '../../../plugins/plugin.ts';
import { parsePodUid, type PublicationSpec, publicationKey } from '../../../plugins/volume.ts';
import { csiSpec } from '../csi-spec.ts';
import { createMemoryHost, type MemoryHost } from '../memory-host.ts';
import { CAPABILITY, DRIVER } from './scripted-driver.ts';

export const BLOCK_SPEC = csiSpec(DRIVER, 'raw-1', 'pv-raw', {
  mode: 'Block',
  mountOptions: ['noatime'],
  accessModes: ['ReadWriteMany'],
});

type MaybePromise<T> = T | Promise<T>;

/** Drivers put the device at the target in one of two ways; both are a device node to whoever looks. */
export type Manner = 'bind' | 'mknod';

export interface BlockWorld {
  readonly memory: MemoryHost;
  readonly host: Host;
  readonly layout: Layout;
  /** The disk behind the volume, as the driver finds it: changes when the driver logs in anew. */
  disk: { readonly path: AbsolutePath; readonly device: DeviceNumber };
  /** Methods called, in order, with their requests. */
  readonly called: { readonly method: string; readonly request: unknown }[];
  /** Answers instead of the driver; undefined: the driver does it. */
  answer: (method: string) => MaybePromise<RemoteReply<unknown> | undefined>;
  /** A new instance, as after a restart of the agent. */
  plugin(options?: { readonly parallel?: boolean }): VolumePlugin;
  call(pod?: string, changes?: Partial<PublicationCall>): PublicationCall;
  newDisk(): void;
  /** The whole machine, comparable. */
  describe(): readonly string[];
}

const root = absolute('/var/lib/kubelet');

export function createBlockWorld(manner: Manner = 'bind'): BlockWorld {
  const memory = createMemoryHost();
  const layout = createLayout(root);
  for (const directory of [
    layout.pods,
    `${layout.blockDevices}/publish`,
    `${layout.blockDevices}/staging`,
    '/dev',
  ])
    memory.plant(directory, { kind: 'directory', mode: 0o750 });
  const world: BlockWorld = {
    memory,
    layout,
    disk: plantDisk(memory),
    called: [],
    answer: () => undefined,
    host: {
      ...memory,
      call: <Request, Reply>(call: RemoteCall<Request, Reply>) => serve(world, manner, call),
    },
    plugin: ({ parallel = false } = {}) =>
      createCsiPlugin({
        host: world.host,
        layout,
        nodeName: 'node-a',
        drivers: { get: () => INSTANCE, suspect: () => undefined },
        parallelPublish: () => parallel,
      }),
    call: (pod = 'a', changes = {}) => callOf(pod, changes),
    newDisk: () => {
      world.disk = plantDisk(memory);
    },
    describe: () => [
      ...memory.describe(absolute('/var')),
      ...memory.devices.holds().map(({ path, device }) => `held: ${path} ${device}`),
    ],
  };
  return world;
}

export const INSTANCE: DriverInstance = {
  name: DRIVER,
  endpoint: { path: absolute('/csi.sock'), inode: 1 },
  life: '1 of 0',
  registrationSocket: undefined,
  vendorVersion: '1',
  nodeId: 'node-1',
  volumesMax: 0,
  topology: {},
  nodeCapabilities: new Set([CAPABILITY.node.STAGE_UNSTAGE_VOLUME, CAPABILITY.node.EXPAND_VOLUME]),
  controllerCapabilities: new Set([CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME]),
  registeredAtMs: 0,
};

function callOf(pod: string, changes: Partial<PublicationCall>): PublicationCall {
  const uid = parsePodUid(pod);
  if (uid === undefined) throw new Error('not a uid');
  const publication: PublicationSpec = {
    key: publicationKey(uid, BLOCK_SPEC.specName),
    pod: { uid, name: pod, namespace: 'default', serviceAccount: 'default' },
    specName: BLOCK_SPEC.specName,
    readOnly: false,
    origin: 'web.yaml',
  };
  const needs = { attach: false, stage: true, expand: true };
  return {
    spec: BLOCK_SPEC,
    facts: { needs, publishContext: undefined, stagedMount: undefined },
    secrets: NO_SECRETS,
    mount: undefined,
    stillWanted: () => true,
    fsGroup: undefined,
    step: () => {},
    progress: () => undefined,
    force: false,
    publication,
    files: undefined,
    refresh: false,
    tokens: undefined,
    ...changes,
  };
}

function plantDisk(memory: MemoryHost): BlockWorld['disk'] {
  const device = memory.devices.add();
  const path = absolute(`/dev/disk-${device.replace(':', '-')}`);
  memory.plant(path, { kind: 'block', mode: 0o660, block: device });
  return { path, device };
}

async function serve<Request, Reply>(
  world: BlockWorld,
  manner: Manner,
  { method, request }: RemoteCall<Request, Reply>,
): Promise<RemoteReply<Reply>> {
  const name = methodName(method.path);
  world.called.push({ method: name, request });
  const answer = await world.answer(name);
  if (answer !== undefined) return answer as RemoteReply<Reply>;
  const done = await effect(world, manner, name, request);
  if (!done.ok) return { kind: 'status', status: 13, message: done.failure.message };
  return { kind: 'ok', reply: { publishContext: {}, capacityBytes: 0n } as Reply };
}

async function effect(
  world: BlockWorld,
  manner: Manner,
  method: string,
  request: unknown,
): Promise<Result<unknown>> {
  const { memory, disk } = world;
  if (method === 'NodePublishVolume') {
    const target = absolute((request as NodePublishVolumeRequest).targetPath);
    const there = await memory.deviceOf(target);
    if (!there.ok || there.value !== undefined) return there;
    if (manner === 'mknod') {
      memory.plant(target, { kind: 'block', mode: 0o660, block: disk.device });
      return there;
    }
    memory.plant(target, { kind: 'file', mode: 0o660 });
    return memory.mount({ fsType: 'bind', source: disk.path, target, options: [] });
  }
  if (method !== 'NodeUnpublishVolume') return { ok: true, value: undefined };
  const target = absolute((request as NodeUnpublishVolumeRequest).targetPath);
  const mounted = await memory.mountIdOf(target);
  if (!mounted.ok) return mounted;
  const unmounted = mounted.value === undefined ? mounted : await memory.unmount(target);
  return unmounted.ok ? memory.removeFile(target) : unmounted;
}

function absolute(text: string): AbsolutePath {
  const path = parseAbsolutePath(text);
  if (path === undefined) throw new Error(`not absolute: ${text}`);
  return path;
}
