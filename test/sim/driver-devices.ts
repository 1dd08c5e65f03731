/** The block volumes of a simulated driver: their numbers, their nodes, and who else may have a number by mistake. */
import { type AbsolutePath, below, type DeviceNumber } from '../../mount/host.ts';
import type { Backing } from './backing.ts';
import type { SimKernel } from './sim-kernel.ts';

const DEV = '/dev' as AbsolutePath;
const NODE = 'device';
const UNPLUGGED = 'the disk is not there';

/** Says why, or nothing when it is done. */
type Refusal = string | undefined;

export class DriverDevices {
  readonly #kernel: SimKernel;

  constructor(kernel: SimKernel) {
    this.#kernel = kernel;
    kernel.makeDirectory(DEV, 0o755);
    kernel.synchronise(DEV);
  }

  /** The disk is on this machine, with the lowest number that is free, and has its node below /dev; or is unplugged. */
  plug(backing: Backing): DeviceNumber | undefined {
    const { devices } = this.#kernel;
    const { handle, device } = backing;
    if (device !== undefined && devices.labelOf(device) !== handle) return undefined;
    const present = device ?? devices.add(handle);
    backing.device = present;
    const node = nodeOf(backing);
    // That of its last life went with it.
    if (this.#kernel.deviceOf(node) !== present) this.#kernel.removeNode(node);
    return this.#putNode(node, present) === undefined ? present : undefined;
  }

  unplug(backing: Backing): void {
    if (backing.device === undefined || backing.stagedAt.size > 0 || backing.resources.size > 0) return;
    const { devices } = this.#kernel;
    if (devices.labelOf(backing.device) === backing.handle) devices.remove(backing.device);
    this.#kernel.removeFile(nodeOf(backing));
    backing.device = undefined;
  }

  stage(backing: Backing, path: AbsolutePath, makesNode: boolean): Refusal {
    const device = this.plug(backing);
    if (device === undefined) return UNPLUGGED;
    const denied = makesNode ? this.#putNode(below(path, NODE), device) : undefined;
    if (denied === undefined) backing.stagedAt.add(path);
    return denied;
  }

  unstage(backing: Backing | undefined, path: AbsolutePath): Refusal {
    const denied = this.#kernel.removeFile(below(path, NODE));
    if (denied !== undefined && denied !== 'ENOENT') return denied;
    backing?.stagedAt.delete(path);
    if (backing !== undefined) this.unplug(backing);
    return undefined;
  }

  publish(
    backing: Backing,
    target: AbsolutePath,
    how: { readonly binds: boolean; readonly twice: boolean },
  ): Refusal {
    const device = this.plug(backing);
    if (device === undefined) return UNPLUGGED;
    const denied = how.binds ? this.#bind(backing, target, device, how.twice) : this.#putNode(target, device);
    if (denied === undefined) backing.resources.add(target);
    return denied;
  }

  unpublish(backing: Backing | undefined, target: AbsolutePath): Refusal {
    while (this.#kernel.mountsAt(target).length > 0) {
      const denied = this.#kernel.unmount(target);
      if (denied !== undefined) return denied;
    }
    const denied = this.#kernel.removeFile(target);
    if (denied !== undefined && denied !== 'ENOENT') return denied;
    backing?.resources.delete(target);
    if (backing !== undefined) this.unplug(backing);
    return undefined;
  }

  #bind(backing: Backing, target: AbsolutePath, device: DeviceNumber, twice: boolean): Refusal {
    const kernel = this.#kernel;
    const isMounted = () => kernel.mountsAt(target).length > 0;
    // What is bound there is of another boot, or of another life of the disk.
    while (isMounted() && kernel.deviceOf(target) !== device) {
      const denied = kernel.unmount(target);
      if (denied !== undefined) return denied;
    }
    if (!isMounted()) {
      const facts = kernel.inspect(target);
      if (typeof facts === 'string') return facts;
      if (facts.kind === 'block') kernel.removeFile(target);
      if (facts.kind !== 'file') {
        const denied = kernel.makeFile(target, new Uint8Array(), 0o640);
        if (denied !== undefined) return denied;
      }
    }
    const layers = (isMounted() ? 0 : 1) + (twice ? 1 : 0);
    for (let layer = 0; layer < layers; layer += 1) {
      const denied = kernel.bind(nodeOf(backing), target, []);
      if (denied !== undefined) return denied;
    }
    return undefined;
  }

  /** What stands there of the driver's own, with another number or none, is replaced. */
  #putNode(path: AbsolutePath, device: DeviceNumber): Refusal {
    const kernel = this.#kernel;
    if (kernel.deviceOf(path) === device) return undefined;
    const removed = kernel.removeFile(path);
    if (removed !== undefined && removed !== 'ENOENT') return removed;
    return kernel.makeDeviceNode(path, device);
  }
}

function nodeOf({ handle }: Backing): AbsolutePath {
  return below(DEV, `sim-${handle}`);
}
