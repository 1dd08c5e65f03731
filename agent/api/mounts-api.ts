/** The answer of /v1/pods/<pod>/mounts. docs/API.md describes it. */
import type { MountsDocument } from '../mounts/mounts-document.ts';
import type { PodStatus, StatusDocument } from '../status/status-document.ts';
import { findWantedPod, fullName } from '../status/subject.ts';
import { type ApiAnswer, refusal } from './api-answer.ts';

/** Undefined: it is not in the wish any more, and nobody knows its containers. */
export type PodMounts = (pod: PodStatus) => MountsDocument | undefined;

/** `name`: what a person calls the pod. */
export function answerMounts(name: string, status: StatusDocument, mountsOf: PodMounts): ApiAnswer {
  const found = findWantedPod(name, status);
  if (found.kind === 'unknown') return refusal(404, 'subject-unknown', found.message);
  if (found.kind === 'ambiguous') return refusal(409, 'subject-ambiguous', found.message);
  const document = mountsOf(found.pod);
  if (document !== undefined) return { status: 200, body: document };
  const message = `pod ${fullName(found.pod)} is not wanted any more, and its containers are not known`;
  return refusal(404, 'subject-unwanted', message);
}

/** Undefined when it is not percent-encoded UTF-8. */
export function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
