/** Who may call a driver about one volume, and when: the orchestrator's duty of one call in flight per volume. */
import { assert } from '../../../mount/failure.ts';

/** `alone`: no other call of the volume runs meanwhile. `shared`: others that share may. */
export type Sharing = 'alone' | 'shared';

/** A call as it is told to those who wait for it, and how it is told whom it waits for. */
export interface LaneTurn {
  /** `NodeStageVolume` */
  readonly name: string;
  /** Called when it has to wait, and again whenever it is another that comes first. */
  readonly onQueued?: (behind: string) => void;
}

/** A call that runs, as it may look at itself. */
export interface RunningCall {
  /** Another call of its key has run beside it, at any time since it began. */
  readonly hadCompany: boolean;
}

export interface CallLanes {
  /**
   * Runs `call` when its turn comes: first come, first served per key; different keys never wait for each other.
   * Guarantees: the next of the lane starts in the turn `call` settles.
   */
  run<T>(key: string, sharing: Sharing, call: (own: RunningCall) => Promise<T>, turn?: LaneTurn): Promise<T>;
  /**
   * For a question, which must neither wait behind a call that changes the volume nor go beside it: runs `call`
   * alone when nothing of the key runs or waits, otherwise answers `busy` at once. Who comes meanwhile waits for it, so
   * `call` must settle within a bound.
   */
  tryRun<T>(key: string, call: () => Promise<T>, turn?: LaneTurn): Promise<T | 'busy'>;
  /** From now on, until the lane is empty, everything in it runs alone. Called from within a running `call`. */
  serialise(key: string): void;
  /** A running call failed: what those who wait here looked at before may not hold any more. */
  disturb(key: string): void;
  /** How often the lane was disturbed since it was last empty: unlike before the wait means that the ground moved. */
  disturbances(key: string): number;
  /** Lanes with a call running or waiting; an idle lane is forgotten. */
  size(): number;
}

interface Running {
  readonly sharing: Sharing;
  /** As it is told. */
  readonly name: string;
  hadCompany: boolean;
}

interface Lane {
  readonly running: Set<Running>;
  serial: boolean;
  disturbances: number;
  readonly waiting: {
    readonly sharing: Sharing;
    readonly turn: LaneTurn;
    readonly start: (own: Running) => void;
  }[];
}

const ANOTHER_CALL: LaneTurn = { name: 'another call' };

export function createCallLanes(): CallLanes {
  const lanes = new Map<string, Lane>();

  function laneOf(key: string): Lane {
    const known = lanes.get(key);
    if (known !== undefined) return known;
    const lane: Lane = { running: new Set(), serial: false, disturbances: 0, waiting: [] };
    lanes.set(key, lane);
    return lane;
  }

  function leave(key: string, lane: Lane, own: Running): void {
    lane.running.delete(own);
    advance(lane);
    if (lane.running.size === 0) lanes.delete(key);
  }

  async function run<T>(
    key: string,
    sharing: Sharing,
    call: (own: RunningCall) => Promise<T>,
    turn: LaneTurn = ANOTHER_CALL,
  ): Promise<T> {
    const lane = laneOf(key);
    const own = await new Promise<Running>((start) => {
      lane.waiting.push({ sharing, turn, start });
      advance(lane);
    });
    try {
      return await call(own);
    } finally {
      leave(key, lane, own);
    }
  }

  return {
    run,
    // A lane is there only while something runs or waits in it.
    tryRun: async (key, call, turn) => (lanes.has(key) ? 'busy' : run(key, 'alone', call, turn)),
    serialise: (key) => {
      const lane = lanes.get(key);
      assert(lane !== undefined && lane.running.size > 0, 'a lane is made serial from within');
      lane.serial = true;
    },
    disturb: (key) => {
      const lane = lanes.get(key);
      if (lane !== undefined) lane.disturbances += 1;
    },
    disturbances: (key) => lanes.get(key)?.disturbances ?? 0,
    size: () => lanes.size,
  };
}

function advance(lane: Lane): void {
  for (;;) {
    const next = lane.waiting[0];
    if (next === undefined) return;
    const sharing = lane.serial ? 'alone' : next.sharing;
    const { running } = lane;
    const isShared = sharing === 'shared' && [...running].every((one) => one.sharing === 'shared');
    if (running.size > 0 && !isShared) return tellWaiting(lane);
    lane.waiting.shift();
    const own: Running = { sharing, name: next.turn.name, hadCompany: running.size > 0 };
    for (const other of running) other.hadCompany = true;
    running.add(own);
    next.start(own);
  }
}

function tellWaiting({ running, waiting }: Lane): void {
  const names = [...running].map(({ name }) => name);
  for (const [index, { turn }] of waiting.entries()) {
    const before = index === 0 ? '' : `, and ${index} more that wait`;
    turn.onQueued?.(`${names.join(', ')} of the same volume${before}`);
  }
}
