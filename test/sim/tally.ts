/** How often what is rare came up; told at the end, so that a feature that is never met shows. */
export interface Tally {
  expansions: number;
  questions: number;
  republished: number;
  quarantines: number;
  verified: number;
  walks: number;
  holds: number;
  /** Directories that an operator accepted, pods kept though their manifests vanished unseen. */
  accepted: number;
  kept: number;
  /** Machines that were nodes of a cluster, volumes set up there after an attach, attachers that took one away. */
  nodes: number;
  attached: number;
  detached: number;
  /** Attachments that said something else of their volume while they stayed the same. */
  moved: number;
  /** Requests to API servers, and those that were not answered with what was asked for. */
  requests: number;
  unanswered: number;
  /** Events that were written about pods. */
  events: number;
  /** Claims that were told that their volume has grown. */
  grown: number;
  /** Times that the clock on the wall was set. */
  clocksSet: number;
}

export const NO_TALLY: Readonly<Tally> = {
  expansions: 0,
  questions: 0,
  republished: 0,
  quarantines: 0,
  verified: 0,
  walks: 0,
  holds: 0,
  accepted: 0,
  kept: 0,
  nodes: 0,
  attached: 0,
  detached: 0,
  moved: 0,
  requests: 0,
  unanswered: 0,
  events: 0,
  grown: 0,
  clocksSet: 0,
};

export function addTally(sum: Tally, one: Readonly<Tally>): void {
  for (const key of Object.keys(sum) as (keyof Tally)[]) sum[key] += one[key];
}

export function tallyText({
  expansions,
  questions,
  republished,
  quarantines,
  verified,
  walks,
  holds,
  accepted,
  kept,
  nodes,
  attached,
  detached,
  moved,
  requests,
  unanswered,
  events,
  grown,
  clocksSet,
}: Tally): string {
  return (
    `${expansions} expansions, ${questions} questions, ${republished} times published again, ` +
    `${quarantines} operator commands, ${verified} times proven clean, ${walks} steps of walks, ` +
    `${holds} device holds, ${accepted} directories accepted, ${kept} pods kept that vanished unseen, ` +
    `${nodes} nodes of clusters, ${attached} stages there, ${detached} detaches, ${requests} requests, ` +
    `${unanswered} of them refused or lost, ${moved} contexts that changed, ${events} events of pods, ` +
    `${grown} claims grown, ${clocksSet} times that a clock was set`
  );
}
