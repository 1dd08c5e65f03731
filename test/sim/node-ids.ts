/**
 * Drivers that call this machine otherwise when they start again, as after an upgrade, or on an instance that was
 * replaced, and whose controller service is left out of a deployment, for a time or for good (DR-16, DR-17).
 */
import { type ControllerPart, type DriverNature, PLAIN_NATURE } from './driver-nature.ts';
import type { Random } from './random.ts';
import type { SimDriver } from './sim-driver.ts';
import type { Plan } from './swarm.ts';
import type { Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface NodeIdsPlan {
  /** Mean time between two restarts for which a driver is changed, beside all others; 0: no driver ever is. */
  readonly everyMs: number;
  /** Probability that a driver that starts calls the node otherwise, and that its controller service is another. */
  readonly renamed: number;
  readonly withoutController: number;
  /** Probability that a service that is left out stays so, the storm being over, too. */
  readonly forEver: number;
}

export const NO_NODE_IDS: NodeIdsPlan = { everyMs: 0, renamed: 0, withoutController: 0, forEver: 0 };

/** A few, so that a driver comes back to one of before. */
const NODE_IDS = [PLAIN_NATURE.nodeId, 'node-sim-b', 'node-sim-c'] as const;
const SHARE = 0.12;
const MISSED_MS_MAX = 40_000;

/** From a stream of its own. Seeds that draw a cluster are without; those that are made to be about one are not. */
export function withNodeIds(plan: Plan, random: Random): Plan {
  const isOn = random.chance(SHARE) && !plan.cluster.isOn;
  const everyMs = random.pick([8_000, 30_000]);
  return {
    ...plan,
    nodeIds: {
      everyMs: isOn ? everyMs : 0,
      renamed: random.pick([0.3, 0.8]),
      withoutController: random.pick([0, 0.3, 0.6]),
      forEver: random.chance(0.2) ? 0.3 : 0,
    },
  };
}

export interface NodeIdsParts {
  readonly plan: Plan;
  readonly random: Random;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly stormy: () => boolean;
  readonly drivers: () => readonly SimDriver[];
}

export class NodeIds {
  readonly #parts: NodeIdsParts;
  readonly #forEver = new Set<string>();

  constructor(parts: NodeIdsParts) {
    this.#parts = parts;
  }

  begin(): void {
    const { time, random, plan, stormy, drivers } = this.#parts;
    const { everyMs } = plan.nodeIds;
    if (everyMs === 0) return;
    time.after(Math.ceil(-Math.log(1 - random.next()) * everyMs), () => {
      if (!stormy()) return;
      const driver = random.pick(drivers());
      if (driver.isUp) driver.start();
      this.begin();
    });
  }

  /** What a driver is that starts again. */
  reborn(name: string, nature: DriverNature): DriverNature {
    const { plan, random, stormy } = this.#parts;
    const { everyMs, renamed } = plan.nodeIds;
    if (everyMs === 0 || !nature.attaches) return nature;
    const nodeId = stormy() && random.chance(renamed) ? random.pick(NODE_IDS) : nature.nodeId;
    if (this.#forEver.has(name)) return { ...nature, nodeId };
    return { ...nature, nodeId, controller: this.#nextController(name) };
  }

  /** Will it never have its controller service again? */
  isForEver(name: string): boolean {
    return this.#forEver.has(name);
  }

  heal(): void {
    for (const driver of this.#parts.drivers())
      if (driver.nature.controller !== 'whole' && !this.isForEver(driver.name)) driver.start();
  }

  #nextController(name: string): ControllerPart {
    const { plan, random, stormy } = this.#parts;
    const { withoutController, forEver } = plan.nodeIds;
    if (!stormy() || !random.chance(withoutController)) return 'whole';
    const part = random.pick(['left-out', 'left-out', 'attaches-nothing'] as const);
    if (random.chance(forEver)) this.#forEver.add(name);
    else this.#miss(name);
    return part;
  }

  /** Somebody notices, and puts it right. */
  #miss(name: string): void {
    const { time, random, stormy, drivers } = this.#parts;
    time.after(random.between(1_000, MISSED_MS_MAX), () => {
      const driver = drivers().find((one) => one.name === name);
      if (stormy() && driver?.isUp === true && driver.nature.controller !== 'whole') driver.start();
    });
  }
}
