/** How far this node follows its cluster: for the status and for people. */

export interface ClusterReport {
  /** `https://10.0.0.1:6443`. */
  readonly server: string;
  /**
   * `connecting`: not everything was read yet. `following`: changes are heard as they happen. `broken`: they are not,
   * and what was heard last counts.
   */
  readonly state: 'connecting' | 'following' | 'broken';
  /** Host clock. */
  readonly sinceMs: number;
  /** Why it is not followed; empty when it is. */
  readonly message: string;
  /** That are bound to this node, by the server's word. */
  readonly pods: number;
}
