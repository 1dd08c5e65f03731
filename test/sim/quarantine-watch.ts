/**
 * Which volumes may belong to another node by an operator's word, and are still in use on this one (INV-32, B-3):
 * entered when the agent has said that the quarantine is durable, clean when no mount and no user of its devices is
 * left.
 */
import type { DeviceNumber } from '../../mount/host.ts';
import type { Backing } from './backing.ts';
import { ON_ITS_WAY_MS } from './late-plan.ts';
import type { SimKernel } from './sim-kernel.ts';

export class QuarantineWatch {
  readonly #kernel: SimKernel;
  readonly #dirty = new Map<
    Backing,
    { readonly sinceMs: number; readonly devices: readonly DeviceNumber[] }
  >();

  #endedMs = Number.NEGATIVE_INFINITY;

  constructor(kernel: SimKernel) {
    this.#kernel = kernel;
  }

  /** `devices`: what the agent knows that it was mounted from; nobody else can be asked who has them open. */
  begin(backing: Backing, sinceMs: number, devices: readonly DeviceNumber[]): void {
    if (usersOf(this.#kernel, backing, devices).length > 0 && !this.#dirty.has(backing))
      this.#dirty.set(backing, { sinceMs, devices });
  }

  /** By an operator's word. */
  end(backing: Backing, nowMs: number): void {
    this.#dirty.delete(backing);
    this.#endedMs = nowMs;
  }

  /** A teardown that was sent before the word was given may still be on its way. */
  hasJustEnded(nowMs: number): boolean {
    return nowMs <= this.#endedMs + ON_ITS_WAY_MS;
  }

  forgetAll(): void {
    this.#dirty.clear();
  }

  look(): void {
    for (const [backing, { devices }] of this.#dirty)
      if (usersOf(this.#kernel, backing, devices).length === 0) this.#dirty.delete(backing);
  }

  isDirty(backing: Backing | undefined, nowMs: number): boolean {
    const entry = backing === undefined ? undefined : this.#dirty.get(backing);
    return entry !== undefined && nowMs > entry.sinceMs + ON_ITS_WAY_MS;
  }
}

/**
 * Who on this machine could still write to the volume: mounts of it, loop devices that hold its device, and whoever has
 * one of these devices open that is not another volume's by now.
 */
export function usersOf(kernel: SimKernel, backing: Backing, devices: readonly DeviceNumber[]): string[] {
  const isOwn = (device: string | undefined): boolean => device !== undefined && device === backing.device;
  const mounts = kernel
    .mounts()
    .filter(({ fileSystem, root }) => fileSystem === backing.fileSystem || isOwn(root.block));
  const holds = kernel.devices.holds().filter(({ device }) => isOwn(device));
  const isFree = (device: DeviceNumber): boolean => {
    const owner = kernel.devices.lastLabelOf(device) ?? backing.handle;
    return (
      owner === backing.handle && kernel.mounts().every(({ fileSystem }) => fileSystem.device !== device)
    );
  };
  return [
    ...mounts.map(({ target }) => `mount ${target}`),
    ...holds.map(({ loop, path }) => `${loop} (holds ${path})`),
    ...devices.filter(isFree).flatMap((one) => kernel.devices.usersOf(one)),
  ];
}
