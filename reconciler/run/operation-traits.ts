/** The setbacks of one key. */
export interface EndedSetback {
  readonly key: string;
  /** `timed`: if it waits for a time; what waits for a change does so still. */
  readonly extent: 'all' | 'timed';
}

/** What the executor has to know of a kind of operation, a volume's or another. Pure. */
export interface OperationTraits<Operation, Subject extends string> {
  /** What it is about; operations of two subjects never conflict. */
  subject(operation: Operation): Subject;
  /** True when they must never run at once. Symmetric. */
  conflicts(a: Operation, b: Operation): boolean;
  /** Operations of the subject that have one key share their failures and back off together. */
  setbackKey(operation: Operation): string;
  /** True for what sets up: the back-off of that can be reset alone. The same for all of one `setbackKey`. */
  climbs(operation: Operation): boolean;
  /** Which setbacks of its subject its success ends besides its own, as they are of something that is over. */
  ends(operation: Operation): readonly EndedSetback[];
}
