/** The walk that gives a volume to a group, put together from parts that path brokers do. */
import type { CallCompany } from './broker-pool-members.ts';
import { type Failure, fail, ok, type Result } from '../failure.ts';
import {
  type LinkedName,
  namesOf,
  type OwnershipPart,
  type OwnershipPartReport,
} from '../broker/file/ownership-part.ts';
import type { Clock, Host } from '../host.ts';
import type { OwnershipReport, OwnershipRequest } from '../ownership.ts';
import { createOwnershipTurns, type OwnershipTurns } from './ownership-turns.ts';

type PartCompany = Required<Pick<CallCompany, 'onSign' | 'signal'>>;

export interface OwnershipParts {
  readonly clock: Clock;
  /** How often it is looked whether a walk is wanted still; a second, if undefined. */
  readonly lookMs?: number | undefined;
  /** As `OwnershipPart.ageMs`. */
  readonly ageMs: number;
  readonly change: (part: OwnershipPart, company: PartCompany) => Promise<Result<OwnershipPartReport>>;
}

/** Directories that are walked at the same time: two cores, and disks that like some requests waiting. */
const WALKS_MAX = 4;
/** A directory is taken apart while there are fewer than this to share out: no walk ends long before the others. */
const SHARES_MIN = 8;
const LEVELS_MAX = 32;
/** So many names of files with several names are remembered; files of which one is not stay as they are. */
const LINKED_MAX = 100_000;
const LOOK_MS = 1_000;

type Names = readonly Uint8Array[];

interface Walk {
  readonly parts: OwnershipParts;
  readonly request: OwnershipRequest;
  readonly abort: AbortController;
  mountId: number | undefined;
  /** The group of the walk that it waits for. */
  waitsFor: number | undefined;
  failure: Failure | undefined;
  /** The root has lost the mark of another group. */
  unmarked: boolean;
  seen: number;
  changed: number;
  refused: number;
  /** Files with several names, and those of these that were seen. */
  readonly linked: Map<string, Set<string>>;
  linkedNames: number;
  /** Those that were too young to count their names: they may move, and nothing tells. */
  readonly young: Set<string>;
  /** Seen by parts that are under way. */
  readonly underWay: Map<OwnershipPart, number>;
}

/**
 * As `Host.changeOwnership`. Whoever is cancelled or fails leaves entries that are right and entries that are not, and
 * a root that is nobody's: its mark went first and comes last, so the next walk finds the rest.
 */
export function createOwnership(parts: OwnershipParts): Host['changeOwnership'] {
  const turns = createOwnershipTurns();
  return async (request) => {
    const walk: Walk = {
      parts,
      request,
      abort: new AbortController(),
      mountId: request.mountId,
      waitsFor: undefined,
      failure: undefined,
      unmarked: false,
      seen: 0,
      changed: 0,
      refused: 0,
      linked: new Map(),
      linkedNames: 0,
      young: new Set(),
      underWay: new Map(),
    };
    if (request.isCancelled()) return fail(notWanted(request));
    const stopLooking = lookAgainAndAgain(walk);
    try {
      await takeTurns(walk, turns);
    } finally {
      stopLooking();
    }
    return walk.failure === undefined ? ok(reportOf(walk)) : fail(blamed(walk, walk.failure));
  };
}

function lookAgainAndAgain(walk: Walk): () => void {
  const lookMs = walk.parts.lookMs ?? LOOK_MS;
  const look = (): void => {
    if (walk.request.isCancelled()) stop(walk, notWanted(walk.request));
    else if (walk.waitsFor === undefined)
      walk.request.onProgress([...walk.underWay.values()].reduce((sum, seen) => sum + seen, walk.seen));
    cancel = walk.parts.clock.timer(lookMs, look);
  };
  let cancel = walk.parts.clock.timer(lookMs, look);
  return () => cancel();
}

/** One walk at a time of a volume, and of a directory that several volumes have as their root. */
async function takeTurns(walk: Walk, turns: OwnershipTurns): Promise<void> {
  const { volume, gid, onWaiting } = walk.request;
  const inTurn = async (key: string, next: () => Promise<void>): Promise<void> => {
    const turn = {
      key,
      gid,
      signal: walk.abort.signal,
      onWaiting: (before: number): void => {
        walk.waitsFor = before;
        onWaiting(before);
      },
    };
    await turns.run(turn, () => {
      walk.waitsFor = undefined;
      return next();
    });
  };
  await inTurn(`volume ${volume}`, async () => {
    const root = await change(walk, 'look', []);
    if (root === undefined) return;
    walk.mountId = root.mountId;
    await inTurn(`directory ${root.identity}`, () => run(walk));
  });
}

