/** An object that another one names and that is not wanted: was it never written, or was it refused? */
import { refuse } from '../../kubernetes/fields/refuse.ts';
import type { DesiredObjects } from '../source/desired-objects.ts';
import type { Rejection } from '../source/objects-source.ts';
import { problemText } from '../../mount/text/problem-text.ts';

/**
 * By `reference-missing`. `identity` as `identityOf` says it; `whose` follows it in the sentence. Of an object that was
 * refused the reason is told: "does not exist" would send people to look for a file that they have.
 */
export function refuseMissing(
  { rejected }: Pick<DesiredObjects, 'rejected'>,
  identity: string,
  parts: { readonly whose?: string | undefined; readonly blocker?: string; readonly advice?: string } = {},
): ReturnType<typeof refuse> {
  const { whose = '', blocker, advice = '' } = parts;
  const rejection = rejectionOf(rejected, identity);
  const title = `${identity}${whose}`;
  if (rejection === undefined)
    return refuse('reference-missing', `${title} does not exist${advice}`, blocker);
  return refuse('reference-missing', `${title} was refused (${whyRefused(rejection)})`, blocker);
}

/** Where, which field, and what is wrong with it. */
export function whyRefused(rejection: Rejection): string {
  return `${rejection.origin}, ${problemText(rejection)}`;
}

/** By `reference-missing`, of an object that is not there and may be all the same; undefined: it is not. */
export function refuseUnknown(
  desired: Pick<DesiredObjects, 'rejected' | 'awaited'>,
  identity: string,
  blocker?: string,
): ReturnType<typeof refuse> | undefined {
  if (rejectionOf(desired.rejected, identity) !== undefined)
    return refuseMissing(desired, identity, blocker === undefined ? {} : { blocker });
  if (desired.awaited === undefined) return undefined;
  const message = `${identity} may be in ${desired.awaited}, which is being read for the first time`;
  return refuse('reference-missing', message, blocker);
}

/**
 * By `reference-missing`, of an object that is not there and may be in a manifest of which nothing is known; undefined:
 * it is in none. `origin` of whoever names it.
 */
export function refuseUnread(
  { unreadBeside }: Pick<DesiredObjects, 'unreadBeside'>,
  identity: string,
  origin: string,
): ReturnType<typeof refuse> | undefined {
  const where = unreadBeside.get(origin);
  return where === undefined ? undefined : refuse('reference-missing', `${identity} may be in ${where}`);
}

/** A wish is never changed in place, so each list is read once, however many objects are missing. */
const bySubject = new WeakMap<readonly Rejection[], ReadonlyMap<string, Rejection>>();

/** The first of its problems. */
function rejectionOf(rejected: readonly Rejection[], identity: string): Rejection | undefined {
  let known = bySubject.get(rejected);
  if (known === undefined) {
    const named = rejected.flatMap((one) => (one.subject === undefined ? [] : [[one.subject, one] as const]));
    known = new Map(named.reverse());
    bySubject.set(rejected, known);
  }
  return known.get(identity);
}
