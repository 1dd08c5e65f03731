import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planAndShow } from '../../../agent/cli/plan-command.ts';
import type { Config, ConfigReading } from '../../../agent/config/config.ts';
import type { PlanDocument, PlannedPlace } from '../../../agent/plan/plan-document.ts';
import type { PlanOutcome } from '../../../agent/plan/plan-outcome.ts';

const reading: ConfigReading = { ok: true, value: {} as Config, warnings: [] };
const pod = { namespace: 'default', name: 'web', uid: 'u-1' };
const place: PlannedPlace = { pod, listed: true, name: 'data', action: 'repeat', reason: null };
const volume = { id: 'v-1', kind: 'csi', driver: 'a.example.com', stage: 'repeat', reason: null } as const;

function planOf(change: Partial<PlanDocument>, ...places: readonly PlannedPlace[]): PlanDocument {
  return {
    ...{ apiVersion: 'mooring/v1', kind: 'Plan', node: 'n', root: '/r', whole: true, refusal: null },
    ...{ disturbed: 0, unresolved: [], volumes: [{ ...volume, unexplained: null, places }] },
    sources: { rejected: [], unknown: [], vanishing: null, vanished: null, cluster: null, replaced: null },
    ...change,
  };
}

async function shown(outcome: PlanOutcome, output = 'table') {
  const said: string[] = [];
  const say = (text: string): void => void said.push(text);
  const code = await planAndShow(
    reading,
    { output, timeout: '1s' },
    {
      look: () => ({ widthMax: undefined, colour: false, unicode: false }),
      rows: () => undefined,
      ...{ write: say, complain: say, sleep: async () => {} },
    },
    async (_, patienceMs) => {
      assert.equal(patienceMs, 1_000);
      return outcome;
    },
  );
  return { code, text: said.join('') };
}

const codeOf = async (document: PlanDocument): Promise<number> =>
  (await shown({ kind: 'planned', document })).code;

test('the worst of a plan is its exit code: pods that lose, what was not read, what would not start', async () => {
  const refusal = { code: 'kubelet-running', message: 'it runs', blocker: 'pid 1' };
  assert.equal(await codeOf(planOf({}, place)), 0);
  assert.equal(await codeOf(planOf({ refusal }, place)), 78);
  assert.equal(await codeOf(planOf({ refusal, whole: false }, place)), 1);
  assert.equal(await codeOf(planOf({ refusal, whole: false, disturbed: 1 }, place)), 3);
  const failure = { code: 'already-running', message: 'an agent has it', effect: 'none' } as const;
  const refused = await shown({ kind: 'refused', exitCode: 75, failure });
  assert.deepEqual(refused, { code: 75, text: 'mooring: already-running: an agent has it\n' });
});

test('a person reads what becomes of each volume of each pod, why, and what it comes to', async () => {
  const reason = { code: 'mount-foreign', message: 'somebody mounted over it', blocker: '/x' };
  const stray = { ...place, pod: { ...pod, name: '', uid: 'u-2' }, listed: false };
  const document = planOf(
    { disturbed: 1, whole: false },
    place,
    { ...place, name: 'logs', action: 'take-down' },
    { ...stray, action: 'leave-alone', reason },
  );
  const { text } = await shown({ kind: 'planned', document });
  assert.equal(
    text,
    `POD          VOLUME  DRIVER         WOULD
default/web  data    a.example.com  take over
default/web  logs    a.example.com  take down
u-2          data    a.example.com  leave alone
    \\_ mount-foreign: somebody mounted over it

Node n, /r: take over 1, take down 1, leave alone 1.
Not all has been read: there may be more, and nothing is taken down before it was.
One volume would be taken from pods that are wanted.
`,
  );
  const { text: json } = await shown({ kind: 'planned', document }, 'json');
  assert.deepEqual(JSON.parse(json), document);
});

test('of what is refused a person reads in which file it is, and which field', async () => {
  const rejected = [
    {
      origin: 'bad.yaml#2',
      subject: 'Pod default/bad',
      field: 'spec.volumes[0].name',
      message: 'is missing',
    },
    { origin: 'torn.yaml', subject: null, field: null, message: 'it is not UTF-8 text' },
  ];
  const document = planOf({ sources: { ...planOf({}).sources, rejected } });
  const { text } = await shown({ kind: 'planned', document });
  assert.match(text, /^Pod default\/bad in bad\.yaml#2: spec\.volumes\[0\]\.name: is missing$/m);
  assert.match(text, /^torn\.yaml: it is not UTF-8 text$/m);
});

test('a plan of nothing but a stage, or a volume that cannot be resolved, is no plan of nothing', async () => {
  const reason = { code: 'reference-missing', message: 'Secret default/key does not exist', blocker: null };
  const unresolved = [{ pod, name: 'data', reason }];
  const of = async (document: PlanDocument) => (await shown({ kind: 'planned', document })).text;
  assert.match(await of(planOf({})), /^Node n, \/r: take over 1\.$/m);
  assert.match(await of(planOf({ unresolved, volumes: [] })), /^Node n, \/r: wait 1\.$/m);
  const staged = { ...volume, stage: 'take-down', unexplained: null, places: [place] } as const;
  assert.match(await of(planOf({ volumes: [staged] })), /^Node n, \/r: take over 1, take down 1\.$/m);
  assert.match(
    await of(planOf({ volumes: [] })),
    /^Node n, \/r: nothing is there, and nothing is wanted\.$/m,
  );
});
