/** What the machine has to give to pods, where no Node object says it. */
import type { NodeResources } from '../../kubernetes/fields/node-resource.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import { machineSize } from '../../mount/process/machine-size.ts';

/** A node that reserves nothing gives all of it. `root` is looked at as by `machineSize`. */
export function machineCapacity(root: AbsolutePath): NodeResources {
  const { processors, memoryBytes, diskBytes } = machineSize(root);
  return {
    cpu: BigInt(processors) * 1_000n,
    memory: memoryBytes,
    ...(diskBytes === undefined ? {} : { 'ephemeral-storage': diskBytes }),
  };
}
