/** What is said to people of an obstacle, a quarantine, an expansion, a driver's word: one sentence each. Pure. */
import { OUT_OF_SERVICE } from '../../kubernetes/objects/read-object.ts';
import { spanText } from '../../mount/text/duration.ts';
import { sizeText } from '../../mount/text/size-text.ts';
import type {
  ExpansionState,
  HealthStatus,
  LateEffectStatus,
  QuarantineStatus,
  Reason,
  VolumeStatus,
} from './volume-status.ts';
import type {
  DetachClockStatus,
  MassRemovalStatus,
  ReplacedStatus,
  VanishedStatus,
} from './status-document.ts';

/** `stage failed 3 times (driver-busy) for 41s: …; blocked by …; next try in 12s`. */
export function reasonSentence(reason: Reason, driver: string | null): string {
  const since = reason.forMs === null ? '' : ` for ${spanText(reason.forMs)}`;
  const blocker = blockerOf(reason);
  const verb = reason.operation ?? 'the next step';
  switch (reason.kind) {
    case 'running':
      return `${verb} has been running${since}${stepClause(reason)}${triesBefore(reason)}`;
    case 'waiting-retry': {
      // Nothing was tried: it is looked again and again.
      if (reason.code === 'volume-held') return `${verb} is held back${since}: ${reason.message}${blocker}`;
      const failed = `${verb} failed ${times(reason.attempts)} (${reason.code})`;
      return `${failed}${since}: ${reason.message}${blocker}; ${nextTry(reason)}`;
    }
    case 'waiting-change':
      return `${verb} failed (${reason.code})${since}: ${reason.message}${blocker}; ${nextChange(reason)}`;
    case 'waiting-driver':
      return (
        `waits${since} for driver ${driver ?? reason.blocker ?? ''} to register on this node; ` +
        'it goes on by itself as soon as it does'
      );
    case 'waiting-turn':
      return `${verb} waits${since} for its turn: ${reason.message}${blocker}${triesBefore(reason)}`;
    case 'blocked':
      return blockedSentence(reason, since, blocker);
    case 'gate-closed':
    case 'frozen':
      return `${verb} is held back${since}: ${reason.message}${blocker}`;
    case 'quarantined':
      return `${verb} is held back${since}: the volume is in quarantine`;
  }
}

/** What it is doing, since when, and that it takes too long. */
function stepClause({ progress, step, forMs }: Reason): string {
  const overdue = step?.overdue === true ? '; overdue' : '';
  if (progress !== null) return `: ${progress}${overdue}`;
  if (step === null) return '';
  const forSpan = spanText(step.forMs);
  switch (step.kind) {
    case 'called': {
      const deadline = step.deadlineMs === null ? '' : `, deadline ${spanText(step.deadlineMs)}`;
      return `: the driver has not answered ${step.of ?? 'its call'} for ${forSpan}${deadline}${overdue}`;
    }
    case 'verifying': {
      const answered = `the driver has answered ${step.of ?? 'its call'}`;
      return `: ${answered}, and the kernel is being asked for ${forSpan}${overdue}`;
    }
    case 'recording':
      return `: its record is being written for ${forSpan}${overdue}`;
    case 'working':
      // The whole of it: nothing more is known than that it runs.
      return step.forMs === forMs && overdue === ''
        ? ''
        : `: on this machine itself for ${forSpan}${overdue}`;
    case 'queued':
      return '';
  }
}

