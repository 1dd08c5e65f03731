import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planDocument } from '../../../agent/plan/plan-document.ts';
import { planText } from '../../../agent/cli/plan-text.ts';
import type { VolumeId } from '../../../plugins/volume.ts';
import { PRESENT } from '../../../reconciler/model/actual-state.ts';
import { actual, DATA, facts, WEB } from '../status-fixture.ts';

test('SE-21: a plan names a volume, and who keeps an agent from starting, without what a terminal acts on', () => {
  const evil = { ...DATA, id: 'kubernetes.io/csi/a.example.com^\u001b[2J\nv' as VolumeId };
  const plan = planDocument({
    facts: facts({ actual: new Map([[evil.id, actual(evil, PRESENT, PRESENT, WEB)]]) }),
    root: '/var/lib/mooring',
    whole: true,
    refusal: { code: 'kubelet-running', message: 'it runs', effect: 'none', blocker: 'pid 1 (\u001b[2J)' },
    planOf: () => ({ operations: [], waits: [] }),
    wordOf: () => undefined,
  });
  assert.equal(plan.volumes[0]?.id, 'kubernetes.io/csi/a.example.com^\\u001b[2J\\u000av');
  assert.equal(plan.refusal?.blocker, 'pid 1 (\\u001b[2J)');
  const text = planText(plan, { widthMax: undefined, colour: false, unicode: true });
  assert.doesNotMatch(text, /[^\P{C}\n]/u);
});
