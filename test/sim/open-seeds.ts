/**
 * Seeds that fail and are not solved yet, with what is known of them. A run of many tells them loudly and fails on any
 * other; one that no longer fails is told, too, and is to be taken out. Solved, a seed moves to regressions.ts.
 */
export const OPEN_SEEDS: ReadonlyMap<number, string> = new Map([
  [
    1_418,
    'an iSCSI login ends in doubt, so the note that the session is ours stays; an administrator logs in there, and ' +
      'behind the last volume the agent ends that session, of which nobody has a disk: whose it is cannot be told',
  ],
  [
    27_507_090,
    'a driver that does not stage: a pod whose mount was gone after a restart is published again from a file system ' +
      'that is dead, and told ready; nothing was mounted that could be asked before, and what is published is not',
  ],
]);
