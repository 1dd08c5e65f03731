/** Many calls for one volume at once: each is answered OK or ABORTED, and the end is as if there had been one. */
import { type Answer, answerText, codeOf } from '../rig/driver-client.ts';
import { type Duty, expectMounted, expectNotMounted, expectOk } from './duty.ts';
import { type Life, patiently } from '../rig/life.ts';
import { mountsAt } from '../rig/machine.ts';
import { stagesOf } from '../rig/rig.ts';
import type { Notes } from '../oracle/verdict.ts';

const CALLS = 6;

async function concurrency(life: Life, notes: Notes): Promise<void> {
  const volume = await life.volume(notes);
  if (volume === undefined) return;
  if (stagesOf(life.rig)) {
    await crowd(notes, 'NodeStageVolume', () => life.stage(volume));
    if (!expectOk(notes, 'NodeStageVolume after the crowd', await patiently(() => life.stage(volume))))
      return;
    const stack = await mountsAt(volume.staging);
    notes.expect(stack.length <= 1, `${stack.length} mounts on top of each other at the staging path`);
  }
  const target = await life.newTarget();
  await crowd(notes, 'NodePublishVolume', () => life.publish(volume, { target }));
  const published = await patiently(() => life.publish(volume, { target }));
  if (!expectOk(notes, 'NodePublishVolume after the crowd', published)) return;
  await expectMounted(notes, target, `${CALLS} calls of NodePublishVolume at once`);
  await crowd(notes, 'NodeUnpublishVolume', () => life.unpublish(volume, target));
  const unpublished = await patiently(() => life.unpublish(volume, target));
  if (!expectOk(notes, 'NodeUnpublishVolume after the crowd', unpublished)) return;
  await expectNotMounted(notes, target, `${CALLS} calls of NodeUnpublishVolume at once`);
  if (!stagesOf(life.rig)) return;
  await crowd(notes, 'NodeUnstageVolume', () => life.unstage(volume));
  if (!expectOk(notes, 'NodeUnstageVolume after the crowd', await patiently(() => life.unstage(volume))))
    return;
  await expectNotMounted(notes, volume.staging, `${CALLS} calls of NodeUnstageVolume at once`);
}

async function crowd(notes: Notes, method: string, call: () => Promise<Answer<unknown>>): Promise<void> {
  const answers = await Promise.all(Array.from({ length: CALLS }, call));
  const strange = answers.filter((one) => !one.ok && one.code !== codeOf('ABORTED'));
  const texts = [...new Set(strange.map(answerText))].join('; ');
  notes.expect(strange.length === 0, `${CALLS} calls of ${method} at once: ${texts}, expected OK or ABORTED`);
}

export const CONCURRENCY_DUTY: Duty = {
  name: 'concurrency',
  title: 'many calls at once, one effect',
  source: 'A-030 A-031',
  looksAtMounts: true,
  run: concurrency,
};