/** Told while it is tried again, too: a retry may take long, and says nothing of its own. */
function triesBefore({ attempts, lastFailure }: Reason): string {
  if (lastFailure === null) return '';
  const { code, message } = lastFailure;
  return `; before that it failed ${times(attempts)} (${code}): ${message}${blockerOf(lastFailure)}`;
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

/** Nothing when the message names it already. */
function blockerOf({ message, blocker }: Pick<Reason, 'message' | 'blocker'>): string {
  return blocker === null || blocker === '' || message.includes(blocker) ? '' : `, blocked by ${blocker}`;
}

function blockedSentence({ code, message, ...reason }: Reason, since: string, blocker: string): string {
  const then = reason.blocker === null ? 'after that' : 'when that pod has let go of it';
  return code === 'volume-in-use'
    ? `waits${since} (${code}): ${message}${blocker}; it goes on by itself ${then}`
    : `cannot be set up${since} (${code}): ${message}${blocker}; it goes on by itself when that is put right`;
}

/** The cluster is listened to, and tells when it has done its part. */
function nextChange({ code }: Reason): string {
  return code === 'not-attached' || code === 'in-use-unreported'
    ? 'it goes on by itself when that has changed'
    : 'it is not tried again before the wish or the driver changes';
}

function nextTry({ nextRetryInMs }: Reason): string {
  if (nextRetryInMs === null) return 'no next try is planned';
  return nextRetryInMs === 0 ? 'the next try is due now' : `next try in ${spanText(nextRetryInMs)}`;
}

const QUARANTINE_BECAUSE: Readonly<Record<QuarantineStatus['reason'], string>> = {
  'attachment-lost': 'its attachment was taken away while this node had it',
  'attachment-replaced': 'its attachment was deleted and made anew while this node had it',
  'node-out-of-service': `this node is marked ${OUT_OF_SERVICE}`,
  operator: 'an operator put it there',
};

/** Why it is in quarantine, and what has to happen before it leaves; undefined when it is not. */
export function quarantineSentence(volume: VolumeStatus): string | undefined {
  const { quarantine } = volume;
  if (quarantine === null) return undefined;
  const { reason, since } = quarantine;
  const began = since === null ? '' : ` since ${since}`;
  return `in quarantine${began} (${reason}), because ${QUARANTINE_BECAUSE[reason]}; ${nextOf(volume, quarantine)}`;
}

const NAMES_MAX = 3;

function nextOf(
  { publishedTo, rungs }: VolumeStatus,
  { since, verified, standing }: QuarantineStatus,
): string {
  const end = standing ? ', and the wish must no longer say so before it leaves' : '';
  if (publishedTo.length > 0) {
    const more = publishedTo.length > NAMES_MAX ? ` and ${publishedTo.length - NAMES_MAX} more` : '';
    return `it waits to be unpublished from ${publishedTo.slice(0, NAMES_MAX).join(', ')}${more}${end}`;
  }
  if (rungs.staged === 'present' || rungs.staged === 'unsure') return `it waits to be unstaged${end}`;
  if (since === null) return 'nothing of it is here, and nothing is set up while the wish says so';
  if (!verified) return `it waits for proof that nobody on this machine uses its devices any more${end}`;
  return standing
    ? 'it was proven clean, and leaves when the wish no longer says so'
    : 'it was proven clean, and leaves now';
}

/** Tells what its driver, or its file system where it has none, was asked and has not said; undefined when it has. */
export function questionSentence({ question, statistics, driver }: VolumeStatus): string | undefined {
  if (question === null) return undefined;
  const who = driver === null ? 'its file system' : `driver ${driver}`;
  const { unansweredSince, unansweredForMs, nextAskInMs, failure } = question;
  if (unansweredSince === null) {
    return failure === null
      ? undefined
      : `${who} could not say how full it is (${failure.code}): ${failure.message}; it is asked again in its turn`;
  }
  const known =
    statistics === null ? 'nothing is known' : `what is known is ${spanText(statistics.ageMs)} old`;
  const next =
    nextAskInMs === null
      ? 'it is asked again when that question has ended'
      : `it is asked again in ${spanText(nextAskInMs)}`;
  const owed = `${who} has not answered since ${unansweredSince} (${spanText(unansweredForMs ?? 0)}) how it is`;
  return `${owed}; ${known}, and ${next}`;
}

const EXPANSION: Readonly<
  Record<Exclude<ExpansionState, 'none' | 'claim-larger'>, (message: string) => string>
> = {
  pending: (message) => `it is to be grown${message}`,
  'in-progress': () => 'it is being grown',
  held: (message) => `it is not grown: ${message}`,
  infeasible: (message) => `the driver refused for good${message}; it is not tried again to this size`,
  'in-use': (message) =>
    `the driver refused while it is used${message}; it is tried again when no pod has it`,
};

/** Why it is not as large as it is to be; undefined when it is, or nobody knows. */
export function expansionSentence({ size, expansion }: VolumeStatus): string | undefined {
  const { state, message } = expansion;
  if (state === 'none') return undefined;
  if (state === 'claim-larger')
    return `${message}; it is grown when its storage was, and the PersistentVolume says so`;
  const [from, to] = [size.current, size.wanted].map((one) => (one === null ? 'less' : sizeText(one)));
  const told = state === 'held' ? (message ?? '') : message === null ? '' : ` (${message})`;
  return `it has ${from} of ${to}: ${EXPANSION[state](told)}`;
}

/** That it was set up otherwise than it is wanted now; undefined when it was not. */
export function changedSentence({ changed }: VolumeStatus): string | undefined {
  if (changed.length === 0) return undefined;
  return (
    `it stands as it was set up, and now another ${changed.join(', ')} is wanted: ` +
    'that takes effect once its pods have let go of it and come back'
  );
}

/** What may still come of a call that was given up. */
export function lateEffectSentence({ operation, pod, until }: LateEffectStatus): string {
  const where = pod === null ? '' : ` for pod ${pod}`;
  const long = until === null ? '' : ` until ${until}`;
  return (
    `${operation}${where} was given up without an answer and may still take effect${long}: ` +
    'what comes is given back to the driver, and no pod waits for it'
  );
}

/** Why pods are still there that their source does not show any more. */
export function massRemovalSentence({ pods, believedInMs }: MassRemovalStatus, podsOfNode: number): string {
  return (
    `${pods.length} of ${podsOfNode} pods vanished at once: what is theirs is kept for ` +
    `${spanText(believedInMs)} more, in case that is a mistake, and then taken down unless they are back`
  );
}

/** Why pods of which no manifest tells are still there, and how to end it; `unknown`: what cannot be read now. */
export function vanishedSentence({ pods, believedInMs }: VanishedStatus, unknown: readonly string[]): string {
  const whose = pods.length === 1 ? 'the manifest of 1 pod' : `the manifests of ${pods.length} pods`;
  return (
    `${whose} vanished while nobody looked: what is theirs is kept ${keptSpan(believedInMs, unknown)}, in case that ` +
    'is a mistake, and then taken down unless they are back; "mooring forget" says that they are gone'
  );
}

/** How long what vanished while nobody looked is kept: until its time is over, and everything can be read. */
export function keptSpan(believedInMs: number, [first, ...others]: readonly string[]): string {
  const span = `for ${spanText(believedInMs)} more`;
  if (first === undefined) return span;
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  const asLong = `as long as ${first}${more} cannot be read`;
  return believedInMs === 0 ? asLong : `${span}, and ${asLong}`;
}

/** Why nothing of the manifests is read, and how to end it. */
export function replacedSentence({ directory, was, is, since }: ReplacedStatus): string {
  return (
    `another directory has been in the place of ${directory} since ${since} (${is}; it was ${was}): nothing of it is ` +
    'read, nothing is taken down and nothing new is set up until the old one is back, or until ' +
    '"mooring manifests accept" says that this is the right one'
  );
}

/** Since when the Node has not been Ready. */
export function unreadyClause({ ready, since, outOfService }: DetachClockStatus): string {
  const marked = outOfService ? `, and it is marked ${OUT_OF_SERVICE}` : '';
  return `this node has not been Ready${since === null ? '' : ` since ${since}`} (${ready})${marked}`;
}

/** What has to happen before the cluster takes volumes of this node by force, and what of it has. */
export function unreadySentence(clock: DetachClockStatus): string {
  const count = (...states: readonly string[]): number =>
    clock.pods.filter(({ state }) => states.includes(state)).length;
  return (
    `${unreadyClause(clock)}: a volume is detached by force ${forceClause(clock)} after its pods are gone from the ` +
    `cluster; ${count('there', 'staying')} are there, ${count('leaving')} marked for deletion, ${count('ended')} gone`
  );
}

export function forceClause({ outOfService }: Pick<DetachClockStatus, 'outOfService'>): string {
  return outOfService ? 'at once' : `6 minutes (at once, if the node is marked ${OUT_OF_SERVICE})`;
}

/** As the driver's word, which may be wrong, or as the kernel's, or as what was measured here. */
export function healthSentence(health: HealthStatus, driver: string | null): string {
  const who = {
    kernel: 'the kernel says that it is',
    agent: 'it is',
    driver: `driver ${driver ?? ''} says that it is`,
  };
  return `${who[health.saidBy ?? 'driver']} ${healthText(health)}`;
}

export function healthText({ status, reason, message }: HealthStatus): string {
  return `${status}${reason === '' ? '' : ` (${reason})`}${message === '' ? '' : `: ${message}`}`;
}
