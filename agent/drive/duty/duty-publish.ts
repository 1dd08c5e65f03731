/** Publish and unpublish: the target is the driver's, the mount is there, it is what was asked for, and it goes. */
import { join } from 'node:path';
import {
  ControllerService,
  NodeServiceCapability_RPC_Type as Node,
  ValidateVolumeCapabilitiesRequest,
  VolumeCapability_AccessMode_Mode as Mode,
} from '../../../plugins/csi/wire/generated/csi.ts';
import { answerText, codeOf } from '../rig/driver-client.ts';
import { type Duty, expectCode, expectMounted, expectNotMounted, expectOk } from './duty.ts';
import type { Life } from '../rig/life.ts';
import type { TestVolume } from '../rig/test-volume.ts';
import { kindOf, mountsAt, readProbe, writeProbe } from '../rig/machine.ts';
import { stableJson } from '../oracle/oracle-history.ts';
import { createsOf, defaultMode } from '../rig/rig.ts';
import type { Notes } from '../oracle/verdict.ts';

const REPEATS = 3;
const MAP_BYTES_MAX = 4_096;

async function publish(life: Life, notes: Notes): Promise<void> {
  const volume = await life.staged(notes);
  if (volume === undefined) return;
  const target = await life.newTarget();
  let before: number | undefined;
  for (let count = 1; count <= REPEATS; count += 1) {
    const what =
      count === 1 ? 'NodePublishVolume' : `NodePublishVolume, the same call for the ${count}. time`;
    if (!expectOk(notes, what, await life.publish(volume, { target }))) return;
    const mountId = await expectMounted(notes, target, what);
    if (mountId === undefined) return;
    notes.expect(before === undefined || before === mountId, `${what} mounted anew`);
    before = mountId;
  }
  notes.expect((await kindOf(target)) === 'directory', 'the target of a file system volume is no directory');
  const errno = await writeProbe(join(target, 'mooring-drive'), 'written');
  if (!notes.expect(errno === undefined, `published writable, but a write fails: ${errno}`)) return;
  const read = await readProbe(join(target, 'mooring-drive'));
  notes.expect(read.ok && read.value === 'written', 'what was written is not what is read');
}

async function readOnly(life: Life, notes: Notes): Promise<void> {
  const volume = await life.staged(notes);
  if (volume === undefined) return;
  const target = await life.newTarget();
  const answer = await life.publish(volume, { target, readOnly: true });
  if (!expectOk(notes, 'NodePublishVolume with readonly', answer)) return;
  if ((await expectMounted(notes, target, 'NodePublishVolume with readonly')) === undefined) return;
  const errno = await writeProbe(join(target, 'mooring-drive'), 'must not be written');
  notes.expect(errno !== undefined, 'published with readonly, but a file can be written');
  if (errno !== undefined && errno !== 'EROFS') notes.remark(`a write fails with ${errno}; EROFS is usual`);
}

/** The table of the specification for a second NodePublishVolume (docs/CSI.md, A.5). */
async function secondPublish(life: Life, notes: Notes): Promise<void> {
  const multi = life.rig.facts.node.has(Node.SINGLE_NODE_MULTI_WRITER);
  const byCapability = multi
    ? [Mode.SINGLE_NODE_MULTI_WRITER, Mode.SINGLE_NODE_SINGLE_WRITER, Mode.SINGLE_NODE_WRITER]
    : [Mode.SINGLE_NODE_WRITER];
  const modes = life.rig.options.accessMode === undefined ? byCapability : [defaultMode(life.rig)];
  for (const mode of modes) {
    const volume = await life.staged(notes, 'mount', mode);
    if (volume === undefined) return;
    await publishTwice(life, notes, volume, mode, multi);
  }
}

async function publishTwice(
  life: Life,
  notes: Notes,
  volume: TestVolume,
  mode: Mode,
  multi: boolean,
): Promise<void> {
  const name = Object.entries(Mode).find(([, value]) => value === mode)?.[0] ?? String(mode);
  const [first, second] = [await life.newTarget(), await life.newTarget()];
  if (!expectOk(notes, `${name}: NodePublishVolume`, await life.publish(volume, { target: first }))) return;
  const otherArguments = await life.publish(volume, { target: first, readOnly: true });
  if (otherArguments.ok)
    notes.remark(
      'published again at the same target with other arguments: OK, the specification says ALREADY_EXISTS',
    );
  else if (otherArguments.code !== codeOf('ALREADY_EXISTS'))
    notes.remark(
      `same target, other arguments: ${answerText(otherArguments)}; the specification says ALREADY_EXISTS`,
    );
  const answer = await life.publish(volume, { target: second });
  const isMultiNode = mode >= Mode.MULTI_NODE_READER_ONLY && mode <= Mode.MULTI_NODE_MULTI_WRITER;
  if (isMultiNode || mode === Mode.SINGLE_NODE_MULTI_WRITER) {
    if (expectOk(notes, `${name}: a second target`, answer))
      await twoTargets(life, notes, volume, [first, second]);
  } else if (multi && mode === Mode.SINGLE_NODE_SINGLE_WRITER) {
    expectCode(notes, `${name}: a second target`, answer, ['FAILED_PRECONDITION']);
  } else if (answer.ok) {
    notes.remark(
      `${name}: a second target is OK; the specification says FAILED_PRECONDITION, Kubernetes relies on OK`,
    );
  } else if (answer.code !== codeOf('FAILED_PRECONDITION')) {
    notes.remark(
      `${name}: a second target: ${answerText(answer)}; the specification says FAILED_PRECONDITION`,
    );
  }
  for (const target of [second, first]) await life.unpublish(volume, target);
  if (volume.staging !== '') await life.unstage(volume);
}

