/** The capabilities of a driver by their names in CSI, for people. */
import {
  ControllerServiceCapability_RPC_Type as ControllerCapability,
  NodeServiceCapability_RPC_Type as NodeCapability,
} from '../wire/generated/csi.ts';

/** Sorted by number; one that this build does not know is `unknown(<number>)`. */
export function nodeCapabilityNames(numbers: ReadonlySet<number>): readonly string[] {
  return names(numbers, NodeCapability);
}

/** As nodeCapabilityNames, of the Controller service. */
export function controllerCapabilityNames(numbers: ReadonlySet<number>): readonly string[] {
  return names(numbers, ControllerCapability);
}

function names(numbers: ReadonlySet<number>, known: Readonly<Record<string, number>>): readonly string[] {
  const byNumber = new Map(Object.entries(known).map(([name, number]) => [number, name]));
  return [...numbers].sort((a, b) => a - b).map((number) => byNumber.get(number) ?? `unknown(${number})`);
}
