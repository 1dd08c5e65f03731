/** A store with a Node, and the agent's side of the attachment contract over it; the test plays the cluster's side. */
import { createClusterAttachment } from '../../../agent/attachment/granted-attachment.ts';
import { createNodeObject } from '../../../agent/source/cluster/node-object.ts';
import { attachmentNameOf } from '../../../kubernetes/objects/attachment-name.ts';
import { nodeVolumes } from '../../../kubernetes/objects/attachment-sight.ts';
import type { Log } from '../../../mount/process/log.ts';
import type { VolumeCall } from '../../../plugins/plugin.ts';
import { csiVolumeId, type CsiVolumeSpec, type VolumeId, type VolumeSpec } from '../../../plugins/volume.ts';
import { type ActualVolume, onTheGround, PRESENT } from '../../../reconciler/model/actual-state.ts';
import { ApiStore, type Json } from '../../kubernetes/api/api-store.ts';
import { handClock } from '../../kubernetes/api/hand-clock.ts';
import { storeTransport } from '../../kubernetes/api/store-transport.ts';
import { createTestDrivers } from './test-drivers.ts';
import { call, SPEC } from '../../plugins/csi/csi-world.ts';

export const NODE = 'n1';
export const NODE_UID = 'the-node';
export const NODES = '/api/v1/nodes';
export const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments';
const NEEDS = { attach: true, stage: true, expand: false };

export function specOf(handle: string): CsiVolumeSpec {
  return { ...SPEC, volumeHandle: handle, id: `csi/${SPEC.driver}^${handle}` as VolumeId };
}

export function callOf(spec: CsiVolumeSpec, more: Partial<VolumeCall> = {}): VolumeCall {
  return { ...call(), spec, ...more };
}

interface AttachmentWorldOptions {
  readonly listed?: readonly string[];
  /** Whose list it is, by an agent's mark: the uid of a Node; undefined: no agent has ever written on it. */
  readonly reported?: string;
}

export function attachmentWorld({ listed = [], reported }: AttachmentWorldOptions = {}) {
  const clock = handClock();
  const store = new ApiStore();
  // As an agent leaves them, both in one write.
  const managed = { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' };
  const annotations = reported === undefined ? {} : { ...managed, 'mooring.dev/reported': reported };
  store.put(NODES, {
    metadata: { name: NODE, uid: NODE_UID, annotations },
    status: { volumesInUse: listed },
  });
  const transport = storeTransport(store, clock);
  const shared = { transport, clock, random: () => clock.random(), nodeName: NODE };
  const drivers = createTestDrivers();
  const warned: string[] = [];
  const log: Pick<Log, 'info' | 'warn'> = {
    info: () => {},
    warn: (event, fields) => void warned.push(`${event} ${JSON.stringify(fields)}`),
  };
  const actual = new Map<VolumeId, ActualVolume>();

  /** Another life of the agent: what stands is what it finds, and the disk tells no more, unless it is told later. */
  function begin({ isDiskRead = true }: { readonly isDiskRead?: boolean } = {}) {
    const node = createNodeObject(shared);
    const attachment = createClusterAttachment({ ...shared, node, writer: 'mooring', log });
    const woken: VolumeId[] = [];
    let words = 0;
    attachment.onChange((volume) => woken.push(volume));
    attachment.onWord(() => {
      words += 1;
    });
    node.start();
    attachment.begin(() => actual, drivers);
    if (isDiskRead) attachment.diskRead('all');
    return {
      attachment,
      node,
      woken,
      words: () => words,
      end() {
        attachment.stop();
        node.stop();
      },
    };
  }

  function patchNode(status: Json): void {
    const node = store.get(NODES, NODE) ?? {};
    store.put(NODES, { ...node, status: { ...(node['status'] as Json), ...status } });
  }

  /** As csi-attacher leaves it, before the attach/detach controller has seen that. */
  function make(spec: CsiVolumeSpec, status: Json = { attached: true }, metadata: Json = {}): void {
    store.put(ATTACHMENTS, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: { name: attachmentNameOf(spec, NODE), ...metadata },
      spec: { attacher: spec.driver, nodeName: NODE, source: { persistentVolumeName: spec.specName } },
      status,
    });
  }

  return {
    clock,
    store,
    transport,
    drivers,
    /** Each line, with its fields. */
    warned: () => warned,
    actual,
    begin,
    make,
    patchNode,
    inUse: () => nodeVolumes(store.get(NODES, NODE) ?? {}).inUse,
    /** What of it is here, as the reconciler would believe. */
    stand(spec: VolumeSpec, more: Partial<ActualVolume> = {}) {
      actual.set(spec.id, { ...onTheGround(spec, NEEDS), attached: PRESENT, ...more });
    },
    attachmentOf: (spec: CsiVolumeSpec) => store.get(ATTACHMENTS, attachmentNameOf(spec, NODE)),
    /** As the attach/detach controller and csi-attacher: the object, and the list in the Node. */
    attach(spec: CsiVolumeSpec, status?: Json, metadata?: Json) {
      make(spec, status, metadata);
      const node = (store.get(NODES, NODE)?.['status'] ?? {}) as Json;
      const others = ((node['volumesAttached'] ?? []) as Json[]).filter(
        ({ name }) => name !== csiVolumeId(spec.driver, spec.volumeHandle),
      );
      patchNode({
        volumesAttached: [...others, { name: csiVolumeId(spec.driver, spec.volumeHandle), devicePath: '' }],
      });
    },
    detach(spec: CsiVolumeSpec) {
      store.remove(ATTACHMENTS, attachmentNameOf(spec, NODE));
      patchNode({ volumesAttached: [] });
    },
  };
}

export type AttachmentTestWorld = ReturnType<typeof attachmentWorld>;
