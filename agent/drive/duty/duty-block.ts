/** A volume as a raw block device: a device node at the target, and the same bytes the next time. */
import { codeOf } from '../rig/driver-client.ts';
import { type Duty, expectOk } from './duty.ts';
import type { Life } from '../rig/life.ts';
import type { TestVolume } from '../rig/test-volume.ts';
import { deviceBytes, deviceOf, kindOf, mountsAt, readBlock, writeBlock } from '../rig/machine.ts';
import { capabilityOf, createsOf, stagesOf } from '../rig/rig.ts';
import { Notes } from '../oracle/verdict.ts';

const MARK = 'written by mooring drive';

async function block(life: Life, notes: Notes): Promise<void> {
  const volume = await blockVolume(life, notes);
  if (volume === undefined) return;
  if (stagesOf(life.rig)) {
    for (const what of ['NodeStageVolume as block', 'NodeStageVolume as block again'])
      if (!expectOk(notes, what, await life.stage(volume))) return;
  }
  const target = await life.newTarget();
  for (const what of ['NodePublishVolume as block', 'NodePublishVolume as block again'])
    if (!expectOk(notes, what, await life.publish(volume, { target }))) return;
  if (!(await isDevice(notes, target, volume.capacityBytes))) return;
  const errno = await writeBlock(target, MARK);
  if (!notes.expect(errno === undefined, `the device cannot be written: ${errno}`)) return;
  if (!expectOk(notes, 'NodeUnpublishVolume', await life.unpublish(volume, target))) return;
  const left = await kindOf(target);
  notes.expect(left === 'absent', `NodeUnpublishVolume said OK, but the target is left (${left})`);
  if (stagesOf(life.rig)) {
    if (!expectOk(notes, 'NodeUnstageVolume', await life.unstage(volume))) return;
    if (!expectOk(notes, 'NodeStageVolume after unstage', await life.stage(volume))) return;
  }
  const again = await life.newTarget();
  if (!expectOk(notes, 'NodePublishVolume after unpublish', await life.publish(volume, { target: again })))
    return;
  if (!(await isDevice(notes, again, volume.capacityBytes))) return;
  const read = await readBlock(again);
  notes.expect(
    read.ok && read.value === MARK,
    'the bytes that were written are not there after it was published again',
  );
}

async function blockVolume(life: Life, notes: Notes): Promise<TestVolume | undefined> {
  const { options } = life.rig;
  if (!createsOf(life.rig)) {
    if (options.block && options.volumeHandles.length > 1) return life.volume(notes, 'block');
    notes.skip('it overwrites a volume: give a second --volume-handle for that, and --block');
    return undefined;
  }
  // A driver without block volumes refuses to make one, or to stage it.
  const asked = new Notes();
  const probe = await life.create(`mooring-drive-${life.rig.runId}-block`, capabilityOf(life.rig, 'block'));
  if (!probe.ok && !options.block && REFUSALS.has(probe.code ?? -1)) {
    notes.skip('the driver makes no block volumes');
    return undefined;
  }
  if (probe.ok && probe.reply.volume !== undefined) await life.forget(probe.reply.volume.volumeId);
  const volume = await life.volume(asked, 'block');
  if (volume === undefined) notes.fail(asked.verdict(false).findings.join('; '));
  return volume;
}

const REFUSALS: ReadonlySet<number> = new Set([
  codeOf('INVALID_ARGUMENT'),
  codeOf('FAILED_PRECONDITION'),
  codeOf('UNIMPLEMENTED'),
]);

async function isDevice(notes: Notes, target: string, capacity: bigint): Promise<boolean> {
  const device = await deviceOf(target);
  if (device === undefined)
    notes.fail(`published as block, but the target is no block device (${await kindOf(target)})`);
  if (device === undefined) return false;
  const stack = await mountsAt(target);
  notes.expect(stack.length <= 1, `${stack.length} mounts on top of each other at the target`);
  const bytes = await deviceBytes(device);
  if (bytes !== undefined && capacity > 0n)
    notes.expect(bytes >= capacity, `the device has ${bytes} bytes, the volume should have ${capacity}`);
  return true;
}

export const BLOCK_DUTY: Duty = {
  name: 'block',
  title: 'a raw block device',
  source: 'A-061 A-070',
  looksAtMounts: true,
  run: block,
};
