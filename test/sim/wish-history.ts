/** What the user ever wished of a volume: what calls about it may legally carry. */

export interface WishHistory {
  /** JSON of each version of the volume attributes. */
  readonly attributes: ReadonlySet<string>;
  /** JSON of each version of the secret of a call, or undefined when the volume never named one. */
  readonly stageSecrets: ReadonlySet<string> | undefined;
  readonly publishSecrets: ReadonlySet<string> | undefined;
  /** All that were ever wished, the first first. */
  readonly accessModes: ReadonlySet<SimAccessMode>;
  readonly blocks: ReadonlySet<boolean>;
  /** Anything but its size and its secrets was wished otherwise once. */
  readonly isChanged: boolean;
  /** Written inline in a pod: never attached, staged or grown. */
  readonly ephemeral: boolean;
  /** fsGroups of all pods that ever wanted it. */
  readonly groups: ReadonlySet<string>;
  /** In bytes. */
  readonly sizes: ReadonlySet<bigint>;
}

export type SimAccessMode = 'ReadWriteMany' | 'ReadWriteOnce' | 'ReadWriteOncePod';
