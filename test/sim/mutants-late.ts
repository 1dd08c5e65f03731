/** Planted bugs about what comes anew or late: attachments, and the effects of calls that were given up. */
import { ok } from '../../mount/failure.ts';
import type { FileEntry } from '../../mount/host.ts';
import type { ActualVolume } from '../../reconciler/model/actual-state.ts';
import { begin, learn } from '../../reconciler/model/belief-change.ts';
import { isBeside } from '../../reconciler/model/operation.ts';
import { planVolume } from '../../reconciler/model/plan.ts';
import { formatRecord, parseRecord } from '../../reconciler/recovery/record.ts';
import { type Mutant, withHost } from './mutant.ts';
import type { Mutation } from './simulate.ts';
import { ROOT } from './sim-paths.ts';
import { aboutChangedDisks, aboutClock, aboutReplacedAttachments, aboutStragglers } from './stories.ts';

/** Whatever attachment there is now is taken for the one that the volume was set up under. */
const takesAttachmentsByName: Mutation = {
  policy: {
    begin: (known, operation, publication) => ({
      ...begin(known, operation, publication),
      attachmentUid: undefined,
    }),
  },
  plan: aboutReplacedAttachments,
};

function withoutTombstones({ tombstones: _, ...rest }: ActualVolume): ActualVolume {
  return rest;
}

/** The record of a volume that is down is erased, whatever may still come. */
const believesTheLastWord: Mutation = {
  policy: {
    learn: (now, before, operation, outcome) => withoutTombstones(learn(now, before, operation, outcome)),
  },
  plan: aboutStragglers,
};

function forgetful(entry: FileEntry): FileEntry {
  const parsed = entry.content?.ok === true ? parseRecord(entry.content.value) : undefined;
  if (parsed?.ok !== true) return entry;
  const { tombstones: _, ...rest } = parsed.value;
  return { ...entry, content: ok(Buffer.from(formatRecord(rest))) };
}

const forgetsAtRestart: Mutation = {
  ...withHost((host) => ({
    readDirectoryFiles: async (path, reading) => {
      const files = await host.readDirectoryFiles(path, reading);
      return files.ok && path.startsWith(`${ROOT}/mooring/records`) ? ok(files.value.map(forgetful)) : files;
    },
  })),
  plan: aboutStragglers,
};

/** What came late of a volume that stands as something else waits until that is down. */
const waitsForTheOther: Mutation = {
  policy: {
    planVolume: (input) => {
      const { operations, waits } = planVolume(input);
      return { operations: operations.filter((one) => !isBeside(one)), waits };
    },
  },
  plan: aboutChangedDisks,
};

/** Somebody sets it, and what has to last is over, or lasts for years. */
const goesByTheWall: Mutation = { ...withHost((host) => ({ nowMs: () => host.wallMs() })), plan: aboutClock };

export const LATE_MUTANTS: readonly Mutant[] = [
  {
    name: 'takes an attachment that was made anew for the one of before',
    seed: 225,
    caughtBy: ['FN-01'],
    make: () => takesAttachmentsByName,
  },
  {
    name: 'believes an OK of a teardown after a call that was given up',
    caughtBy: ['liveness', 'stability'],
    make: () => believesTheLastWord,
  },
  {
    name: 'forgets at a restart what may still come',
    caughtBy: ['liveness', 'stability'],
    make: () => forgetsAtRestart,
  },
  {
    name: 'goes by the clock on the wall where a time is to last',
    seed: 36,
    caughtBy: ['liveness', 'stability'],
    make: () => goesByTheWall,
  },
  {
    name: 'gives nothing back beside what stands',
    seed: 59,
    caughtBy: ['liveness'],
    make: () => waitsForTheOther,
  },
];
