/** Failures of the wish: it says something that cannot be, or not all that is needed. */
import { type Failure, type FailureCode, fail } from '../../mount/failure.ts';
import { printable } from '../../mount/text/printable.ts';

const MESSAGE_BYTES_MAX = 1_024;

/** A refusal of the wish: nothing was tried. The message is cut where names at their longest make it too long. */
export function refuse(
  code: FailureCode,
  message: string,
  blocker?: string,
): { readonly ok: false; readonly failure: Failure } {
  const shown = printable(message, MESSAGE_BYTES_MAX);
  return fail({ code, message: shown, effect: 'none', ...(blocker === undefined ? {} : { blocker }) });
}
