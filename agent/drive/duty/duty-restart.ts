/** The driver is killed at rest and in the middle of each step; the same call again finds the way. */
import { join } from 'node:path';
import { type Answer, answerText } from '../rig/driver-client.ts';
import { type Duty, expectMounted, expectNotMounted, expectOk } from './duty.ts';
import { type Life, patiently } from '../rig/life.ts';
import type { TestVolume } from '../rig/test-volume.ts';
import { CLOCK, kindOf, mountsAt, pause, readProbe, writeProbe } from '../rig/machine.ts';
import { type Rig, stagesOf } from '../rig/rig.ts';
import type { Notes } from '../oracle/verdict.ts';

const NO_COMMAND = 'no command given: drive did not start the driver and cannot kill it';
const ROUNDS = 2;
/** The part of the step's usual time after which the driver is killed, at least and at most. */
const KILL_FRACTION_MIN = 0.1;
const KILL_FRACTION_RANGE = 0.8;

async function restart(rig: Rig, notes: Notes): Promise<boolean> {
  await rig.driver?.kill();
  await rig.driver?.start();
  const late = await rig.untilReady();
  return notes.expect(late === undefined, `after a restart: ${late}`);
}

/** Between two calls nothing is lost: not the data, not the mounts, not what the driver knows. */
async function data(life: Life, notes: Notes): Promise<void> {
  if (life.rig.driver === undefined) return notes.skip(NO_COMMAND);
  const place = await life.published(notes);
  if (place === undefined) return;
  const { volume, target } = place;
  const file = join(target, 'mooring-drive');
  const errno = await writeProbe(file, life.rig.runId);
  if (!notes.expect(errno === undefined, `a write fails: ${errno}`)) return;
  const before = (await mountsAt(target)).at(-1)?.mountId;
  if (!(await restart(life.rig, notes))) return;
  const after = (await mountsAt(target)).at(-1)?.mountId;
  notes.expect(before === after, 'the mount did not survive the driver');
  if (stagesOf(life.rig)) expectOk(notes, 'NodeStageVolume again after a restart', await life.stage(volume));
  expectOk(notes, 'NodePublishVolume again after a restart', await life.publish(volume, { target }));
  await expectMounted(notes, target, 'NodePublishVolume after a restart');
  const read = await readProbe(file);
  notes.expect(read.ok && read.value === life.rig.runId, 'the data is not there after a restart');
  if (!(await restart(life.rig, notes))) return;
  if (!expectOk(notes, 'NodeUnpublishVolume after a restart', await life.unpublish(volume, target))) return;
  await expectNotMounted(notes, target, 'NodeUnpublishVolume after a restart');
  if (!stagesOf(life.rig)) return;
  if (!(await restart(life.rig, notes))) return;
  if (!expectOk(notes, 'NodeUnstageVolume after a restart', await life.unstage(volume))) return;
  await expectNotMounted(notes, volume.staging, 'NodeUnstageVolume after a restart');
  if (!expectOk(notes, 'NodeStageVolume', await life.stage(volume))) return;
  const again = await life.newTarget();
  if (!expectOk(notes, 'NodePublishVolume', await life.publish(volume, { target: again }))) return;
  const reread = await readProbe(join(again, 'mooring-drive'));
  notes.expect(
    reread.ok && reread.value === life.rig.runId,
    'the data is not there when it is published again',
  );
}

/** One step of the ladder and how to come before it again. */
interface Step {
  readonly method: string;
  readonly call: () => Promise<Answer<unknown>>;
  readonly undo: () => Promise<Answer<unknown>>;
  readonly look: (after: string) => Promise<void>;
}

