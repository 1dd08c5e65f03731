import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStatisticsCollector } from '../../../agent/node/statistics-collector.ts';
import { type Failure, fail, ok, type Result } from '../../../mount/failure.ts';
import {
  type HealthStatement,
  NO_SECRETS,
  type PluginRegistry,
  type StatisticsCall,
  type VolumePlugin,
  type VolumeStatistics,
} from '../../../plugins/plugin.ts';
import {
  type CsiVolumeSpec,
  csiVolumeId,
  parsePodUid,
  publicationKey,
  type VolumeId,
} from '../../../plugins/volume.ts';
import {
  ABSENT,
  type ActualVolume,
  onTheGround,
  PRESENT,
  type Presence,
} from '../../../reconciler/model/actual-state.ts';
import { csiSpec } from '../../plugins/csi-spec.ts';
import { createRandom } from '../../sim/random.ts';
import { createVirtualTime } from '../../sim/virtual-time.ts';

const PERIOD_MS = 60_000;
const HOUR_MS = 3_600_000;
const UID = parsePodUid('0b4f8c1e-2222-4333-8444-55556666000a') ?? assert.fail();
const MOUNT = { mountId: 7, device: '0:7' };
const UNSURE: Presence = { kind: 'unsure', because: 'begun' };

function volume(
  handle: string,
  { driver = 'a.test', published = PRESENT, staged = PRESENT }: Shape = {},
): ActualVolume {
  const spec = csiSpec(driver, handle, `pv-${handle}`);
  const key = publicationKey(UID, spec.specName);
  const pod = { uid: UID, name: 'web', namespace: 'shop', serviceAccount: 'seller' };
  const place = { key, pod, specName: spec.specName, readOnly: false, origin: 'web.yaml' };
  const publication = { spec: place, presence: published, generation: '', mount: MOUNT };
  return {
    ...onTheGround(spec, { attach: false, stage: true, expand: false }),
    staged,
    publications: published.kind === 'absent' ? new Map() : new Map([[key, publication]]),
  };
}

interface Shape {
  readonly driver?: string;
  readonly published?: Presence;
  readonly staged?: Presence;
}

type Answer = Result<VolumeStatistics | 'busy'> | 'hangs';

const said = (used: number, health?: readonly HealthStatement[]): Result<VolumeStatistics> =>
  ok({
    bytes: { total: '100' as never, used: String(used) as never, available: undefined },
    inodes: undefined,
    health,
  });
const ILL: HealthStatement = { status: 'degraded', reason: 'Rebuilding', message: 'one leg is gone' };
const late = fail({ code: 'driver-deadline', message: 'no answer within 10000 ms', effect: 'unknown' });
const refused = fail({ code: 'driver-failed', message: 'no', effect: 'none' });

function world(volumes: readonly ActualVolume[], periodMs = PERIOD_MS) {
  const time = createVirtualTime(createRandom(1));
  const actual = new Map(volumes.map((one) => [one.spec.id, one]));
  const asked: { readonly handle: string; readonly atMs: number; readonly call: StatisticsCall }[] = [];
  const hung: ((answer: Result<VolumeStatistics>) => void)[] = [];
  let timers = 0;
  const changing = new Set<VolumeId>();
  let answerOf: (handle: string) => Answer = () => said(1);
  const plugin = {
    lane: (spec: CsiVolumeSpec) => spec.driver,
    hasStatistics: ({ volumeHandle }: CsiVolumeSpec) => volumeHandle !== 'dumb',
    statistics: async (call: StatisticsCall) => {
      assert.ok(call.spec.kind === 'csi');
      const handle = call.spec.volumeHandle;
      asked.push({ handle, atMs: time.nowMs(), call });
      const answer = answerOf(handle);
      if (answer !== 'hangs') return answer;
      return new Promise<Result<VolumeStatistics>>((resolve) => hung.push(resolve));
    },
  };
  const plugins: PluginRegistry = { of: () => plugin as unknown as VolumePlugin };
  const storage = {
    drivers: () => answers.drivers,
    health: async () => {
      storageQuestions += 1;
      return answers.storageIsLate ? late : ok(answers.storage);
    },
  };
  let storageQuestions = 0;
  const events: string[] = [];
  const note = (event: string): unknown => events.push(event);
  const answers: {
    storage: readonly HealthStatement[] | undefined;
    storageIsLate: boolean;
    drivers: readonly string[];
  } = {
    storage: undefined,
    storageIsLate: false,
    drivers: ['a.test'],
  };
  const collector = createStatisticsCollector({
    clock: {
      nowMs: time.nowMs,
      timer: (delayMs, fire) => {
        timers += 1;
        const cancel = time.after(delayMs, () => {
          timers -= 1;
          fire();
        });
        return () => {
          timers -= 1;
          cancel();
        };
      },
    },
    actual: () => actual,
    isChanging: (volume) => changing.has(volume),
    plugins,
    secretsOf: () => NO_SECRETS,
    periodMs,
    storage,
    log: { debug: note, info: note, warn: note, error: note },
  });
  let changes = 0;
  collector.onChange(() => {
    changes += 1;
  });
  collector.start();
  return {
    actual,
    asked,
    answers,
    changing,
    collector,
    events,
    storageQuestions: () => storageQuestions,
    timers: () => timers,
    changes: () => changes,
    /** Ends all questions that hang. */
    async release(late: Result<VolumeStatistics> = refused) {
      for (const end of hung.splice(0)) end(late);
      await time.settle();
    },
    answer: (by: (handle: string) => Answer) => {
      answerOf = by;
    },
    of: (handle: string, driver = 'a.test') => collector.of(csiVolumeId(driver, handle)),
    /** Runs all that is due in the next `ms`. */
    async run(ms: number) {
      const untilMs = time.nowMs() + ms;
      time.after(ms, () => {});
      while ((time.nextAtMs() ?? Number.POSITIVE_INFINITY) <= untilMs) await time.step();
      await time.settle();
    },
  };
}

