/** Asks now and then how full volumes are and how they are, their drivers mostly, and remembers what was said. */
import type { Failure, Result } from '../../mount/failure.ts';
import type { Cancel, Clock } from '../../mount/host.ts';
import type {
  HealthStatement,
  PluginRegistry,
  StatisticsCall,
  VolumeSecrets,
  VolumeStatistics,
} from '../../plugins/plugin.ts';
import type { DriverInstance } from '../../plugins/csi/driver/driver.ts';
import type { PublicationSpec, VolumeId, VolumeSpec } from '../../plugins/volume.ts';
import { type ActualState, type ActualVolume, isDisowned } from '../../reconciler/model/actual-state.ts';
import type { Log } from '../../mount/process/log.ts';
import { createOwedAnswers, type Ending, type OwedAnswers } from './owed-answers.ts';

export interface StatisticsCollectorParts {
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  readonly actual: () => ActualState;
  /** An operation of the volume runs: what is mounted of it may have changed, and is not believed yet. */
  readonly isChanging: (volume: VolumeId) => boolean;
  readonly plugins: PluginRegistry;
  /** Those of a volume, wanted or not. */
  readonly secretsOf: (volume: ActualVolume) => VolumeSecrets;
  /** Each volume is asked once in it; 0: nothing is ever asked. */
  readonly periodMs: number;
  /** What the health of the storage behind the drivers is asked of. */
  readonly storage: {
    readonly drivers: () => readonly string[];
    /** Undefined: the driver cannot say. */
    readonly health: (driver: string) => Promise<Result<readonly HealthStatement[] | undefined>>;
  };
  readonly log: Log;
}

/** What is known of a volume. */
export interface VolumeReading {
  /** The last answer; undefined: there was none yet. */
  readonly statistics: VolumeStatistics | undefined;
  /** When it came, on the host's clock. */
  readonly atMs: number | undefined;
  /** Why the newest question had no answer, or no numbers; undefined when it had them. */
  readonly failure: Failure | undefined;
  /** Since when the driver has owed an answer; undefined: it answers. */
  readonly unansweredSinceMs: number | undefined;
  /** When it is asked again although it owes one; undefined: not before it has ended the one that is open. */
  readonly nextAskMs: number | undefined;
}

/**
 * Guarantees: at most one question about a volume until it has ended, and long after one that was not answered in time
 * (RE-03, see OwedAnswers); at most `QUESTIONS_PER_LANE_MAX` of one driver in a second: one that hangs longer counts
 * against no other volume; who has no turn, or is busy, is left out until the next period, never queued; the questions
 * of a period are spread over it; one timer at most. What is learnt is for people and metrics: nothing here changes a
 * volume.
 */
export interface StatisticsCollector {
  start(): void;
  /** Ends the timer; answers still on their way are dropped. */
  stop(): void;
  /** Undefined: the volume is not here, or was never asked. */
  of(volume: VolumeId): VolumeReading | undefined;
  /** What is wrong with the storage behind a driver; undefined: not known. Empty: all is well. */
  ofStorage(driver: string): readonly HealthStatement[] | undefined;
  /** It has registered: what another life of it did not answer is asked again; this one may be at work on it still. */
  driverChanged(driver: Pick<DriverInstance, 'name' | 'life'>): void;
  /** Volumes of the driver, and its storage, of which it owes an answer. */
  owedBy(driver: string): number;
  /** Called when what is said of somebody's health changes, or an answer begins or ends to be owed; not for numbers. */
  onChange(listener: () => void): Cancel;
}

/** How many questions to one driver may be open for less than a second. */
const QUESTIONS_PER_LANE_MAX = 4;
/** How many of one driver may be open for longer before what owes an answer is asked again; all else still is. */
const HUNG_PER_LANE_MAX = 32;
/** How soon after the start the first questions are asked. */
const FIRST_MS = 5_000;
/** Answers without a word on health after which an old word is not repeated any more: the RPC may have failed once. */
const SILENT_ANSWERS_MAX = 3;
/** Before every time of a host's clock. */
const NEVER = -1;
/** The key of a question about the storage behind a driver begins so; no volume's id does. */
const STORAGE = 'storage of ';

type Said = Pick<VolumeReading, 'statistics' | 'atMs' | 'failure'>;

interface Entry {
  reading: Said;
  silentAnswers: number;
}

