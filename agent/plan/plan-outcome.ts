/** What has become of a question for a plan. */
import type { Failure } from '../../mount/failure.ts';
import type { PlanDocument } from './plan-document.ts';

export type PlanOutcome =
  | { readonly kind: 'planned'; readonly document: PlanDocument }
  /** Nothing could be planned, and an agent would not start either. */
  | { readonly kind: 'refused'; readonly exitCode: number; readonly failure: Failure };
