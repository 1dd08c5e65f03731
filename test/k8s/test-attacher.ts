/**
 * Who attaches in a test: it does to VolumeAttachments and to the driver what csi-attacher does, finalizer, status and
 * calls in its order, and can be told to wait. It looks again and again, because it is a test's and not a product's.
 */
import { statSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { parseAbsolutePath } from '../../mount/host.ts';
import { createGrpcRemote } from '../../plugins/csi/wire/grpc.ts';
import {
  ControllerPublishVolumeRequest,
  type ControllerPublishVolumeResponse,
  ControllerService,
  ControllerUnpublishVolumeRequest,
  VolumeCapability_AccessMode_Mode as Mode,
} from '../../plugins/csi/wire/generated/csi.ts';
import type { AdminClient } from '../cluster/admin-client.ts';

export interface TestAttacher {
  /** While it waits it does nothing. */
  wait(isWaiting: boolean): void;
  /** The cluster is about to have it detached while it is in use: its driver refuses that, and is right. */
  forgive(handle: string): void;
  /** What the driver has answered to calls that it did not do. */
  readonly refused: readonly string[];
  stop(): Promise<void>;
}

export interface Attachment {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly deletionTimestamp?: string;
    readonly finalizers?: readonly string[];
  };
  readonly spec: {
    readonly attacher: string;
    readonly nodeName: string;
    readonly source: { readonly persistentVolumeName: string };
  };
  readonly status?: { readonly attached?: boolean };
}

export const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments';
const LOOK_MS = 50;
const CALL_MS = 120_000;
/** gRPC's. */
const ABORTED = 10;

export async function attachmentsIn(admin: AdminClient): Promise<readonly Attachment[]> {
  const { body } = await admin.tryRequest('GET', ATTACHMENTS);
  return (body['items'] ?? []) as Attachment[];
}

/** Where the data are: not on the node, and the node is not asked when they are given to another one. */
export interface Storage {
  /** Before the node's driver is told that it has the volume. */
  give(handle: string): Promise<void>;
  /** In place of a word to the node's driver: whatever the node writes from now on reaches nobody. */
  take(handle: string): Promise<void>;
}

export interface AttacherOptions {
  /** It attends only to what is attached to that node. */
  readonly nodeName?: string;
  readonly storage?: Storage;
}

type Answer = Partial<ControllerPublishVolumeResponse>;

/** It attends to one driver. */
export function startAttacher(
  admin: AdminClient,
  driver: string,
  socketPath: string,
  { nodeName, storage }: AttacherOptions = {},
): TestAttacher {
  const remote = createGrpcRemote();
  const finalizer = `external-attacher/${driver.replaceAll(/[^A-Za-z0-9-]/g, '-')}`;
  const refused: string[] = [];
  const forgiven = new Set<string>();
  /** A volume may be gone by the time when it is detached. */
  const handles = new Map<string, string>();
  let isWaiting = false;
  let isStopped = false;

  const isMine = ({ spec }: Attachment): boolean =>
    spec.attacher === driver && (nodeName === undefined || spec.nodeName === nodeName);

  /** What the driver answers; undefined: it has not done it. */
  async function ask(request: object, isPublish: boolean): Promise<Answer | undefined> {
    const path = parseAbsolutePath(socketPath);
    if (path === undefined) return undefined;
    const socket = { path, inode: statSync(socketPath).ino };
    const call = { socket, deadlineMs: CALL_MS };
    const answer = isPublish
      ? await remote.call({
          ...call,
          method: ControllerService.controllerPublishVolume,
          request: ControllerPublishVolumeRequest.fromPartial(request),
        })
      : await remote.call({
          ...call,
          method: ControllerService.controllerUnpublishVolume,
          request: ControllerUnpublishVolumeRequest.fromPartial(request),
        });
    if (answer.kind === 'ok') return answer.reply;
    // A call of the node is under way: as csi-attacher, it comes again.
    if (answer.kind === 'status' && answer.status === ABORTED) return undefined;
    // The driver is not there, and has refused nothing.
    if (answer.kind === 'broken') return undefined;
    const text = JSON.stringify(answer);
    if (![...forgiven].some((handle) => text.includes(handle))) refused.push(text);
    return undefined;
  }

  async function handleOf({ spec }: Attachment): Promise<string> {
    const known = handles.get(spec.source.persistentVolumeName);
    if (known !== undefined) return known;
    const volume = await admin.request(
      'GET',
      `/api/v1/persistentvolumes/${spec.source.persistentVolumeName}`,
    );
    const handle = (volume as { spec: { csi: { volumeHandle: string } } }).spec.csi.volumeHandle;
    handles.set(spec.source.persistentVolumeName, handle);
    return handle;
  }

  async function attend(one: Attachment): Promise<void> {
    const { name, uid, deletionTimestamp, finalizers = [] } = one.metadata;
    const path = `${ATTACHMENTS}/${name}`;
    const volumeId = await handleOf(one);
    if (deletionTimestamp === undefined) {
      if (one.status?.attached === true) return;
      await admin.request('MERGE', path, { metadata: { uid, finalizers: [finalizer] } });
      const accessMode = { mode: Mode.SINGLE_NODE_WRITER };
      const mount = { fsType: 'ext4', mountFlags: [], volumeMountGroup: '' };
      const volumeCapability = { accessMode, accessType: { $case: 'mount', value: mount } };
      await storage?.give(volumeId);
      const attached = await ask({ volumeId, nodeId: one.spec.nodeName, volumeCapability }, true);
      if (attached === undefined) return;
      const status = { attached: true, attachmentMetadata: attached.publishContext ?? {} };
      await admin.request('MERGE', `${path}/status`, { metadata: { uid }, status });
    } else if (finalizers.includes(finalizer)) {
      if (storage !== undefined) await storage.take(volumeId);
      else if ((await ask({ volumeId, nodeId: one.spec.nodeName }, false)) === undefined) return;
      await admin.request('MERGE', `${path}/status`, { metadata: { uid }, status: { attached: false } });
      await admin.request('MERGE', path, { metadata: { uid, finalizers: null } });
    }
  }

  const over = (async () => {
    while (!isStopped) {
      const all = isWaiting ? [] : await attachmentsIn(admin);
      // What changed meanwhile is seen the next time.
      for (const one of all.filter(isMine)) await attend(one).catch(() => undefined);
      await pause(LOOK_MS);
    }
  })();

  return {
    refused,
    forgive: (handle) => void forgiven.add(handle),
    wait(next) {
      isWaiting = next;
    },
    async stop() {
      isStopped = true;
      await over;
      remote.close();
    },
  };
}