export function createStatisticsCollector(parts: StatisticsCollectorParts): StatisticsCollector {
  return new PeriodicCollector(parts);
}

class PeriodicCollector implements StatisticsCollector {
  readonly #parts: StatisticsCollectorParts;
  readonly #entries = new Map<VolumeId, Entry>();
  readonly #storage = new Map<string, readonly HealthStatement[]>();
  readonly #owed: OwedAnswers;
  readonly #listeners = new Set<() => void>();
  #cancelTimer: Cancel = () => {};
  #isStopped: boolean;

  constructor(parts: StatisticsCollectorParts) {
    const { clock, periodMs, log } = parts;
    this.#parts = parts;
    this.#isStopped = periodMs === 0;
    this.#owed = createOwedAnswers({
      clock,
      periodMs,
      onOwed: (key, change) => {
        if (this.#isStopped) return;
        const subject = { subject: key };
        if (change === 'begins') log.warn('volume question unanswered', subject);
        else log.info('volume question answered', subject);
        this.#notify();
      },
    });
  }

  start(): void {
    if (!this.#isStopped) this.#later(Math.min(FIRST_MS, this.#parts.periodMs), () => this.#round());
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer();
  }

  of(volume: VolumeId): VolumeReading | undefined {
    const entry = this.#parts.actual().has(volume) ? this.#entries.get(volume) : undefined;
    if (entry === undefined) return undefined;
    const { sinceMs, nextAskMs } = this.#owed.owed(volume) ?? {};
    return { ...entry.reading, unansweredSinceMs: sinceMs, nextAskMs };
  }

  ofStorage(driver: string): readonly HealthStatement[] | undefined {
    return this.#storage.get(driver);
  }

  driverChanged({ name, life }: Pick<DriverInstance, 'name' | 'life'>): void {
    this.#owed.learnLife(name, life);
  }

  owedBy(driver: string): number {
    return this.#owed.countOwed(driver);
  }

  onChange(listener: () => void): Cancel {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #later(delayMs: number, act: () => void): void {
    this.#cancelTimer = this.#parts.clock.timer(delayMs, act);
  }

  /** Who waited longest is first: a full lane leaves out others each time. */
  #round(): void {
    const actual = this.#parts.actual();
    for (const id of this.#entries.keys()) if (!actual.has(id)) this.#entries.delete(id);
    this.#owed.forget((key) => key.startsWith(STORAGE) || actual.has(key as VolumeId));
    const askedMs = (id: VolumeId): number => this.#owed.askedMs(id) ?? NEVER;
    const turns = [...actual.values()]
      .filter((volume) => this.#canBeAsked(volume.spec) && callAbout(volume) !== undefined)
      .map(({ spec }) => spec.id)
      .sort((a, b) => askedMs(a) - askedMs(b));
    const drivers = this.#parts.storage.drivers();
    for (const driver of this.#storage.keys())
      if (!drivers.includes(driver)) this.#learnStorage(driver, undefined);
    for (const driver of drivers) void this.#askStorage(driver);
    this.#takeTurn(turns, 0);
  }

  #canBeAsked(spec: VolumeSpec): boolean {
    const { statistics, hasStatistics } = this.#parts.plugins.of(spec);
    return statistics !== undefined && hasStatistics?.(spec) !== false;
  }

  #takeTurn(turns: readonly VolumeId[], index: number): void {
    const volume = turns[index];
    if (volume !== undefined) void this.#ask(volume);
    const isLast = index + 1 >= turns.length;
    this.#later(this.#parts.periodMs / Math.max(turns.length, 1), () =>
      isLast ? this.#round() : this.#takeTurn(turns, index + 1),
    );
  }

  async #ask(id: VolumeId): Promise<void> {
    const volume = this.#parts.actual().get(id);
    const about = volume === undefined ? undefined : callAbout(volume);
    if (volume === undefined || about === undefined) return;
    const { actual, isChanging, secretsOf } = this.#parts;
    const stillThere = (): boolean => !isChanging(id) && isAsItWas(actual().get(id), volume);
    const call: StatisticsCall = { ...about, stillThere, secrets: secretsOf(volume) };
    const plugin = this.#parts.plugins.of(call.spec);
    const lane = plugin.lane(call.spec);
    const entry = this.#entryOf(id);
    if (plugin.statistics === undefined || !this.#owed.mayAsk(id) || this.#isFull(lane, id)) return;
    this.#owed.begin(id, lane);
    const answer = await plugin.statistics(call);
    if (this.#isStopped) return;
    if (this.#entries.get(id) === entry) this.#take(entry, answer);
    this.#owed.end(id, answer.ok && answer.value === 'busy' ? 'unasked' : endingBy(failureIn(answer)));
  }

  #isFull(lane: string, key: string): boolean {
    const { all, fresh } = this.#owed.openIn(lane);
    if (fresh >= QUESTIONS_PER_LANE_MAX) return true;
    return this.#owed.owed(key) !== undefined && all - fresh >= HUNG_PER_LANE_MAX;
  }

  #entryOf(id: VolumeId): Entry {
    const known = this.#entries.get(id);
    if (known !== undefined) return known;
    const reading: Said = { statistics: undefined, atMs: undefined, failure: undefined };
    const entry: Entry = { reading, silentAnswers: 0 };
    this.#entries.set(id, entry);
    return entry;
  }

  #take(entry: Entry, answer: Result<VolumeStatistics | 'busy'>): void {
    if (!answer.ok) {
      entry.reading = { ...entry.reading, failure: answer.failure };
      return;
    }
    if (answer.value === 'busy') return;
    const before = entry.reading.statistics?.health;
    entry.silentAnswers = answer.value.health === undefined ? entry.silentAnswers + 1 : 0;
    const health = answer.value.health ?? (entry.silentAnswers < SILENT_ANSWERS_MAX ? before : undefined);
    const { failure } = answer.value;
    entry.reading = { statistics: { ...answer.value, health }, atMs: this.#parts.clock.nowMs(), failure };
    if (!isSameHealth(before, health)) this.#notify();
  }

  async #askStorage(driver: string): Promise<void> {
    const key = `${STORAGE}${driver}`;
    if (!this.#owed.mayAsk(key)) return;
    this.#owed.begin(key, driver);
    const answer = await this.#parts.storage.health(driver);
    if (this.#isStopped) return;
    if (answer.ok) this.#learnStorage(driver, answer.value);
    this.#owed.end(key, endingBy(answer.ok ? undefined : answer.failure));
  }

  #learnStorage(driver: string, health: readonly HealthStatement[] | undefined): void {
    const before = this.#storage.get(driver);
    if (health === undefined) this.#storage.delete(driver);
    else this.#storage.set(driver, health);
    if (!isSameHealth(before, health)) this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** A place of the volume to ask about, one that is there before one that was only tried; undefined: there is none. */
function callAbout(volume: ActualVolume) {
  const { spec, needs, publishContext, stagedMount, staged, publications, isInherited } = volume;
  const places = [...publications.values()];
  const place = places.find(({ presence }) => presence.kind === 'present') ?? places[0];
  if (place === undefined && staged.kind === 'absent') return undefined;
  const publication: PublicationSpec | undefined = place?.spec;
  const facts = { needs, publishContext, stagedMount, ...(isInherited === true ? { isInherited } : {}) };
  const { presence, mount } = place ?? { presence: staged, mount: stagedMount };
  return { spec, facts, publication, mount: isDisowned(presence) ? undefined : mount };
}

/** No call of ours has begun or ended that could have changed what is mounted of it. */
function isAsItWas(now: ActualVolume | undefined, before: ActualVolume): boolean {
  if (now === undefined || now.staged !== before.staged || now.stagedMount !== before.stagedMount)
    return false;
  return [...before.publications].every(([key, { presence, mount }]) => {
    const publication = now.publications.get(key);
    return publication?.presence === presence && publication.mount === mount;
  });
}

function failureIn(answer: Result<VolumeStatistics | 'busy'>): Failure | undefined {
  if (!answer.ok) return answer.failure;
  return answer.value === 'busy' ? undefined : answer.value.failure;
}

/** Its time was up: whoever was asked may be at work on it still. */
function endingBy(failure: Failure | undefined): Ending {
  if (failure?.code !== 'driver-deadline' && failure?.code !== 'deadline-passed') return 'answered';
  return failure.isUnasked === true ? 'unasked' : 'unanswered';
}

/** Nothing said and nothing wrong are the same here: otherwise every first answer would be news. */
function isSameHealth(
  a: readonly HealthStatement[] | undefined,
  b: readonly HealthStatement[] | undefined,
): boolean {
  return JSON.stringify(a ?? []) === JSON.stringify(b ?? []);
}