test('a place is asked about as it was found: not while an operation of its volume runs, nor after', async () => {
  const one = world([volume('1')]);
  await one.run(PERIOD_MS);
  const call = one.asked[0]?.call ?? assert.fail('it was not asked');
  assert.equal(call.stillThere(), true);
  one.changing.add(csiVolumeId('a.test', '1'));
  assert.equal(call.stillThere(), false, 'seed 494421835: what it has done already is believed at its end');
  one.changing.clear();
  one.actual.set(csiVolumeId('a.test', '1'), volume('1', { staged: UNSURE }));
  assert.equal(call.stillThere(), false, 'another stage');
});

for (const code of ['unpublished-still-mounted', 'unstaged-still-mounted'] as const)
  test(`A-068: where its driver says that it is not, though its mount stands, no numbers: ${code}`, async () => {
    const because: Failure = { code, message: 'it is mounted still', effect: 'unknown' };
    const left: Presence = { kind: 'unsure', because };
    const isPlace = code === 'unpublished-still-mounted';
    const shape = isPlace ? { published: left } : { published: ABSENT, staged: left };
    const one = world([{ ...volume('1', shape), stagedMount: MOUNT }]);
    await one.run(PERIOD_MS);
    const { mount } = one.asked[0]?.call ?? assert.fail('its health is of interest still');
    assert.equal(mount, undefined);
  });

test('A-068: numbers are asked where a call ended in doubt and where a restart left it: its mount stands', async () => {
  const because: Failure = { code: 'driver-deadline', message: 'no answer', effect: 'unknown' };
  for (const doubt of [because, 'restart'] as const) {
    const one = world([volume('1', { published: { kind: 'unsure', because: doubt } })]);
    await one.run(PERIOD_MS);
    assert.deepEqual(one.asked[0]?.call.mount, MOUNT);
  }
});

test('each volume that is there is asked once in a period, one after the other', async () => {
  const one = world(['1', '2', '3', '4'].map((handle) => volume(handle)));
  await one.run(5_000 + PERIOD_MS - 1);
  assert.deepEqual(
    one.asked.map(({ handle, atMs }) => [handle, atMs]),
    [
      ['1', 5_000],
      ['2', 20_000],
      ['3', 35_000],
      ['4', 50_000],
    ],
  );
  await one.run(PERIOD_MS);
  assert.equal(one.asked.length, 8);
  assert.equal(one.of('1')?.atMs, 65_000);
  assert.equal(one.of('1')?.statistics?.bytes?.used, '1');
});

test('with nothing to ask there is one timer in a period; with period 0 none at all', async () => {
  const idle = world([]);
  await idle.run(10 * PERIOD_MS);
  assert.deepEqual([idle.timers(), idle.asked.length], [1, 0]);
  const off = world([volume('1')], 0);
  await off.run(10 * PERIOD_MS);
  assert.deepEqual([off.timers(), off.asked.length], [0, 0]);
});

