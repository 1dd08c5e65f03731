/**
 * Runtimes that have volumes of pods: containers that were given a place, programs that work in it, namespaces with a
 * copy of it. They come while a pod has its volumes and go when they like, long after the pod is not wanted any more;
 * a runtime says that it has ended early, late or never. While somebody has a place nothing of it is taken down.
 */
import type { PlaceHolder } from '../../mount/holder/place-holder.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import type { Random } from './random.ts';
import type { Plan } from './swarm.ts';
import type { Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';
import type { EffectFaults } from './weather.ts';

export interface RuntimesParts {
  readonly random: Random;
  readonly time: VirtualTime;
  readonly trace: Trace;
  /** Mean time between two that come; 0: there are none. */
  readonly everyMs: number;
  /** Places that pods have and are to have, by the uid of the pod, when nothing is under way. */
  readonly places: () => readonly { readonly path: AbsolutePath; readonly uid: string }[];
  /** A runtime says that the containers of the pod have ended. */
  readonly say: (uid: string) => void;
  readonly stormy: () => boolean;
}

const STAY_MS_MAX = 200_000;
/** Shorter than an agent waits for a copy that nobody uses. */
const COPY_STAY_MS_MAX = 50_000;
const FIRST_PID = 7_000;
const LOOK_FAULTS: EffectFaults = { refused: 0.1, doubtful: 0, slow: 0.1, hung: 0 };

/** Where somebody may be found the look for him may fail as well. */
export function withLooks(plan: Plan): Plan {
  if (plan.runtimesEveryMs === 0) return plan;
  const effects = new Map(plan.weather.effects).set('findPlaceHolders', LOOK_FAULTS);
  return { ...plan, weather: { ...plan.weather, effects } };
}

export class Runtimes {
  readonly #parts: RuntimesParts;
  readonly #holders = new Map<AbsolutePath, PlaceHolder[]>();
  #pids = FIRST_PID;

  constructor(parts: RuntimesParts) {
    this.#parts = parts;
    if (parts.everyMs > 0) this.#schedule();
  }

  holdersAt(path: AbsolutePath): readonly PlaceHolder[] {
    return this.#holders.get(path) ?? [];
  }

  /** All of them end. */
  leave(): void {
    this.#holders.clear();
  }

  #schedule(): void {
    const { random, time, everyMs, stormy } = this.#parts;
    time.after(Math.ceil(-Math.log(1 - random.next()) * everyMs), () => {
      if (!stormy()) return;
      this.#come();
      this.#schedule();
    });
  }

  #come(): void {
    const { random, time, trace, places, say } = this.#parts;
    const free = places();
    if (free.length === 0) return;
    const { path, uid } = random.pick(free);
    this.#pids += 1;
    const how = random.pick(['uses', 'bound', 'copy'] as const);
    const holder: PlaceHolder = { pid: this.#pids, command: 'sim', path: '/data', how };
    this.#holders.set(path, [...this.holdersAt(path), holder]);
    trace.add(`pid ${holder.pid} has ${path} (${how})`);
    time.after(random.between(500, how === 'copy' ? COPY_STAY_MS_MAX : STAY_MS_MAX), () => {
      const left = this.holdersAt(path).filter((one) => one !== holder);
      if (left.length === this.holdersAt(path).length) return;
      trace.add(`pid ${holder.pid} ends`);
      if (left.length > 0) this.#holders.set(path, left);
      else this.#holders.delete(path);
    });
    if (random.chance(0.5)) time.after(random.between(0, 2 * STAY_MS_MAX), () => say(uid));
  }
}
