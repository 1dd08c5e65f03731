/** Asks the drivers now and then how full their volumes are and how they are, and remembers what they said. */
import type { Failure, Result } from '../mount/failure.ts';
import type { Cancel, Clock } from '../mount/host.ts';
import type {
  HealthStatement,
  PluginRegistry,
  StatisticsCall,
  VolumeSecrets,
  VolumeStatistics,
} from '../plugins/plugin.ts';
import type { PublicationSpec, VolumeId } from '../plugins/volume.ts';
import type { ActualState, ActualVolume } from '../reconciler/actual-state.ts';

export interface StatisticsCollectorParts {
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  readonly actual: () => ActualState;
  readonly plugins: PluginRegistry;
  /** Those of a volume, wanted or not. */
  readonly secretsOf: (volume: ActualVolume) => VolumeSecrets;
  /** Each volume is asked once in it; 0: nothing is ever asked. */
  readonly periodMs: number;
  /** For the health of the storage behind the drivers. */
  readonly storage: {
    readonly drivers: () => readonly string[];
    /** Undefined: the driver cannot say. */
    readonly health: (driver: string) => Promise<Result<readonly HealthStatement[] | undefined>>;
  };
}

/** What is known of a volume. */
export interface VolumeReading {
  /** The last answer; undefined: there was none yet. */
  readonly statistics: VolumeStatistics | undefined;
  /** When it came, on the host's clock. */
  readonly atMs: number | undefined;
  /** Why the newest question had no answer; undefined when it had one. */
  readonly failure: Failure | undefined;
}

/**
 * Guarantees: at most one question about a volume at a time, and at most `QUESTIONS_PER_LANE_MAX` of one driver;
 * whoever is not answered, or busy, is left out until the next period, never queued; the questions of a period are
 * spread over it; one timer at most. What is learnt is for people and metrics: nothing here changes a volume.
 */
export interface StatisticsCollector {
  start(): void;
  /** Ends the timer; answers still on their way are dropped. */
  stop(): void;
  /** Undefined: the volume is not here, or was never asked. */
  of(volume: VolumeId): VolumeReading | undefined;
  /** Of the storage behind a driver; undefined: not known. Empty: all is well. */
  ofStorage(driver: string): readonly HealthStatement[] | undefined;
  /** Called when what is said of somebody's health changes; never for mere numbers. */
  onChange(listener: () => void): Cancel;
}

/** A driver that hangs holds so many questions open until their deadline, and no other driver's. */
const QUESTIONS_PER_LANE_MAX = 4;
/** How soon after the start the first questions are asked. */
const FIRST_MS = 5_000;
/** Answers without a word on health after which an old word is not repeated any more: the RPC may have failed once. */
const SILENT_ANSWERS_MAX = 3;
/** Before every time of a host's clock. */
const NEVER = -1;

interface Entry {
  reading: VolumeReading;
  askedMs: number;
  isOpen: boolean;
  silentAnswers: number;
}