async function twoTargets(
  life: Life,
  notes: Notes,
  volume: TestVolume,
  [first, second]: readonly [string, string],
): Promise<void> {
  await expectMounted(notes, second, 'a second NodePublishVolume');
  await writeProbe(join(first, 'mooring-drive'), 'shared');
  const read = await readProbe(join(second, 'mooring-drive'));
  notes.expect(read.ok && read.value === 'shared', 'two targets of one volume do not show the same files');
  if (!expectOk(notes, 'NodeUnpublishVolume of one of two targets', await life.unpublish(volume, first)))
    return;
  await expectMounted(notes, second, 'NodeUnpublishVolume of the other target');
}

async function unpublish(life: Life, notes: Notes): Promise<void> {
  const place = await life.published(notes);
  if (place === undefined) return;
  const { volume, target } = place;
  for (let count = 1; count <= REPEATS; count += 1) {
    const what =
      count === 1 ? 'NodeUnpublishVolume' : `NodeUnpublishVolume, the same call for the ${count}. time`;
    if (!expectOk(notes, what, await life.unpublish(volume, target))) return;
    await expectNotMounted(notes, target, what);
    const kind = await kindOf(target);
    if (
      !notes.expect(
        kind === 'absent',
        `${what} said OK, but the target is left (${kind}); the driver removes it`,
      )
    )
      return;
  }
  const never = await life.unpublish(volume, await life.newTarget());
  expectCode(notes, 'NodeUnpublishVolume at a target it was never published at', never, ['OK', 'NOT_FOUND']);
  const again = await life.newTarget();
  if (
    !expectOk(
      notes,
      'NodePublishVolume after it was unpublished',
      await life.publish(volume, { target: again }),
    )
  )
    return;
  notes.expect(
    (await mountsAt(again)).length === 1,
    'published again after it was unpublished, but not mounted',
  );
}

/** the context is the driver's own, so it must take back exactly what it gave. */
async function volumeContext(life: Life, notes: Notes): Promise<void> {
  const { rig } = life;
  const volume = await life.volume(notes);
  if (volume === undefined) return;
  const bytes = Object.entries(volume.context)
    .flat()
    .reduce((sum, one) => sum + Buffer.byteLength(one), 0);
  notes.expect(bytes <= MAP_BYTES_MAX, `volume_context has ${bytes} bytes, ${MAP_BYTES_MAX} are allowed`);
  if (createsOf(rig) && volume.name !== undefined) {
    const again = await life.create(volume.name, volume.capability);
    if (expectOk(notes, 'CreateVolume, the same call again', again)) {
      const { volumeId, volumeContext: context } = again.reply.volume ?? { volumeId: '', volumeContext: {} };
      notes.expect(
        volumeId === volume.id,
        `CreateVolume again made another volume: ${volume.id}, then ${volumeId}`,
      );
      notes.expect(
        stableJson(context) === stableJson(volume.context),
        'CreateVolume again gave another context',
      );
    }
  }
  if (rig.facts.servesController) await validate(life, notes, volume);
  if (rig.facts.node.has(Node.STAGE_UNSTAGE_VOLUME))
    expectOk(notes, 'NodeStageVolume with the context as it was given', await life.stage(volume));
  const target = await life.newTarget();
  expectOk(
    notes,
    'NodePublishVolume with the context as it was given',
    await life.publish(volume, { target }),
  );
}

async function validate({ rig }: Life, notes: Notes, volume: TestVolume): Promise<void> {
  const request = ValidateVolumeCapabilitiesRequest.fromPartial({
    volumeId: volume.id,
    volumeContext: volume.context,
    volumeCapabilities: [volume.capability],
  });
  const answer = await rig.client.call(ControllerService.validateVolumeCapabilities, request);
  if (!expectOk(notes, 'ValidateVolumeCapabilities', answer)) return;
  const { confirmed, message } = answer.reply;
  if (confirmed === undefined)
    return notes.remark(`ValidateVolumeCapabilities does not confirm what CreateVolume took: ${message}`);
  const same =
    Object.keys(confirmed.volumeContext).length === 0 ||
    stableJson(confirmed.volumeContext) === stableJson(volume.context);
  notes.expect(same, 'ValidateVolumeCapabilities confirms another volume_context than it was asked about');
}

const looking = { looksAtMounts: true } as const;

export const PUBLISH_DUTIES: readonly Duty[] = [
  {
    name: 'volume-context',
    title: 'takes back the context it gave',
    source: 'A-019 A-013',
    looksAtMounts: false,
    run: volumeContext,
  },
  {
    name: 'publish',
    title: 'publishes, and again is no change',
    source: 'A-061 S24',
    ...looking,
    run: publish,
  },
  {
    name: 'second-publish',
    title: 'a second target',
    source: 'A-063 A.5 S6',
    ...looking,
    run: secondPublish,
  },
  { name: 'read-only', title: 'read-only is read-only', source: 'A-023', ...looking, run: readOnly },
];

export const UNPUBLISH_DUTY: Duty = {
  name: 'unpublish',
  title: 'unpublishes, the target is gone',
  source: 'A-065 A-066 S9',
  ...looking,
  run: unpublish,
};
