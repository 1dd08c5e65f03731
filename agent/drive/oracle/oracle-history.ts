/** What a driver can know of one volume, and how a call and its answer change it. Pure. */
import type { ReplyFields, RequestFields } from './recorded-call.ts';

/** `unsure`: a call about it is open, or ended without an answer that settles it. */
export type Rung = 'none' | 'unsure' | 'yes';

/** How far a volume is up the ladder. */
export interface Ladder<Place> {
  attached: Rung;
  staged: Rung;
  /** Each place is found by its target path. */
  readonly published: Map<string, Place>;
}

interface PublishedPlace {
  readonly rung: Rung;
  /** JSON of the arguments it was published with. */
  readonly as: string;
}

/** What a driver can know of one volume. */
export interface VolumeHistory extends Ladder<PublishedPlace> {
  readonly open: Set<OpenCall>;
  publishContext: Readonly<Record<string, string>> | undefined;
  stagingPath: string | undefined;
  /** JSON of the capability it was staged with. */
  stagedAs: string | undefined;
  /** JSON of the volume context of the first call that carried one, without pod information. */
  context: string | undefined;
  /** Each method and place has the arguments of the last call that got no final answer. */
  readonly pending: Map<string, string>;
  /** Each method and place has the last arguments, whatever the answer was. */
  readonly lasting: Map<string, string>;
  /** NodeExpandVolume said FAILED_PRECONDITION, and the volume has been in use ever since. */
  expandRefused: boolean;
  /** Methods answered UNIMPLEMENTED since the capabilities were last read. */
  readonly unimplemented: Set<string>;
}

export interface BeginningCall {
  readonly method: string;
  readonly request: RequestFields;
  readonly unknownBytes?: number;
  /** When it arrived, on any clock that all calls are told by. */
  readonly startMs?: number;
}

export interface OpenCall {
  readonly method: string;
  readonly request: RequestFields;
  readonly startMs?: number;
}

export interface EndedCall {
  readonly code: number;
  readonly reply?: ReplyFields | undefined;
}

export function createHistory(): VolumeHistory {
  return {
    open: new Set(),
    attached: 'none',
    publishContext: undefined,
    staged: 'none',
    stagingPath: undefined,
    stagedAs: undefined,
    published: new Map(),
    context: undefined,
    pending: new Map(),
    lasting: new Map(),
    expandRefused: false,
    unimplemented: new Set(),
  };
}

const ABSENT: ReadonlySet<string> = new Set(['NodeUnpublishVolume', 'NodeUnstageVolume']);
const NOT_FOUND = 5;
const UNIMPLEMENTED = 12;
const FAILED_PRECONDITION = 9;
/** Answers that promise that nothing has happened: the rung is where it was. */
export const REFUSALS: ReadonlySet<number> = new Set([3, 5, 7, 9, 11, 12, 16]);
/** After these the same request is to be sent again: the outcome is unknown (spec, "Timeouts"). */
export const DOUBTS: ReadonlySet<number> = new Set([1, 4, 10, 14]);

/** One place: a method is repeated for the same volume and path. */
export function placeOf({ method, request }: BeginningCall): string {
  return `${method} ${request.targetPath ?? request.stagingTargetPath ?? request.volumePath ?? ''}`;
}

/** What must not change between tries: everything but the secrets, which may be rotated. */
export function argumentsOf({ request }: BeginningCall): string {
  const { secrets: _secrets, ...rest } = request;
  return stableJson(rest);
}

/** Keys in order, so that two ways of saying the same are equal; 64-bit integers as text. */
export function stableJson(value: unknown): string {
  return JSON.stringify(value, (_key, one: unknown) => {
    if (typeof one === 'bigint') return `${one}n`;
    if (typeof one !== 'object' || one === null || Array.isArray(one)) return one;
    return Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/** From the moment a call arrives its rung is unsure; what it returns takes that back for a call that was refused. */
export function doubt(call: BeginningCall, history: VolumeHistory): () => void {
  return doubtRung<PublishedPlace>(call, history, (before) => ({
    rung: 'unsure',
    as: before?.as ?? argumentsOf(call),
  }));
}

/** As `doubt`, for any ladder; `unsure` makes the doubtful place from the one that was there. */
export function doubtRung<Place>(
  { method, request }: Pick<BeginningCall, 'method' | 'request'>,
  ladder: Ladder<Place>,
  unsure: (before: Place | undefined) => Place,
): () => void {
  const { attached, staged, published } = ladder;
  switch (method) {
    case 'ControllerPublishVolume':
    case 'ControllerUnpublishVolume':
      ladder.attached = 'unsure';
      return () => {
        ladder.attached = attached;
      };
    case 'NodeStageVolume':
    case 'NodeUnstageVolume':
      // What nobody has staged no call that got lost has staged by taking it down.
      if (staged !== 'none' || method === 'NodeStageVolume') ladder.staged = 'unsure';
      return () => {
        ladder.staged = staged;
      };
    case 'NodePublishVolume':
    case 'NodeUnpublishVolume': {
      const target = request.targetPath ?? '';
      const before = published.get(target);
      if (before !== undefined || method === 'NodePublishVolume') published.set(target, unsure(before));
      return () => {
        if (before === undefined) published.delete(target);
        else published.set(target, before);
      };
    }
    default:
      return () => {};
  }
}

/** A call was answered. `takeBack`: what `doubt` gave when it began. */
export function settle(
  call: BeginningCall,
  { code, reply }: EndedCall,
  history: VolumeHistory,
  takeBack: () => void,
): void {
  const place = placeOf(call);
  if (DOUBTS.has(code)) history.pending.set(place, argumentsOf(call));
  else history.pending.delete(place);
  if (code === UNIMPLEMENTED) history.unimplemented.add(call.method);
  if (call.method === 'NodeExpandVolume' && code === FAILED_PRECONDITION) history.expandRefused = true;
  // Gone already is as good as gone: the kernel decides, and the oracle cannot ask it.
  if (code === 0 || (code === NOT_FOUND && ABSENT.has(call.method))) believe(call, reply, history);
  else if (REFUSALS.has(code)) takeBack();
}

function believe(call: BeginningCall, reply: ReplyFields | undefined, history: VolumeHistory): void {
  const { request } = call;
  switch (call.method) {
    case 'ControllerPublishVolume':
      history.attached = 'yes';
      history.publishContext = reply?.publishContext;
      return;
    case 'ControllerUnpublishVolume':
      history.attached = 'none';
      history.publishContext = undefined;
      return;
    case 'NodeStageVolume':
      history.staged = 'yes';
      history.stagingPath = request.stagingTargetPath;
      history.stagedAs = stableJson(request.volumeCapability);
      return;
    case 'NodeUnstageVolume':
      history.staged = 'none';
      history.stagingPath = undefined;
      history.stagedAs = undefined;
      history.expandRefused = false;
      return;
    case 'NodePublishVolume':
      history.published.set(request.targetPath ?? '', { rung: 'yes', as: argumentsOf(call) });
      return;
    case 'NodeUnpublishVolume':
      history.published.delete(request.targetPath ?? '');
      history.expandRefused = false;
  }
}
