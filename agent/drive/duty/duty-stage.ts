/** Stage and unstage: once per volume, as often as it is asked, and nothing left. */
import type { VolumeCapability } from '../../../plugins/csi/wire/generated/csi.ts';
import { join } from 'node:path';
import { answerText, codeOf } from '../rig/driver-client.ts';
import { type Duty, expectCode, expectNotMounted, expectOk } from './duty.ts';
import type { Life } from '../rig/life.ts';
import { kindOf, mountsAt, mountsBelow } from '../rig/machine.ts';
import { capabilityOf, stagesOf } from '../rig/rig.ts';
import type { Notes } from '../oracle/verdict.ts';

const REPEATS = 3;
const NOT_CLAIMED = 'the driver does not claim STAGE_UNSTAGE_VOLUME';

async function stage(life: Life, notes: Notes): Promise<void> {
  if (!stagesOf(life.rig)) return notes.skip(NOT_CLAIMED);
  const volume = await life.volume(notes);
  if (volume === undefined) return;
  let before: string | undefined;
  for (let count = 1; count <= REPEATS; count += 1) {
    const answer = await life.stage(volume);
    const what = count === 1 ? 'NodeStageVolume' : `NodeStageVolume, the same call for the ${count}. time`;
    if (!expectOk(notes, what, answer)) return;
    const mounts = await mountsBelow(life.directory);
    const here = mounts.filter(({ target }) => target === volume.staging);
    notes.expect(here.length <= 1, `${what} left ${here.length} mounts on top of each other`);
    notes.expect(mounts.length === here.length, `${what} mounted beside the staging path`);
    notes.expect((await kindOf(volume.staging)) === 'directory', 'the staging path is no directory any more');
    const now = JSON.stringify(here.map(({ mountId, device }) => [mountId, device]));
    notes.expect(before === undefined || before === now, `${what} mounted anew: ${before} became ${now}`);
    before = now;
  }
}

/** spec, NodeStageVolume errors: staged at that path in an incompatible way is ALREADY_EXISTS. */
async function stageCapability(life: Life, notes: Notes): Promise<void> {
  if (!stagesOf(life.rig)) return notes.skip(NOT_CLAIMED);
  const volume = await life.staged(notes);
  if (volume === undefined) return;
  const mounted = (await mountsAt(volume.staging)).length > 0;
  const other: VolumeCapability = capabilityOf(life.rig, 'block');
  const answer = await life.stage(volume, { capability: other });
  if (answer.ok) {
    const text =
      'a volume staged as a file system was staged again as a block device: OK, expected ALREADY_EXISTS';
    if (mounted) notes.fail(text);
    else notes.remark(`${text} (its stage mounts nothing, so nothing is broken by it)`);
    return;
  }
  if (answer.code === codeOf('INVALID_ARGUMENT') || answer.code === codeOf('FAILED_PRECONDITION'))
    notes.remark(`refused with ${answerText(answer)}; the specification names ALREADY_EXISTS`);
  else expectCode(notes, 'staged again with another capability', answer, ['ALREADY_EXISTS']);
  const again = await life.stage(volume);
  expectOk(notes, 'NodeStageVolume as at first, after the other one was refused', again);
}

async function unstage(life: Life, notes: Notes): Promise<void> {
  if (!stagesOf(life.rig)) return notes.skip(NOT_CLAIMED);
  const volume = await life.staged(notes);
  if (volume === undefined) return;
  for (let count = 1; count <= REPEATS; count += 1) {
    const answer = await life.unstage(volume);
    const what =
      count === 1 ? 'NodeUnstageVolume' : `NodeUnstageVolume, the same call for the ${count}. time`;
    if (!expectOk(notes, what, answer)) return;
    await expectNotMounted(notes, volume.staging, what);
  }
  const kind = await kindOf(volume.staging);
  if (kind === 'absent') notes.remark('the staging directory was removed; it belongs to the orchestrator');
  const elsewhere = await life.unstage(volume, join(life.directory, 'never-staged'));
  expectCode(notes, 'NodeUnstageVolume at a path it was never staged at', elsewhere, ['OK', 'NOT_FOUND']);
  const again = await life.stage(volume);
  expectOk(notes, 'NodeStageVolume after it was unstaged', again);
}

const looking = { looksAtMounts: true } as const;

export const STAGE_DUTIES: readonly Duty[] = [
  {
    name: 'stage',
    title: 'stages, and again is no change',
    source: 'A-055 A-057 S24',
    ...looking,
    run: stage,
  },
  {
    name: 'stage-capability',
    title: 'refuses to stage in two ways at once',
    source: 'A-062',
    ...looking,
    run: stageCapability,
  },
];

export const UNSTAGE_DUTY: Duty = {
  name: 'unstage',
  title: 'unstages, nothing stays mounted',
  source: 'A-058',
  ...looking,
  run: unstage,
};
