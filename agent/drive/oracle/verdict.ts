/** What was found out about one duty of a driver. */

export type VerdictKind =
  | 'pass'
  | 'fail'
  /** The driver does not claim it, or it was not asked for. */
  | 'skipped'
  /** Something it builds on does not work, which is told elsewhere; it counts as not passed. */
  | 'blocked';

export interface Verdict {
  readonly duty: string;
  readonly title: string;
  /** Ids of docs/CSI.md, or what the specification calls it. */
  readonly source: string;
  readonly kind: VerdictKind;
  /** What breaks the duty; why it was skipped; what blocks it. */
  readonly findings: readonly string[];
  /** Departures that the specification allows, or that most orchestrators live with. */
  readonly remarks: readonly string[];
  readonly durationMs: number;
}

/** Where a duty writes down what it sees. The first word of a kind that is worse than the others is the verdict. */
export class Notes {
  readonly #failures: string[] = [];
  readonly #blocked: string[] = [];
  readonly #skipped: string[] = [];
  readonly remarks: string[] = [];

  fail(text: string): void {
    this.#failures.push(text);
  }

  /** Records a failure unless it holds; answers whether it holds. */
  expect(holds: boolean, otherwise: string): boolean {
    if (!holds) this.fail(otherwise);
    return holds;
  }

  remark(text: string): void {
    if (!this.remarks.includes(text)) this.remarks.push(text);
  }

  blocked(text: string): void {
    this.#blocked.push(text);
  }

  skip(because: string): void {
    this.#skipped.push(because);
  }

  get failures(): readonly string[] {
    return this.#failures;
  }

  /** With `strict`, remarks are failures. */
  verdict(strict: boolean): Pick<Verdict, 'kind' | 'findings' | 'remarks'> {
    const failures = strict ? [...this.#failures, ...this.remarks] : this.#failures;
    const remarks = strict ? [] : this.remarks;
    if (failures.length > 0) return { kind: 'fail', findings: failures, remarks };
    if (this.#blocked.length > 0) return { kind: 'blocked', findings: this.#blocked, remarks };
    if (this.#skipped.length > 0) return { kind: 'skipped', findings: this.#skipped, remarks };
    return { kind: 'pass', findings: [], remarks };
  }
}

/** True when the driver may be given to people: nothing failed, nothing could not be judged. */
export function isGood(verdicts: readonly Verdict[]): boolean {
  return verdicts.every(({ kind }) => kind === 'pass' || kind === 'skipped');
}
