/** What expressions about the labels of a node mean, as in Kubernetes (component-helpers, nodeaffinity). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isTrueOf } from '../../plugins/topology-rule.ts';

test('Gt and Lt compare whole numbers, and hold of nothing else', () => {
  const holds = (operator: 'Gt' | 'Lt', value: string, label: string | undefined): boolean =>
    isTrueOf({ key: 'generation', operator, values: [value] }, label);
  assert.deepEqual(
    [holds('Gt', '9', '10'), holds('Gt', '10', '10'), holds('Lt', '10', '9'), holds('Lt', '-1', '-2')],
    [true, false, true, true],
  );
  assert.ok(holds('Gt', '9007199254740992', '9007199254740993'), 'beyond what a double can tell apart');
  for (const label of [undefined, '', '1.5', '0x10', '1e3', ' 12', 'twelve', '9223372036854775808'])
    for (const operator of ['Gt', 'Lt'] as const)
      assert.equal(holds(operator, operator === 'Gt' ? '-1' : '99', label), false, `${operator} ${label}`);
  assert.equal(holds('Gt', '', '1'), false);
});
