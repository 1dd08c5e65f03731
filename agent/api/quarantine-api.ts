/** The answers of /v1/quarantine: the only requests that change something. docs/API.md describes them. */
import { assert, type Failure, type Result } from '../../mount/failure.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { Reconciler } from '../../reconciler/reconciler.ts';
import { type ApiAnswer, refusal } from './api-answer.ts';
import {
  type QuarantineChangeDocument,
  quarantineDocument,
  quarantinedById,
  type QuarantinedVolume,
} from '../status/quarantine-document.ts';
import { shownVolumeId } from '../status/status-text.ts';
import type { StatusDocument } from '../status/status-document.ts';
import type { VolumeStatus } from '../status/volume-status.ts';
import { findVolume } from '../status/subject.ts';

/** What the agent does when it is asked; durable when it settles `ok`. */
export type QuarantineKeeper = Pick<Reconciler, 'quarantine' | 'endQuarantine' | 'actual' | 'desired'>;

export interface QuarantineApi {
  list(): ApiAnswer;
  /** `body`: the parsed JSON of the request. */
  add(body: unknown): Promise<ApiAnswer>;
  clear(subject: string): Promise<ApiAnswer>;
}

const SUBJECT_MISSING = 'volume: name a volume by its PersistentVolume, its handle or its id';

export function createQuarantineApi(keeper: QuarantineKeeper, status: () => StatusDocument): QuarantineApi {
  function change(kind: QuarantineChangeDocument['change'], { id, name }: VolumeStatus): ApiAnswer {
    const quarantine = quarantinedById(id, status()) ?? null;
    const next = kind === 'cleared' ? AFTER_CLEAR : afterAdd(kind, quarantine);
    const body: QuarantineChangeDocument = {
      apiVersion: 'mooring/v1',
      kind: 'QuarantineChange',
      change: kind,
      volume: { id, name },
      quarantine,
      next,
    };
    return { status: 200, body };
  }

  return {
    list: () => ({ status: 200, body: quarantineDocument(status()) }),
    async add(body) {
      const subject = subjectOf(body);
      if (subject === undefined) return refusal(400, 'bad-request', SUBJECT_MISSING);
      const found = find(subject, status(), keeper);
      if (found.kind === 'refused') return found.answer;
      const { volume, id } = found;
      const already = volume.quarantine !== null && volume.quarantine.since !== null;
      const added = await keeper.quarantine(id);
      return added.ok ? change(already ? 'unchanged' : 'added', volume) : failed(added, volume);
    },
    async clear(subject) {
      if (subject === '') return refusal(400, 'bad-request', SUBJECT_MISSING);
      const found = find(subject, status(), keeper);
      if (found.kind === 'refused') return found.answer;
      const { volume, id } = found;
      if (volume.quarantine === null)
        return refusal(409, 'not-quarantined', `volume ${volume.name} is not in quarantine`);
      if (volume.quarantine.standing) return refusal(409, 'quarantine-stands', stands(volume));
      const cleared = await keeper.endQuarantine(id);
      return cleared.ok ? change('cleared', volume) : failed(cleared, volume);
    },
  };
}

/** Unknown keys are left alone: a later version may have more. */
function subjectOf(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('volume' in body)) return undefined;
  return typeof body.volume === 'string' && body.volume !== '' ? body.volume : undefined;
}

type Found =
  | { readonly kind: 'found'; readonly volume: VolumeStatus; readonly id: VolumeId }
  | { readonly kind: 'refused'; readonly answer: ApiAnswer };

function find(subject: string, status: StatusDocument, keeper: QuarantineKeeper): Found {
  const found = findVolume(subject, status);
  if (found.kind === 'found') {
    const { volume } = found;
    const ids = [...keeper.actual().keys(), ...keeper.desired().volumes.keys()];
    const id = ids.find((one) => shownVolumeId(one) === volume.id);
    assert(id !== undefined, 'every volume of the status is known or wanted');
    return { kind: 'found', volume, id };
  }
  const answer =
    found.kind === 'unknown'
      ? refusal(404, 'subject-unknown', found.message)
      : refusal(409, 'subject-ambiguous', found.message);
  return { kind: 'refused', answer };
}

function stands({ name, quarantine }: VolumeStatus): string {
  return (
    `volume ${name} is in quarantine by the wish (${quarantine?.reason}), which stands: ` +
    'it ends when the wish no longer says so'
  );
}

/** The reconciler refuses what makes no sense; all else is its papers. */
function failed({ failure }: Extract<Result<void>, { ok: false }>, volume: VolumeStatus): ApiAnswer {
  if (failure.code === 'reference-missing') return refusal(409, 'quarantine-refused', failure.message);
  return refusal(500, 'not-durable', notDurable(failure, volume));
}

function notDurable({ code, message }: Failure, { name }: VolumeStatus): string {
  return (
    `it was done, but could not be written down (${code}: ${message}): a restart of the agent would forget it; ` +
    `put that right and ask again for volume ${name}`
  );
}

const AFTER_CLEAR =
  'Nobody has proven that this node is done with it. It is set up again as soon as a pod wants it; ' +
  'what was still mounted stays for the pods that want it.';

function afterAdd(kind: 'added' | 'unchanged', quarantine: QuarantinedVolume | null): string {
  const before = kind === 'unchanged' ? 'It was in quarantine already. ' : '';
  if (quarantine === null) return `${before}It has left quarantine again: nothing of it was here.`;
  const wanted = quarantine.wantedBy.length === 0 ? '' : `, though ${quarantine.wantedBy.join(', ')} want it`;
  return (
    `${before}It is unpublished and unstaged now${wanted}, and not set up again meanwhile. Then this machine is ` +
    'searched for users of its devices; when there are none it leaves quarantine by itself, and is set up for the ' +
    'pods that still want it. To keep it down, take those pods out of the manifests.'
  );
}
