/** One duty of a driver: what it is called, where it is written, and how it is tried. */
import { type Answer, answerText, type CodeName, codeOf } from '../rig/driver-client.ts';
import type { Life } from '../rig/life.ts';
import { mountsAt } from '../rig/machine.ts';
import type { Notes } from '../oracle/verdict.ts';

export interface Duty {
  /** What `--only` takes. */
  readonly name: string;
  readonly title: string;
  /** Ids of docs/CSI.md: the specification's duties (A-…) and the cases of csi-sanity (S…). */
  readonly source: string;
  /** It looks for the driver's mounts: useless when they are not seen from here. */
  readonly looksAtMounts: boolean;
  readonly run: (life: Life, notes: Notes) => Promise<void>;
}

/** Is the answer one of these codes? Otherwise a failure that says what came. */
export function expectCode(
  notes: Notes,
  what: string,
  answer: Answer<unknown>,
  codes: readonly CodeName[],
): boolean {
  const code = answer.ok ? 0 : answer.code;
  const holds = codes.some((name) => codeOf(name) === code);
  return notes.expect(holds, `${what}: ${answerText(answer)}, expected ${codes.join(' or ')}`);
}

/** Is the answer OK? Otherwise a failure that says what came. */
export function expectOk<Reply>(
  notes: Notes,
  what: string,
  answer: Answer<Reply>,
): answer is Extract<Answer<Reply>, { readonly ok: true }> {
  return notes.expect(answer.ok, `${what}: ${answerText(answer)}`);
}

/** Exactly one mount at the path; its id. */
export async function expectMounted(notes: Notes, path: string, after: string): Promise<number | undefined> {
  const stack = await mountsAt(path);
  if (stack.length === 0) notes.fail(`${after} said OK, but nothing is mounted at the target`);
  if (stack.length > 1) notes.fail(`${after} said OK and left ${stack.length} mounts on top of each other`);
  return stack.at(-1)?.mountId;
}

/** No mount at the path; otherwise a failure. */
export async function expectNotMounted(notes: Notes, path: string, after: string): Promise<void> {
  const stack = await mountsAt(path);
  const text = stack.length === 1 ? 'is still mounted' : `still has ${stack.length} mounts`;
  if (stack.length > 0) notes.fail(`${after} said OK, but the path ${text}`);
}
