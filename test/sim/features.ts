/** What of the whole CSI node contract a seed is about; most are off in most seeds, as with the faults. */
import type { Random } from './random.ts';
import type { EventWeights } from './swarm.ts';
import type { EffectFaults, EffectKind } from './weather.ts';

export interface Features {
  /** Probability that a disk is a device, for one pod alone, or for one node alone. */
  readonly blockShare: number;
  readonly onePodShare: number;
  readonly oneNodeShare: number;
  /** Probability that a pod has an inline volume, a generic ephemeral one, an fsGroup. */
  readonly inlineShare: number;
  readonly ownClaimShare: number;
  readonly fsGroupShare: number;
  /** Claims say what size they had when the cluster last looked. */
  readonly claimsHaveStatus: boolean;
  /** 0: nobody is asked. */
  readonly statisticsMs: number;
  readonly republishMs: number;
  /** Faults of the effects that only these volumes need. */
  readonly weather: ReadonlyMap<EffectKind, EffectFaults>;
}

export const NO_FEATURES: Features = {
  blockShare: 0,
  onePodShare: 0,
  oneNodeShare: 0,
  inlineShare: 0,
  ownClaimShare: 0,
  fsGroupShare: 0,
  claimsHaveStatus: false,
  statisticsMs: 0,
  republishMs: 90_000,
  weather: new Map(),
};

type NovelEvents = Pick<
  EventWeights,
  | 'volumeGrows'
  | 'nodeMarked'
  | 'attachmentLost'
  | 'attachmentReplaced'
  | 'quarantined'
  | 'quarantineEnded'
  | 'deviceOpened'
  | 'diskUnplugged'
  | 'holdLost'
  | 'diskChanges'
  | 'walkedPodGoes'
>;

export const NO_NOVEL_EVENTS: NovelEvents = {
  volumeGrows: 0,
  nodeMarked: 0,
  attachmentLost: 0,
  attachmentReplaced: 0,
  quarantined: 0,
  quarantineEnded: 0,
  deviceOpened: 0,
  diskUnplugged: 0,
  holdLost: 0,
  diskChanges: 0,
  walkedPodGoes: 0,
};

export const NOVEL_EFFECTS: ReadonlySet<EffectKind> = new Set([
  'deviceOf',
  'holdDevice',
  'releaseDevice',
  'findDeviceUsers',
  'changeOwnership',
]);

export function drawFeatures(random: Random): Features {
  const share = (probability: number, shares: readonly number[]): number =>
    random.chance(probability) ? random.pick(shares) : 0;
  return {
    blockShare: share(0.4, [0.3, 1]),
    onePodShare: share(0.35, [0.3, 1]),
    oneNodeShare: share(0.5, [0.5, 1]),
    inlineShare: share(0.4, [0.3, 0.8]),
    ownClaimShare: share(0.3, [0.3, 0.8]),
    fsGroupShare: share(0.4, [0.4, 1]),
    claimsHaveStatus: random.chance(0.4),
    statisticsMs: share(0.3, [5_000, 20_000]),
    republishMs: random.pick([10_000, 40_000, 90_000]),
    weather: drawWeather(random),
  };
}

function drawWeather(random: Random): Features['weather'] {
  const effects = new Map<EffectKind, EffectFaults>();
  if (random.chance(0.5)) return effects;
  for (const kind of NOVEL_EFFECTS) {
    if (!random.chance(0.4)) continue;
    const rate = () => (random.chance(0.5) ? random.pick([0.02, 0.1, 0.3]) : 0);
    effects.set(kind, {
      refused: rate(),
      doubtful: rate(),
      slow: rate() / 3,
      hung: random.chance(0.1) ? 0.05 : 0,
    });
  }
  return effects;
}

export function novelEvents(
  { blockShare }: Features,
  random: Random,
): Omit<NovelEvents, 'attachmentLost' | 'attachmentReplaced'> {
  const maybe = (probability: number, weight: number): number => (random.chance(probability) ? weight : 0);
  const quarantined = maybe(0.3, 1.5);
  return {
    volumeGrows: maybe(0.4, 3),
    nodeMarked: maybe(0.15, 1),
    quarantined,
    quarantineEnded: quarantined > 0 ? maybe(0.4, 0.7) : 0,
    deviceOpened: maybe(0.3, 1.5),
    diskUnplugged: blockShare > 0 ? maybe(0.4, 1) : 0,
    holdLost: 0,
    diskChanges: 0,
    walkedPodGoes: 0,
  };
}