function killed(step: 'stage' | 'publish' | 'unpublish' | 'unstage') {
  return async (life: Life, notes: Notes): Promise<void> => {
    if (life.rig.driver === undefined) return notes.skip(NO_COMMAND);
    if (!stagesOf(life.rig) && (step === 'stage' || step === 'unstage'))
      return notes.skip('the driver does not claim STAGE_UNSTAGE_VOLUME');
    const volume = await (step === 'stage' ? life.volume(notes) : life.staged(notes));
    if (volume === undefined) return;
    const steps = stepsOf(life, notes, volume, await life.newTarget());
    const { method, call, undo, look } = steps[step];
    // Once in peace, to know how long it takes, and back.
    if (step === 'unpublish' && !(await isReady(notes, steps.publish))) return;
    const startMs = CLOCK.nowMs();
    const peaceful = await call();
    const usualMs = CLOCK.nowMs() - startMs;
    if (!peaceful.ok) return notes.blocked(`${method}: ${answerText(peaceful)}`);
    for (let round = 1; round <= ROUNDS; round += 1) {
      const back = await patiently(undo);
      if (!back.ok) return notes.blocked(`the way back from ${method}: ${answerText(back)}`);
      const fraction = KILL_FRACTION_MIN + KILL_FRACTION_RANGE * life.rig.random();
      await killDuring(life.rig, call, usualMs * fraction);
      const late = await life.rig.untilReady();
      if (!notes.expect(late === undefined, `killed during ${method}: ${late}`)) return;
      const again = await patiently(call);
      const when = `${method}, after the driver was killed in the middle of it`;
      if (!expectOk(notes, when, again)) return;
      await look(when);
    }
  };
}

async function isReady(notes: Notes, { method, call }: Step): Promise<boolean> {
  const answer = await call();
  if (!answer.ok) notes.blocked(`${method}: ${answerText(answer)}`);
  return answer.ok;
}

async function killDuring({ driver }: Rig, call: () => Promise<unknown>, afterMs: number): Promise<void> {
  const answered = call();
  await pause(afterMs);
  await driver?.kill();
  await answered;
  await driver?.start();
}

function stepsOf(
  life: Life,
  notes: Notes,
  volume: TestVolume,
  target: string,
): Readonly<Record<'stage' | 'publish' | 'unpublish' | 'unstage', Step>> {
  const publish = () => life.publish(volume, { target });
  const unpublish = () => life.unpublish(volume, target);
  const stage = () => life.stage(volume);
  const unstage = () => life.unstage(volume);
  return {
    stage: {
      method: 'NodeStageVolume',
      call: stage,
      undo: unstage,
      look: async (after) => {
        const stack = await mountsAt(volume.staging);
        notes.expect(stack.length <= 1, `${after}: ${stack.length} mounts on top of each other`);
      },
    },
    publish: {
      method: 'NodePublishVolume',
      call: publish,
      undo: unpublish,
      look: async (after) => void (await expectMounted(notes, target, after)),
    },
    unpublish: {
      method: 'NodeUnpublishVolume',
      call: unpublish,
      undo: publish,
      look: async (after) => {
        await expectNotMounted(notes, target, after);
        const kind = await kindOf(target);
        notes.expect(kind === 'absent', `${after}: the target is left (${kind})`);
      },
    },
    unstage: {
      method: 'NodeUnstageVolume',
      call: unstage,
      undo: stage,
      look: (after) => expectNotMounted(notes, volume.staging, after),
    },
  };
}

const looking = { looksAtMounts: true } as const;
const source = 'A-031 A-032 A-056';

export const RESTART_DUTIES: readonly Duty[] = [
  { name: 'restart', title: 'a restart loses nothing', source: 'A-057', ...looking, run: data },
  { name: 'kill-stage', title: 'killed in the middle of stage', source, ...looking, run: killed('stage') },
  {
    name: 'kill-publish',
    title: 'killed in the middle of publish',
    source,
    ...looking,
    run: killed('publish'),
  },
  {
    name: 'kill-unpublish',
    title: 'killed in the middle of unpublish',
    source,
    ...looking,
    run: killed('unpublish'),
  },
  {
    name: 'kill-unstage',
    title: 'killed in the middle of unstage',
    source,
    ...looking,
    run: killed('unstage'),
  },
];
