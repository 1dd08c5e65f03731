/** PersistentVolume.spec.nodeAffinity: from which nodes the volume can be reached. */
import type { TopologyRule } from '../../plugins/volume.ts';
import type { FieldReader } from '../fields/field-reader.ts';
import { readLabelRule } from '../fields/label-rule.ts';

const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'] as const;

/** Any of its nodeSelectorTerms, each with all of its rules; undefined when there is none, and it may be anywhere. */
export function readNodeAffinity(affinity: FieldReader): readonly (readonly TopologyRule[])[] | undefined {
  if (!affinity.present) return undefined;
  const required = affinity.key('required');
  if (!required.present) {
    required.refuse('is missing; expected nodeSelectorTerms, or no nodeAffinity');
    return undefined;
  }
  const terms = required.key('nodeSelectorTerms');
  const read = terms
    .list()
    .map((term) => [
      ...term.key('matchExpressions').list().map(readRule),
      ...term.key('matchFields').list().map(readRule),
    ]);
  if (read.length === 0) terms.refuse('is missing or empty; expected at least one term');
  return read;
}

function readRule(rule: FieldReader): TopologyRule {
  return readLabelRule(rule, {
    key: 'the key of a topology, such as a zone',
    operators: OPERATORS,
    standIn: 'In',
  });
}
