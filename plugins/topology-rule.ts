/** Whether one expression about the labels of a node holds. Pure. */
import type { TopologyRule } from './volume.ts';

/** As Kubernetes has it of a node whose labels are all known; `label` undefined: it has none of that key. */
export function isTrueOf({ operator, values }: TopologyRule, label: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return label !== undefined && values.includes(label);
    case 'NotIn':
      return label === undefined || !values.includes(label);
    case 'Exists':
      return label !== undefined;
    case 'DoesNotExist':
      return label === undefined;
    case 'Gt':
      return label !== undefined && Number(label) > Number(values[0]);
    case 'Lt':
      return label !== undefined && Number(label) < Number(values[0]);
  }
}