test('A-076: a volume whose question hangs is skipped, not queued, and keeps no other from being asked', async () => {
  const one = world([volume('hung'), volume('2'), volume('3', { driver: 'b.test' })]);
  one.answer((handle) => (handle === 'hung' ? 'hangs' : said(7)));
  await one.run(5_000 + 3 * PERIOD_MS - 1);
  const times = (handle: string) => one.asked.filter((question) => question.handle === handle).length;
  assert.deepEqual([times('hung'), times('2'), times('3')], [1, 3, 3]);
  assert.equal(one.of('2')?.statistics?.bytes?.used, '7');
  await one.release();
  await one.run(PERIOD_MS);
  assert.equal(times('hung'), 2);
});

test('a volume whose question hangs keeps its place from no other: healthy ones go on being asked', async () => {
  const hung = Array.from({ length: 20 }, (_, index) => volume(`h${index}`));
  const well = Array.from({ length: 20 }, (_, index) => volume(`w${index}`));
  const one = world([...hung, ...well]);
  one.answer((handle) => (handle.startsWith('h') ? 'hangs' : said(1)));
  await one.run(5_000 + 3 * PERIOD_MS - 1);
  const times = (handle: string) => one.asked.filter((question) => question.handle === handle).length;
  for (const { spec } of hung) assert.equal(times(spec.kind === 'csi' ? spec.volumeHandle : ''), 1);
  for (const { spec } of well) assert.equal(times(spec.kind === 'csi' ? spec.volumeHandle : ''), 3);
});

test('a driver has at most four open questions of one second; who had no turn is first', async () => {
  const many = Array.from({ length: 600 }, (_, index) => volume(String(index)));
  const one = world([...many, volume('well', { driver: 'b.test' })]);
  one.answer((handle) => (handle === 'well' ? said(1) : 'hangs'));
  await one.run(5_000 + PERIOD_MS - 1);
  const asked = one.asked.filter(({ handle }) => handle !== 'well');
  for (const [index, { atMs }] of asked.entries())
    assert.ok(atMs - (asked[index - 4]?.atMs ?? Number.NEGATIVE_INFINITY) >= 1_000);
  assert.equal(one.asked.length - asked.length, 1, 'another driver is served');
  const first = new Set(asked.map(({ handle }) => handle));
  one.answer(() => said(1));
  await one.run(10_000);
  const next = one.asked.slice(asked.length + 1);
  assert.ok(next.length > 0 && next.every(({ handle }) => !first.has(handle)));
});

test('RE-03: after a question that was not answered in time the next comes late, and later each time', async () => {
  const one = world([volume('hung'), volume('well')]);
  one.answer((handle) => (handle === 'hung' ? late : said(1)));
  const times = (handle: string) => one.asked.filter((question) => question.handle === handle).length;
  await one.run(5_000 + 2 * PERIOD_MS);
  assert.equal(times('hung'), 1, 'one in two minutes');
  assert.equal(times('well'), 2);
  await one.run(8 * HOUR_MS);
  const gaps = one.asked
    .filter(({ handle }) => handle === 'hung')
    .map(({ atMs }, index, all) => Math.round((atMs - (all[index - 1]?.atMs ?? atMs)) / PERIOD_MS));
  assert.deepEqual(gaps.slice(0, 8), [0, 5, 10, 20, 40, 60, 60, 60]);
});

test('since when an answer is owed is told, until there is one, and told to who watches', async () => {
  const one = world([volume('1')]);
  await one.run(5_000);
  one.answer(() => late);
  await one.run(PERIOD_MS);
  assert.deepEqual(
    [one.of('1')?.unansweredSinceMs, one.of('1')?.nextAskMs, one.changes()],
    [65_000, 365_000, 1],
  );
  assert.equal(one.of('1')?.failure?.code, 'driver-deadline');
  await one.run(6 * PERIOD_MS);
  assert.equal(one.of('1')?.unansweredSinceMs, 65_000, 'of all in a row the first');
  one.answer(() => said(1));
  await one.run(12 * PERIOD_MS);
  assert.deepEqual([one.of('1')?.unansweredSinceMs, one.of('1')?.failure], [undefined, undefined]);
  assert.deepEqual(one.events, ['volume question unanswered', 'volume question answered']);
});

