/** A simulated machine without an agent, for tests of the pieces: calm weather, and time that moves by itself. */
import type { TestContext } from 'node:test';
import type { PlaceHolder } from '../../mount/holder/place-holder.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import { Neighbours } from './neighbours.ts';
import { createRandom, type Random } from './random.ts';
import { SimHost } from './sim-host.ts';
import { SimKernel } from './sim-kernel.ts';
import { createTrace, type Trace } from './trace.ts';
import { createVirtualTime, type VirtualTime } from './virtual-time.ts';
import { FAIR, type Weather } from './weather.ts';

export interface Bench {
  readonly random: Random;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly kernel: SimKernel;
  readonly neighbours: Neighbours;
  /** Exists; empty. */
  readonly root: AbsolutePath;
  /** Who has something of a place. */
  readonly holders: Map<AbsolutePath, readonly PlaceHolder[]>;
  newHost(weather?: Weather, diesAt?: (kind: string, moment: string) => boolean): SimHost;
}

export function createBench(t: TestContext, seed = 1, wire = false): Bench {
  const random = createRandom(seed);
  const time = createVirtualTime(random.fork());
  const trace = createTrace(() => time.nowMs());
  const kernel = new SimKernel(random.fork(), () => 1_000_000 + time.nowMs());
  const neighbours = new Neighbours(kernel, wire);
  const root = '/bench' as AbsolutePath;
  kernel.makeDirectory(root, 0o755);
  const holders: Bench['holders'] = new Map();
  letTimePass(t, time);
  return {
    random,
    time,
    trace,
    kernel,
    neighbours,
    root,
    holders,
    newHost: (weather = FAIR, diesAt = () => false) =>
      new SimHost({
        kernel,
        time,
        neighbours,
        trace,
        random: random.fork(),
        weather: () => weather,
        boundary: diesAt,
        onEffect: () => {},
        onWrite: () => {},
        onListing: () => {},
        onFailed: () => {},
        onIdentify: () => {},
        isQuiet: () => false,
        holdersAt: (path) => holders.get(path) ?? [],
      }),
  };
}

/** Fires what is due as long as the test lasts. */
function letTimePass(t: TestContext, time: VirtualTime): void {
  let over = false;
  t.after(() => {
    over = true;
  });
  const turn = async (): Promise<void> => {
    while (!over) {
      await new Promise((resolve) => setImmediate(resolve));
      if (time.nextAtMs() !== undefined) await time.step();
    }
  };
  void turn();
}
