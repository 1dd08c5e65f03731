/** The calls of a volume's life as a driver gets them: what is in each, and nothing of what becomes of it. */
import {
  ControllerPublishVolumeRequest,
  type ControllerPublishVolumeResponse,
  ControllerService,
  ControllerUnpublishVolumeRequest,
  CreateVolumeRequest,
  type CreateVolumeResponse,
  DeleteVolumeRequest,
  NodePublishVolumeRequest,
  type NodePublishVolumeResponse,
  NodeService,
  NodeStageVolumeRequest,
  type NodeStageVolumeResponse,
  NodeUnpublishVolumeRequest,
  type NodeUnpublishVolumeResponse,
  NodeUnstageVolumeRequest,
  type NodeUnstageVolumeResponse,
  type VolumeCapability,
} from '../../../plugins/csi/wire/generated/csi.ts';
import type { StringMap } from './drive-options.ts';
import type { Publication, TestVolume } from './test-volume.ts';
import type { Answer } from './driver-client.ts';
import type { Rig } from './rig.ts';

/** A stage that is not as the volume is meant. */
export interface OtherStage {
  readonly capability?: VolumeCapability;
  readonly path?: string;
  readonly secrets?: StringMap;
}

export class VolumeCalls {
  readonly #rig: Rig;

  constructor(rig: Rig) {
    this.#rig = rig;
  }

  create(name: string, capability: VolumeCapability): Promise<Answer<CreateVolumeResponse>> {
    const { options, facts, client } = this.#rig;
    const topology = facts.topology === undefined ? [] : [{ segments: { ...facts.topology } }];
    return client.call(
      ControllerService.createVolume,
      CreateVolumeRequest.fromPartial({
        name,
        capacityRange: { requiredBytes: options.sizeBytes, limitBytes: 0n },
        volumeCapabilities: [capability],
        parameters: options.parameters,
        secrets: options.secrets.create,
        ...(topology.length === 0
          ? {}
          : { accessibilityRequirements: { requisite: topology, preferred: topology } }),
      }),
    );
  }

  delete(volumeId: string): Promise<Answer<unknown>> {
    const request = DeleteVolumeRequest.fromPartial({ volumeId, secrets: this.#rig.options.secrets.create });
    return this.#rig.client.call(ControllerService.deleteVolume, request);
  }

  attach(volume: TestVolume): Promise<Answer<ControllerPublishVolumeResponse>> {
    const { client, facts, options } = this.#rig;
    return client.call(
      ControllerService.controllerPublishVolume,
      ControllerPublishVolumeRequest.fromPartial({
        volumeId: volume.id,
        nodeId: facts.nodeId,
        volumeCapability: volume.capability,
        volumeContext: volume.context,
        secrets: options.secrets.controllerPublish,
      }),
    );
  }

  detach(volume: TestVolume): Promise<Answer<unknown>> {
    const { client, facts, options } = this.#rig;
    return client.call(
      ControllerService.controllerUnpublishVolume,
      ControllerUnpublishVolumeRequest.fromPartial({
        volumeId: volume.id,
        nodeId: facts.nodeId,
        secrets: options.secrets.controllerPublish,
      }),
    );
  }

  stage(volume: TestVolume, other: OtherStage): Promise<Answer<NodeStageVolumeResponse>> {
    return this.#rig.client.call(
      NodeService.nodeStageVolume,
      NodeStageVolumeRequest.fromPartial({
        volumeId: volume.id,
        publishContext: volume.publishContext,
        stagingTargetPath: other.path ?? volume.staging,
        volumeCapability: other.capability ?? volume.capability,
        secrets: other.secrets ?? this.#rig.options.secrets.stage,
        volumeContext: volume.context,
      }),
    );
  }

  unstage(volume: TestVolume, path: string): Promise<Answer<NodeUnstageVolumeResponse>> {
    const request = NodeUnstageVolumeRequest.fromPartial({ volumeId: volume.id, stagingTargetPath: path });
    return this.#rig.client.call(NodeService.nodeUnstageVolume, request);
  }

  publish(volume: TestVolume, to: Publication): Promise<Answer<NodePublishVolumeResponse>> {
    return this.#rig.client.call(
      NodeService.nodePublishVolume,
      NodePublishVolumeRequest.fromPartial({
        volumeId: volume.id,
        publishContext: volume.publishContext,
        stagingTargetPath: to.staging ?? volume.staging,
        targetPath: to.target,
        volumeCapability: to.capability ?? volume.capability,
        readonly: to.readOnly ?? false,
        secrets: to.secrets ?? this.#rig.options.secrets.publish,
        volumeContext: volume.context,
      }),
    );
  }

  unpublish(volume: TestVolume, target: string): Promise<Answer<NodeUnpublishVolumeResponse>> {
    const request = NodeUnpublishVolumeRequest.fromPartial({ volumeId: volume.id, targetPath: target });
    return this.#rig.client.call(NodeService.nodeUnpublishVolume, request);
  }
}
