/** The answers of /v1/manifests: what is kept although its manifest is gone, and the operator's word on it. */
import type { PodReference } from '../../plugins/volume.ts';
import { type ApiAnswer, refusal } from './api-answer.ts';
import { manifestsDocument, type ManifestsChangeDocument } from '../status/manifest-document.ts';
import { type ManifestKeeper, shownPod } from '../source/manifest-keeper.ts';
import { printable } from '../../mount/text/printable.ts';
import type { StatusDocument } from '../status/status-document.ts';

export interface ManifestApi {
  list(): ApiAnswer;
  /** `body`: the parsed JSON of the request. */
  change(body: unknown): Promise<ApiAnswer>;
}

const WHAT_IT_TAKES =
  'expected {"accept": "<sight>"}, the sight of the directory as GET shows it, or {"forget": ["<pod>", …]}, ' +
  'or {"forget": "all"}';

export function createManifestApi(
  keeper: Pick<ManifestKeeper, 'accept' | 'missing' | 'forget'>,
  status: () => StatusDocument,
): ManifestApi {
  async function accept(sight: string): Promise<ApiAnswer> {
    const accepted = await keeper.accept(sight);
    if (accepted.ok) return changed('accepted', [], AFTER_ACCEPT);
    const { code, message } = accepted.failure;
    if (code === 'reference-missing') return refusal(409, 'directory-not-there', message);
    const text =
      `it was done, but could not be written down (${code}: ${message}): it is tried again, ` +
      'and a restart before that asks anew';
    return refusal(500, 'not-durable', text);
  }

  function forget(subjects: readonly string[] | 'all'): ApiAnswer {
    const missing = keeper.missing();
    const pods: PodReference[] = [];
    for (const subject of subjects === 'all' ? [] : subjects) {
      const found = missing.filter((pod) => namesOf(pod).includes(subject));
      const [pod] = found;
      const called = `"${printable(subject, SUBJECT_BYTES_MAX)}"`;
      if (pod === undefined)
        return refusal(404, 'subject-unknown', `no pod is kept that is called ${called}`);
      if (found.length > 1) {
        const uids = found.map(({ uid }) => uid).join(', ');
        return refusal(409, 'subject-ambiguous', `${called} can mean ${uids}; say which`);
      }
      pods.push(pod);
    }
    const forgotten = subjects === 'all' ? missing : pods;
    keeper.forget(forgotten.map(({ uid }) => uid));
    return changed('forgotten', forgotten.map(shownPod), forgotten.length === 0 ? NOBODY : AFTER_FORGET);
  }

  return {
    list: () => ({ status: 200, body: manifestsDocument(status()) }),
    async change(body) {
      const asked = askedOf(body);
      if (asked === undefined) return refusal(400, 'bad-request', WHAT_IT_TAKES);
      return asked.kind === 'accept' ? accept(asked.sight) : forget(asked.pods);
    },
  };
}

type Asked =
  | { readonly kind: 'accept'; readonly sight: string }
  | { readonly kind: 'forget'; readonly pods: readonly string[] | 'all' };

const SUBJECT_BYTES_MAX = 256;
const PODS_MAX = 1_000;

/** Exactly one of the two: a word that takes down what is kept is not guessed at. */
function askedOf(body: unknown): Asked | undefined {
  if (typeof body !== 'object' || body === null || Object.keys(body).length !== 1) return undefined;
  if ('accept' in body)
    return typeof body.accept === 'string' && body.accept !== ''
      ? { kind: 'accept', sight: body.accept }
      : undefined;
  if (!('forget' in body)) return undefined;
  const { forget } = body;
  if (forget === 'all') return { kind: 'forget', pods: 'all' };
  const isList = Array.isArray(forget) && forget.length > 0 && forget.length <= PODS_MAX;
  const isText = isList && forget.every((one) => typeof one === 'string' && one !== '');
  return isText ? { kind: 'forget', pods: forget } : undefined;
}

function namesOf(pod: PodReference): readonly string[] {
  return pod.name === '' ? [pod.uid] : [pod.uid, pod.name, shownPod(pod)];
}

function changed(
  change: ManifestsChangeDocument['change'],
  pods: readonly string[],
  next: string,
): ApiAnswer {
  const body: ManifestsChangeDocument = {
    apiVersion: 'mooring/v1',
    kind: 'ManifestsChange',
    change,
    pods,
    next,
  };
  return { status: 200, body };
}

const AFTER_ACCEPT =
  'It is read from now on. What is in it is set up; pods that are not in it are kept for a while in case that is a ' +
  'mistake ("mooring manifests list" says how long, "mooring forget" ends it).';
const AFTER_FORGET = 'What is theirs is taken down now, and what is in their emptyDirs is deleted last.';
const NOBODY = 'Nobody is kept; nothing was done.';
