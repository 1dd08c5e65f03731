/** What the cluster is told of this node's drivers: what has to be changed of what it has. Pure. */
import { isMapping, mappingIn, textsIn } from '../../kubernetes/fields/plain-value.ts';
import type { DriverInstance } from '../../plugins/csi/driver/driver.ts';

/** One entry of a CSINode object; what others wrote into theirs is kept as it is. */
export type DriverEntry = Readonly<Record<string, unknown>> & { readonly name: string };

export type AnnouncedDriver = Pick<DriverInstance, 'name' | 'nodeId' | 'topology' | 'volumesMax'>;

export interface NodeMarks {
  /** The annotation that says what each driver calls this node; undefined: it says so already. */
  readonly nodeIds: string | undefined;
  /** Labels that the Node lacks. */
  readonly labels: Readonly<Record<string, string>>;
  /** By driver: labels that have another value than it says. They are left as they are, and told. */
  readonly collisions: ReadonlyMap<string, readonly string[]>;
}

/** A larger one is no 32-bit number, and the server refuses it. */
const COUNT_MAX = 2 ** 31 - 1;
export const NODE_IDS = 'csi.volume.kubernetes.io/nodeid';

/**
 * The entries as they are to be, or undefined when they are so. Those of drivers that are neither here nor `gone` are
 * left alone. The server takes no entry that is another one under its old name, but for its count, and with
 * `isCountFixed` not that either: such a one is taken away first, and comes back by the next look.
 */
export function driverEntries(
  now: readonly DriverEntry[],
  here: readonly AnnouncedDriver[],
  gone: ReadonlySet<string>,
  isCountFixed = false,
): readonly DriverEntry[] | undefined {
  const wanted = new Map(here.map((driver) => [driver.name, entryOf(driver)]));
  const next: DriverEntry[] = [];
  for (const entry of now) {
    const mine = wanted.get(entry.name);
    wanted.delete(entry.name);
    if (mine === undefined && !gone.has(entry.name)) next.push(entry);
    else if (mine !== undefined && isSameDriver(entry, mine) && isSameCount(entry, mine)) next.push(entry);
    else if (mine !== undefined && isSameDriver(entry, mine) && !isCountFixed) next.push(mine);
  }
  for (const mine of wanted.values()) next.push(mine);
  const isSame = next.length === now.length && next.every((entry, index) => entry === now[index]);
  return isSame ? undefined : next;
}

/** What is no entry is dropped. */
export function entriesIn(csiNode: Readonly<Record<string, unknown>>): readonly DriverEntry[] {
  const spec = mappingIn(csiNode['spec']);
  const drivers: readonly unknown[] = Array.isArray(spec['drivers']) ? spec['drivers'] : [];
  return drivers.filter((one): one is DriverEntry => isMapping(one) && typeof one['name'] === 'string');
}

/** The first Node that owns it; undefined when none does. */
export function ownerUidOf(csiNode: Readonly<Record<string, unknown>>): string | undefined {
  const metadata = mappingIn(csiNode['metadata']);
  const owners: readonly unknown[] = Array.isArray(metadata['ownerReferences'])
    ? metadata['ownerReferences']
    : [];
  const owner = owners.filter(isMapping).find(({ kind }) => kind === 'Node');
  return typeof owner?.['uid'] === 'string' ? owner['uid'] : undefined;
}

export function nodeMarks(
  node: Readonly<Record<string, unknown>>,
  here: readonly AnnouncedDriver[],
  gone: ReadonlySet<string>,
): NodeMarks {
  const metadata = mappingIn(node['metadata']);
  const annotations = mappingIn(metadata['annotations']);
  const labels = mappingIn(metadata['labels']);
  const before = new Map(Object.entries(nodeIdsIn(annotations[NODE_IDS])));
  const ids = new Map([...before].filter(([name]) => !gone.has(name)));
  for (const { name, nodeId } of here) ids.set(name, nodeId);
  const isSame = ids.size === before.size && [...ids].every(([name, id]) => before.get(name) === id);
  const lacking = new Map<string, string>();
  const collisions = new Map<string, string[]>();
  for (const { name, topology } of here)
    for (const [key, value] of Object.entries(topology)) {
      const known = labels[key] ?? lacking.get(key);
      if (known === undefined) lacking.set(key, value);
      else if (known !== value)
        collisions.set(name, [
          ...(collisions.get(name) ?? []),
          `driver ${name} says ${key}=${value}, and the Node has ${key}=${String(known)}`,
        ]);
    }
  return {
    nodeIds: isSame ? undefined : JSON.stringify(Object.fromEntries([...ids].sort())),
    labels: Object.fromEntries(lacking),
    collisions,
  };
}

/** Nothing of one that is not the JSON it should be: it is written anew. */
function nodeIdsIn(text: unknown): Readonly<Record<string, unknown>> {
  if (typeof text !== 'string') return {};
  try {
    const value: unknown = JSON.parse(text);
    return mappingIn(value);
  } catch {
    return {};
  }
}

function entryOf({ name, nodeId, topology, volumesMax }: AnnouncedDriver): DriverEntry {
  const keys = Object.keys(topology).sort();
  const isCounted = volumesMax > 0 && volumesMax <= COUNT_MAX;
  return {
    name,
    nodeID: nodeId,
    ...(keys.length === 0 ? {} : { topologyKeys: keys }),
    ...(isCounted ? { allocatable: { count: volumesMax } } : {}),
  };
}

function isSameDriver(a: DriverEntry, b: DriverEntry): boolean {
  return a['nodeID'] === b['nodeID'] && keysOf(a).join() === keysOf(b).join();
}

function keysOf(entry: DriverEntry): readonly string[] {
  return [...textsIn(entry['topologyKeys'])].sort();
}

function isSameCount(a: DriverEntry, b: DriverEntry): boolean {
  return countOf(a) === countOf(b);
}

function countOf({ allocatable }: DriverEntry): unknown {
  return isMapping(allocatable) ? allocatable['count'] : undefined;
}