async function run(walk: Walk): Promise<void> {
  // Another walk may have been there since it was looked at.
  const root = await change(walk, 'look', []);
  if (root === undefined) return;
  if (walk.request.policy === 'on-root-mismatch' && root.right) {
    walk.seen += 1;
    return;
  }
  walk.unmarked = ((await change(walk, 'unmark', []))?.changed ?? 0) > 0;
  const { taken, shares } = await takeApart(walk);
  if (walk.failure !== undefined) return;
  await Promise.all(Array.from({ length: WALKS_MAX }, () => walkShares(walk, shares)));
  if (walk.failure !== undefined) return;
  if (walk.linked.size > 0 || walk.young.size > 0) await giveLinked(walk);
  // Taken apart from the root down; given away from the bottom up.
  for (const names of taken.reverse()) count(walk, await change(walk, 'self', names));
}

/**
 * A file that has a name outside of the volume is somebody else's as well, and stays as it is (SE-27): which those are
 * is known when every name in the volume was seen. So whoever has such files is walked twice, and once more, a little
 * later, where files have got a name just now (D-122).
 */
async function giveLinked(walk: Walk): Promise<void> {
  if (walk.young.size > 0) {
    await pause(walk, walk.parts.ageMs);
    // Who is the same by now, in the same state, is old by whatever clock: one from the future was young for ever.
    const counted = await change(walk, 'count', [], [...walk.young]);
    for (const one of counted?.linked ?? []) remember(walk, one);
  }
  const wholes: string[] = [];
  for (const [file, names] of walk.linked) if (namesOf(file) === names.size) wholes.push(file);
  const given = await change(walk, 'linked', [], wholes);
  walk.changed += given?.changed ?? 0;
  walk.refused += given?.refused ?? 0;
}

/** Ends sooner when the walk does. */
function pause({ parts, abort: { signal } }: Walk, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cancel = parts.clock.timer(delayMs, resolve);
    signal.addEventListener('abort', () => {
      cancel();
      resolve();
    });
  });
}

/** Which directories are walked as a whole, and which were done but for themselves, those above first. */
async function takeApart(walk: Walk): Promise<{ taken: Names[]; shares: Names[] }> {
  const taken: Names[] = [];
  const open: Names[] = [[]];
  const whole: Names[] = [];
  while (open.length > 0 && open.length + whole.length < SHARES_MIN && taken.length < LEVELS_MAX) {
    const names = open.shift() as Names;
    const level = await change(walk, 'level', names);
    if (level === undefined) break;
    if (level.directories === undefined) {
      // Too wide to be remembered: its files are looked at again with the rest.
      walk.changed += level.changed;
      whole.push(names);
      continue;
    }
    count(walk, level);
    taken.push(names);
    open.push(...level.directories.map((name) => [...names, name]));
  }
  return { taken, shares: [...whole, ...open] };
}

async function walkShares(walk: Walk, shares: Names[]): Promise<void> {
  for (let names = shares.shift(); names !== undefined; names = shares.shift())
    count(walk, await change(walk, 'tree', names));
}

/** Undefined when the walk has failed, here or elsewhere: the first failure is the one that is told. */
async function change(
  walk: Walk,
  scope: OwnershipPart['scope'],
  names: Names,
  files?: readonly string[],
): Promise<OwnershipPartReport | undefined> {
  if (walk.failure !== undefined) return undefined;
  const { path, gid, readOnly } = walk.request;
  const part: OwnershipPart = {
    ...{ path, gid, readOnly, names, scope, mountId: walk.mountId, ageMs: walk.parts.ageMs },
    ...(files === undefined ? {} : { files }),
  };
  const onSign = (seen: number): void => void walk.underWay.set(part, seen);
  const report = await walk.parts.change(part, { onSign, signal: walk.abort.signal });
  walk.underWay.delete(part);
  if (report.ok) return report.value;
  stop(walk, report.failure);
  return undefined;
}

function count(walk: Walk, report: OwnershipPartReport | undefined): void {
  for (const one of report?.linked ?? []) {
    if (one.young !== true) remember(walk, one);
    else if (walk.young.size < LINKED_MAX) walk.young.add(one.file);
  }
  walk.seen += report?.seen ?? 0;
  walk.changed += report?.changed ?? 0;
  walk.refused += report?.refused ?? 0;
}

function remember(walk: Walk, { file, name }: LinkedName): void {
  const names = walk.linked.get(file) ?? new Set();
  if (walk.linkedNames >= LINKED_MAX || names.has(name)) return;
  walk.linkedNames += 1;
  walk.linked.set(file, names.add(name));
}

function stop(walk: Walk, failure: Failure): void {
  walk.failure ??= failure;
  walk.abort.abort();
}

function blamed({ changed, unmarked }: Walk, failure: Failure): Failure {
  return changed > 0 || unmarked || failure.code === 'no-longer-wanted'
    ? { ...failure, effect: 'unknown' }
    : failure;
}

function notWanted({ path }: OwnershipRequest): Failure {
  const message = `nobody wants the group of ${path} any more`;
  return { code: 'no-longer-wanted', message, effect: 'unknown' };
}

function reportOf({ seen, changed, refused }: Walk): OwnershipReport {
  return { seen, changed, refused };
}
