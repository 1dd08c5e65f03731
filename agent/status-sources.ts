/** What is wrong with the sources of the wish, as the status has it. Pure. */
import { printable } from './printable.ts';
import type { StatusDocument, VanishingStatus } from './status-document.ts';
import type { StatusFacts } from './status-facts.ts';

type SourceFacts = Pick<StatusFacts, 'rejected' | 'desired' | 'vanishing' | 'nowMs'>;

const TEXT_BYTES_MAX = 1_024;

/** `when`: a time of the host's clock as the document writes it. */
export function sourcesOf(
  facts: SourceFacts,
  when: (monotonicMs: number) => string,
): StatusDocument['sources'] {
  const rejected = facts.rejected.map(({ origin, subject, field, message }) => ({
    origin: shown(origin),
    subject: subject === undefined ? null : shown(subject),
    field: field === undefined ? null : shown(field),
    message: shown(message),
  }));
  return {
    rejected,
    unknown: [...facts.desired.unknownOrigins].map(shown).sort(),
    vanishing: vanishingOf(facts, when),
  };
}

function vanishingOf(
  { vanishing, nowMs }: SourceFacts,
  when: (monotonicMs: number) => string,
): VanishingStatus | null {
  if (vanishing === undefined) return null;
  const { pods, sinceMs, untilMs } = vanishing;
  return {
    pods: [...pods].map(shown).sort(),
    since: when(sinceMs),
    believedInMs: Math.max(0, Math.round(untilMs - nowMs)),
  };
}

function shown(text: string): string {
  return printable(text, TEXT_BYTES_MAX);
}