export function createStatisticsCollector(parts: StatisticsCollectorParts): StatisticsCollector {
  const { clock, plugins, periodMs } = parts;
  const entries = new Map<VolumeId, Entry>();
  const open = new Map<string, number>();
  const storage = new Map<string, readonly HealthStatement[]>();
  const storageOpen = new Set<string>();
  const listeners = new Set<() => void>();
  let cancelTimer: Cancel = () => {};
  let stopped = periodMs === 0;

  function later(delayMs: number, act: () => void): void {
    cancelTimer = clock.timer(delayMs, act);
  }

  /** Who waited longest is first: a full lane leaves out others each time. */
  function round(): void {
    const actual = parts.actual();
    for (const id of entries.keys()) if (!actual.has(id)) entries.delete(id);
    const askedMs = (id: VolumeId): number => entries.get(id)?.askedMs ?? NEVER;
    const turns = [...actual.values()]
      .filter((volume) => plugins.of(volume.spec).statistics !== undefined && callAbout(volume) !== undefined)
      .map(({ spec }) => spec.id)
      .sort((a, b) => askedMs(a) - askedMs(b));
    const drivers = parts.storage.drivers();
    for (const driver of storage.keys()) if (!drivers.includes(driver)) learnStorage(driver, undefined);
    for (const driver of drivers) void askStorage(driver);
    takeTurn(turns, 0);
  }

  function takeTurn(turns: readonly VolumeId[], index: number): void {
    const volume = turns[index];
    if (volume !== undefined) void ask(volume);
    const isLast = index + 1 >= turns.length;
    later(periodMs / Math.max(turns.length, 1), () => (isLast ? round() : takeTurn(turns, index + 1)));
  }

  async function ask(id: VolumeId): Promise<void> {
    const volume = parts.actual().get(id);
    const about = volume === undefined ? undefined : callAbout(volume);
    if (volume === undefined || about === undefined) return;
    const call: StatisticsCall = { ...about, secrets: parts.secretsOf(volume) };
    const plugin = plugins.of(call.spec);
    const lane = plugin.lane(call.spec);
    const entry = entryOf(id);
    const inLane = open.get(lane) ?? 0;
    if (plugin.statistics === undefined || entry.isOpen || inLane >= QUESTIONS_PER_LANE_MAX) return;
    entry.isOpen = true;
    entry.askedMs = clock.nowMs();
    open.set(lane, inLane + 1);
    const answer = await plugin.statistics(call);
    entry.isOpen = false;
    const stillOpen = (open.get(lane) ?? 1) - 1;
    if (stillOpen > 0) open.set(lane, stillOpen);
    else open.delete(lane);
    if (!stopped && entries.get(id) === entry) take(entry, answer);
  }

  function entryOf(id: VolumeId): Entry {
    const known = entries.get(id);
    if (known !== undefined) return known;
    const reading: VolumeReading = { statistics: undefined, atMs: undefined, failure: undefined };
    const entry: Entry = { reading, askedMs: NEVER, isOpen: false, silentAnswers: 0 };
    entries.set(id, entry);
    return entry;
  }

  function take(entry: Entry, answer: Result<VolumeStatistics | 'busy'>): void {
    if (!answer.ok) {
      entry.reading = { ...entry.reading, failure: answer.failure };
      return;
    }
    if (answer.value === 'busy') return;
    const before = entry.reading.statistics?.health;
    entry.silentAnswers = answer.value.health === undefined ? entry.silentAnswers + 1 : 0;
    const health = answer.value.health ?? (entry.silentAnswers < SILENT_ANSWERS_MAX ? before : undefined);
    entry.reading = { statistics: { ...answer.value, health }, atMs: clock.nowMs(), failure: undefined };
    if (!isSameHealth(before, health)) notify();
  }

  async function askStorage(driver: string): Promise<void> {
    if (storageOpen.has(driver)) return;
    storageOpen.add(driver);
    const answer = await parts.storage.health(driver);
    storageOpen.delete(driver);
    if (!stopped && answer.ok) learnStorage(driver, answer.value);
  }

  function learnStorage(driver: string, health: readonly HealthStatement[] | undefined): void {
    const before = storage.get(driver);
    if (health === undefined) storage.delete(driver);
    else storage.set(driver, health);
    if (!isSameHealth(before, health)) notify();
  }

  function notify(): void {
    for (const listener of listeners) listener();
  }

  return {
    start() {
      if (!stopped) later(Math.min(FIRST_MS, periodMs), round);
    },
    stop() {
      stopped = true;
      cancelTimer();
    },
    of: (volume) => (parts.actual().has(volume) ? entries.get(volume)?.reading : undefined),
    ofStorage: (driver) => storage.get(driver),
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** A place of the volume to ask about, one that is there before one that was only tried; undefined: there is none. */
function callAbout({ spec, needs, publishContext, stagedMount, staged, publications }: ActualVolume) {
  const places = [...publications.values()];
  const place = places.find(({ presence }) => presence.kind === 'present') ?? places[0];
  if (place === undefined && staged.kind === 'absent') return undefined;
  const publication: PublicationSpec | undefined = place?.spec;
  return { spec, facts: { needs, publishContext, stagedMount }, publication };
}

/** Nothing said and nothing wrong are the same here: otherwise every first answer would be news. */
function isSameHealth(
  a: readonly HealthStatement[] | undefined,
  b: readonly HealthStatement[] | undefined,
): boolean {
  return JSON.stringify(a ?? []) === JSON.stringify(b ?? []);
}
