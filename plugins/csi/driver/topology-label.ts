/**
 * The form of a driver's topology: keys and values that are labels (CSI, Topology; A-025). CSI allows a prefix of 63
 * characters and a label, by which a scheduler finds the node, one of 253: that is taken, as a kubelet does. Pure.
 */
import { isLabelKey } from '../../volume.ts';

const BYTES_MAX = 63;
const VALUE = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

/** The first key or value that is no label; undefined: all are. */
export function topologyBreach(segments: Readonly<Record<string, string>>): string | undefined {
  for (const [key, value] of Object.entries(segments)) {
    if (!isLabelKey(key))
      return (
        `the topology key "${key}" is no label: a name of at most ${BYTES_MAX} letters, digits, "-", "_" and ".", ` +
        'and before it, if anything, a domain name and "/"'
      );
    if (!isLabelValue(value))
      return (
        `the value "${value}" of the topology key "${key}" is no label: at most ${BYTES_MAX} letters, digits, ` +
        '"-", "_" and ".", beginning and ending with a letter or digit'
      );
  }
  return undefined;
}

function isLabelValue(value: string): boolean {
  return value === '' || (value.length <= BYTES_MAX && VALUE.test(value));
}
