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
}: Tally): string {
  return (
    `${expansions} expansions, ${questions} questions, ${republished} times published again, ` +
    `${quarantines} operator commands, ${verified} times proven clean, ${walks} steps of walks, ` +
    `${holds} device holds, ${accepted} directories accepted, ${kept} pods kept that vanished unseen`
  );
}
