/** ControllerPublishVolume and its undoing, and the context that is handed on. */
import {
  ControllerPublishVolumeRequest,
  ControllerService,
  PluginCapability_Service_Type as Service,
} from '../../../plugins/csi/wire/generated/csi.ts';
import { type Duty, expectCode, expectOk } from './duty.ts';
import type { Life } from '../rig/life.ts';
import { stableJson } from '../oracle/oracle-history.ts';
import { attachesOf, stagesOf } from '../rig/rig.ts';
import type { Notes } from '../oracle/verdict.ts';

const REPEATS = 3;
const MAP_BYTES_MAX = 4_096;

async function attach(life: Life, notes: Notes): Promise<void> {
  const { rig } = life;
  if (rig.facts.services.has(Service.CONTROLLER_SERVICE) && !rig.facts.servesController)
    return notes.skip('the driver claims CONTROLLER_SERVICE and does not serve it at this socket');
  if (!attachesOf(rig)) return notes.skip('the driver does not claim PUBLISH_UNPUBLISH_VOLUME');
  const volume = await life.volume(notes);
  if (volume === undefined) return;
  const first = stableJson(volume.publishContext);
  const bytes = Buffer.byteLength(Object.entries(volume.publishContext).flat().join(''));
  notes.expect(bytes <= MAP_BYTES_MAX, `publish_context has ${bytes} bytes, ${MAP_BYTES_MAX} are allowed`);
  const again = await life.attach(volume);
  if (expectOk(notes, 'ControllerPublishVolume, the same call again', again))
    notes.expect(
      first === stableJson(volume.publishContext),
      'publish_context is another one the second time',
    );
  const elsewhere = await rig.client.call(
    ControllerService.controllerPublishVolume,
    ControllerPublishVolumeRequest.fromPartial({
      volumeId: volume.id,
      nodeId: 'mooring-drive-no-such-node',
      volumeCapability: volume.capability,
      volumeContext: volume.context,
      secrets: rig.options.secrets.controllerPublish,
    }),
  );
  expectCode(notes, 'ControllerPublishVolume to a node that does not exist', elsewhere, [
    'NOT_FOUND',
    'FAILED_PRECONDITION',
  ]);
  if (stagesOf(rig)) {
    expectOk(notes, 'NodeStageVolume with publish_context', await life.stage(volume));
    expectOk(notes, 'NodeUnstageVolume', await life.unstage(volume));
  } else {
    const target = await life.newTarget();
    expectOk(notes, 'NodePublishVolume with publish_context', await life.publish(volume, { target }));
    expectOk(notes, 'NodeUnpublishVolume', await life.unpublish(volume, target));
  }
  for (let count = 1; count <= REPEATS; count += 1)
    expectOk(notes, `ControllerUnpublishVolume, for the ${count}. time`, await life.detach(volume));
}

export const ATTACH_DUTY: Duty = {
  name: 'attach',
  title: 'attaches to this node and to no other',
  source: 'A-020 A-085 A-088',
  looksAtMounts: false,
  run: attach,
};
