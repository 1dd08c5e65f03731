/** The answer of POST /v1/pods/<pod>/release: a word about who has what is left of a pod. docs/API.md describes it. */
import type { PodUid } from '../../plugins/volume.ts';
import type { Reconciler } from '../../reconciler/reconciler.ts';
import { reasonSentence } from '../status/sentence.ts';
import type { StatusDocument } from '../status/status-document.ts';
import { findPod, fullName } from '../status/subject.ts';
import { type ApiAnswer, refusal } from './api-answer.ts';

/** Who is told of it. */
export type PodReleases = Pick<Reconciler, 'released' | 'forceRelease'>;

/** `body`: the parsed JSON of the request. `{}` says that the containers have ended. */
export function answerRelease(
  subject: string,
  body: unknown,
  status: StatusDocument,
  releases: PodReleases,
): ApiAnswer {
  if (!isRelease(body))
    return refusal(400, 'bad-request', 'force: expected true or false, in a body that is an object');
  const found = findPod(subject, status);
  if (found.kind === 'unknown') return refusal(404, 'subject-unknown', found.message);
  if (found.kind === 'ambiguous') return refusal(409, 'subject-ambiguous', found.message);
  const { pod } = found;
  if (pod.wanted) {
    const message = `pod ${fullName(pod)} is still wanted: its volumes stay until its manifest is deleted`;
    return refusal(409, 'subject-wanted', message);
  }
  const { force = false } = body;
  if (force) releases.forceRelease(pod.uid as PodUid);
  else releases.released(pod.uid as PodUid);
  const held = pod.volumes.flatMap(({ name, driver, reason }) =>
    reason?.code === 'volume-held' ? [{ volume: name, because: reasonSentence(reason, driver) }] : [],
  );
  const { namespace, name, uid } = pod;
  return {
    status: 200,
    body: { apiVersion: 'mooring/v1', kind: 'Release', pod: { namespace, name, uid }, force, held },
  };
}

/** Unknown keys are left alone: a later version may have more. */
function isRelease(body: unknown): body is { readonly force?: boolean } {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return false;
  return !('force' in body) || typeof body.force === 'boolean';
}
