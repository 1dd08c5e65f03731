/** What the user ever wished of a volume: what calls about it may legally carry. */

export interface WishHistory {
  /** JSON of each version of the volume attributes. */
  readonly attributes: ReadonlySet<string>;
  /** JSON of each version of the secret of a call, or undefined when the volume never named one. */
  readonly stageSecrets: ReadonlySet<string> | undefined;
  readonly publishSecrets: ReadonlySet<string> | undefined;
  readonly accessMode: SimAccessMode;
  readonly block: boolean;
  /** Written inline in a pod: never attached, staged or grown. */
  readonly ephemeral: boolean;
  /** fsGroups of all pods that ever wanted it. */
  readonly groups: ReadonlySet<string>;
  /** In bytes. */
  readonly sizes: ReadonlySet<bigint>;
}

export type SimAccessMode = 'ReadWriteMany' | 'ReadWriteOnce' | 'ReadWriteOncePod';
