/** Which faults are about: chosen by swarm.ts for each seed, turned to `FAIR` when the safety phase is over. */

/** The effects of the Host port; each is a boundary the agent can die at, before and after. */
export const EFFECTS = [
  'inspect',
  'makeDirectory',
  'removeEmptyDirectory',
  'removeTree',
  'listDirectory',
  'identifyDirectory',
  'readDirectoryFiles',
  'readFile',
  'writeFile',
  'overwriteFile',
  'synchronise',
  'removeFile',
  'rename',
  'makeLink',
  'readLink',
  'readMountTable',
  'lookUpMount',
  'probeFileSystem',
  'measureUsage',
  'mount',
  'unmount',
  'findHolders',
  'findPlaceHolders',
  'deviceOf',
  'holdDevice',
  'releaseDevice',
  'findDeviceUsers',
  'readIscsi',
  'iscsi',
  'changeOwnership',
  'call',
  'notify',
] as const;

/** `overwriteFile` and `synchronise` have the faults of `writeFile`, but no full disk refuses them; or their own. */
export type EffectKind = (typeof EFFECTS)[number];

/** Probabilities for one effect. */
export interface EffectFaults {
  /** Answers a failure, does nothing. */
  readonly refused: number;
  /** Answers a failure with effect `unknown`; has happened or not. */
  readonly doubtful: number;
  /** Takes up to a minute. */
  readonly slow: number;
  /** Settles only when the weather clears. */
  readonly hung: number;
}

export interface Weather {
  readonly effects: ReadonlyMap<EffectKind, EffectFaults>;
  /** Upper bound of an ordinary effect. */
  readonly latencyMsMax: number;
  /** A directory change is not told, or told twice. */
  readonly hintLost: number;
  readonly hintDoubled: number;
  /** Upper bound of one part of an ownership walk, where it is more than `latencyMsMax`. */
  readonly walkMsMax?: number;
}

export const FAIR: Weather = { effects: new Map(), latencyMsMax: 4, hintLost: 0, hintDoubled: 0 };