test('who was not asked because all who could ask wait for others owes no answer, and the reason is told', async () => {
  const one = world([volume('1')]);
  one.answer(() => fail({ code: 'deadline-passed', message: 'no turn', effect: 'none', isUnasked: true }));
  await one.run(5_000 + PERIOD_MS);
  assert.equal(one.asked.length, 2, 'asked in each period');
  const { unansweredSinceMs, failure } = one.of('1') ?? assert.fail();
  assert.deepEqual([unansweredSinceMs, failure?.message], [undefined, 'no turn']);
});

test('who owes an answer still owes it, and is asked no sooner, when the next question had no turn', async () => {
  const one = world([volume('1')]);
  one.answer(() => late);
  await one.run(5_000 + PERIOD_MS);
  const { unansweredSinceMs, nextAskMs } = one.of('1') ?? assert.fail();
  one.answer(() => fail({ code: 'deadline-passed', message: 'no turn', effect: 'none', isUnasked: true }));
  await one.run((nextAskMs ?? assert.fail()) + PERIOD_MS);
  assert.equal(one.of('1')?.unansweredSinceMs, unansweredSinceMs);
  assert.deepEqual(one.events, ['volume question unanswered']);
  one.answer(() => late);
  const asked = one.asked.length;
  await one.run(20 * PERIOD_MS);
  assert.ok(one.asked.length - asked <= 3, 'the pauses grow as if it had been asked once');
});

test('who owes an answer still owes it when the next question was not put, as its volume was busy', async () => {
  const one = world([volume('1')]);
  one.answer(() => late);
  await one.run(5_000 + PERIOD_MS);
  const { unansweredSinceMs, nextAskMs } = one.of('1') ?? assert.fail();
  one.answer(() => ok('busy'));
  await one.run((nextAskMs ?? assert.fail()) + PERIOD_MS);
  assert.equal(one.of('1')?.unansweredSinceMs, unansweredSinceMs);
  assert.deepEqual(one.events, ['volume question unanswered']);
});

test('one that is still open is owed as well, when it takes longer than a question may', async () => {
  const one = world([volume('1')]);
  one.answer(() => 'hangs');
  await one.run(5_000);
  assert.equal(one.of('1')?.unansweredSinceMs, undefined);
  await one.run(90_001);
  assert.equal(one.of('1')?.unansweredSinceMs, 5_000);
});

test('one that waits for its turn, or for a look that takes long, is no silence of its volume meanwhile', async () => {
  const one = world([volume('1')]);
  one.answer(() => 'hangs');
  await one.run(5_000 + 29_000);
  assert.equal(one.of('1')?.unansweredSinceMs, undefined, 'it waits for a process, behind others that hang');
  assert.equal(one.collector.owedBy('a.test'), 0);
  await one.run(20_000);
  assert.equal(one.of('1')?.unansweredSinceMs, undefined, 'many files are counted for so long');
  await one.release(said(1));
  assert.deepEqual(one.events, []);
});

test('a new instance of the driver is asked in the next period, whatever the old one owes', async () => {
  const one = world([volume('1'), volume('2', { driver: 'b.test' })]);
  one.answer(() => late);
  await one.run(5_000 + PERIOD_MS - 1);
  assert.equal(one.asked.length, 2);
  one.collector.driverChanged({ name: 'a.test', life: '2 of 0' });
  await one.run(PERIOD_MS);
  assert.deepEqual(
    one.asked.map(({ handle }) => handle),
    ['1', '2', '1'],
  );
});

test('RE-03: the same life of the driver that registers again may be at work on the question still', async () => {
  const one = world([volume('1')]);
  const instance = { name: 'a.test', life: '1 of 0' };
  one.collector.driverChanged(instance);
  one.answer(() => late);
  await one.run(5_000 + PERIOD_MS - 1);
  one.collector.driverChanged(instance);
  await one.run(2 * PERIOD_MS);
  assert.equal(one.asked.length, 1);
});

test('RE-03: the storage behind a driver is asked no more often than a volume when it does not answer', async () => {
  const one = world([]);
  one.answers.storageIsLate = true;
  await one.run(5_000 + 4 * PERIOD_MS);
  assert.equal(one.storageQuestions(), 1);
  await one.run(PERIOD_MS);
  assert.equal(one.storageQuestions(), 2);
});

