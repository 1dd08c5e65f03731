/**
 * Seeds that fail and are not solved yet, with what is known of them. A run of many tells them loudly and fails on any
 * other; one that no longer fails is told, too, and is to be taken out. Solved, a seed moves to regressions.ts.
 */
export const OPEN_SEEDS: ReadonlyMap<number, string> = new Map([
  [
    61_800_708,
    'a driver whose registration socket was not seen for a minute is taken for a new one when it is back, and is ' +
      'asked about the health of a volume while it still owes the answer before',
  ],
  [
    282_311_488,
    'of a cluster: an attachment that was deleted and made anew is judged as one that was always there, because ' +
      'the agent, which holds the volume in quarantine for it, may not read the new one for twenty seconds',
  ],
]);
