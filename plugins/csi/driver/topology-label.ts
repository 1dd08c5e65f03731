/**
 * The form of a driver's topology: keys and values that are labels (CSI, Topology; A-025). CSI allows a prefix of 63
 * characters and a label, by which a scheduler finds the node, one of 253: that is taken, as a kubelet does. Pure.
 */
const BYTES_MAX = 63;
const PREFIX_BYTES_MAX = 253;
const NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

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

function isLabelKey(key: string): boolean {
  const [name = '', prefix, ...more] = key.split('/', 3).reverse();
  if (more.length > 0 || name.length > BYTES_MAX || !NAME.test(name)) return false;
  return prefix === undefined || (prefix.length <= PREFIX_BYTES_MAX && PREFIX.test(prefix));
}

function isLabelValue(value: string): boolean {
  return value === '' || (value.length <= BYTES_MAX && NAME.test(value));
}
