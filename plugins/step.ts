/** What an operation is doing at this moment, for people. Each kind can be checked against the world, and is. */

export type Step =
  /** It waits for its turn, and nothing of it is under way. `behind`: who comes first. */
  | { readonly kind: 'queued'; readonly behind: string }
  /** The driver was called and has not answered. */
  | { readonly kind: 'called'; readonly rpc: string; readonly deadlineMs: number }
  /** The driver has answered; the kernel is asked what is true, and what was ours around it is put right. */
  | { readonly kind: 'verifying'; readonly rpc: string }
  /** Our own effects: directories, mounts, a walk. `deadlineMs`: of one that may take longer than others. */
  | { readonly kind: 'working'; readonly deadlineMs?: number }
  /** What is begun, or what came of it, is being written down. */
  | { readonly kind: 'recording' };

/** How a long call says what it does. Nothing is decided on it, and it holds no secret. */
export interface CallReport {
  readonly step: (step: Step) => void;
  /** What is told within a step is also its sign of life. */
  readonly progress: (text: string) => void;
}