test('a failure keeps the last answer with its age; busy changes nothing', async () => {
  const one = world([volume('1')]);
  await one.run(5_000);
  one.answer(() => ok('busy'));
  await one.run(PERIOD_MS);
  assert.deepEqual([one.of('1')?.atMs, one.of('1')?.failure], [5_000, undefined]);
  one.answer(() => refused);
  await one.run(PERIOD_MS);
  assert.deepEqual([one.of('1')?.atMs, one.of('1')?.failure?.code], [5_000, 'driver-failed']);
  assert.equal(one.of('1')?.statistics?.bytes?.used, '1');
  one.answer(() => said(2));
  await one.run(PERIOD_MS);
  assert.deepEqual([one.of('1')?.atMs, one.of('1')?.failure], [185_000, undefined]);
});

test('A-075: a volume stuck in stage is asked; one that is only attached, or nowhere, is not', async () => {
  const stuck = volume('stuck', { staged: UNSURE, published: ABSENT });
  const tried = volume('tried', { published: UNSURE });
  const attached = { ...volume('attached', { staged: ABSENT, published: ABSENT }), attached: PRESENT };
  const one = world([stuck, tried, attached]);
  await one.run(5_000 + PERIOD_MS - 1);
  assert.deepEqual(
    one.asked.map(({ handle, call }) => [handle, call.publication?.specName, call.mount]),
    [
      ['stuck', undefined, undefined],
      ['tried', 'pv-tried', MOUNT],
    ],
  );
});

test('A-074: a change of health is told; numbers, and the first word that all is well, are not', async () => {
  const one = world([volume('1')]);
  let used = 0;
  let health: readonly HealthStatement[] | undefined = [];
  one.answer(() => said(++used, health));
  await one.run(5_000 + 2 * PERIOD_MS);
  assert.deepEqual([one.asked.length, one.changes()], [3, 0]);
  health = [ILL];
  await one.run(2 * PERIOD_MS);
  assert.equal(one.changes(), 1);
  health = undefined;
  await one.run(2 * PERIOD_MS);
  assert.deepEqual([one.changes(), one.of('1')?.statistics?.health], [1, [ILL]]);
  await one.run(PERIOD_MS);
  assert.deepEqual([one.changes(), one.of('1')?.statistics?.health], [2, undefined]);
});

test('what was said of a volume that is gone is forgotten, and a late answer about it is dropped', async () => {
  const one = world([volume('1'), volume('2')]);
  const id: VolumeId = csiVolumeId('a.test', '1');
  one.answer(() => 'hangs');
  await one.run(5_000);
  one.actual.delete(id);
  assert.equal(one.collector.of(id), undefined);
  await one.run(2 * PERIOD_MS);
  one.actual.set(id, volume('1'));
  await one.release(said(1, [ILL]));
  assert.equal(one.collector.of(id), undefined);
  // What changed is of the volume that is still there.
  assert.equal(one.changes(), 1);
});

test('the health of the storage behind a driver is asked once in a period, and its change is told', async () => {
  const one = world([]);
  await one.run(5_000);
  assert.equal(one.collector.ofStorage('a.test'), undefined);
  one.answers.storage = [ILL];
  await one.run(PERIOD_MS);
  assert.deepEqual([one.collector.ofStorage('a.test'), one.changes()], [[ILL], 1]);
});

test('what a driver said of its storage is forgotten with the driver', async () => {
  const one = world([]);
  one.answers.storage = [ILL];
  await one.run(5_000);
  one.answers.drivers = [];
  await one.run(PERIOD_MS);
  assert.deepEqual([one.collector.ofStorage('a.test'), one.changes()], [undefined, 2]);
});

test('after stop nothing is asked, told or timed', async () => {
  const one = world([volume('1')]);
  one.answer(() => 'hangs');
  await one.run(5_000);
  one.collector.stop();
  await one.release(said(1, [ILL]));
  await one.run(5 * PERIOD_MS);
  assert.deepEqual([one.asked.length, one.timers(), one.changes()], [1, 0, 0]);
});

test('of which nothing can be told, nobody asks and nobody is delayed', async () => {
  const one = world(['dumb', '1'].map((handle) => volume(handle)));
  await one.run(5_000 + 3 * PERIOD_MS - 1);
  assert.deepEqual(
    one.asked.map(({ handle, atMs }) => [handle, atMs]),
    [0, 1, 2].map((round) => ['1', 5_000 + round * PERIOD_MS]),
  );
});
