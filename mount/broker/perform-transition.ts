/** One transition from its first step to its last, without a pause. Path brokers only. */
import { removeTree } from './file/file-tree.ts';
import { failErrno } from '../errno.ts';
import { assert, type Result } from '../failure.ts';
import { inspect } from './file/path-facts.ts';
import { listDirectory, readDirectoryFiles } from './file/directory-reading.ts';
import { makeDirectory, removeEmptyDirectory } from './file/directory-effects.ts';
import { makeLink, readLink, removeFile, rename } from './file/file-effects.ts';
import { readFile } from './file/file-reading.ts';
import { writeFile } from './file/file-writing.ts';
import { bindPart } from './part/part-bind.ts';
import { forgetWalked, keepWalked } from './path/path-walk.ts';
import { lookUpMount, mountIdOfPath, mountPlaceOf, readMountTable } from './path/mount-lookup.ts';
import { aboutPath } from '../mount-lines.ts';
import type { PathStepKind, StepTable } from '../path-steps.ts';
import type { AnyTransition, PathStep } from '../transition.ts';

/** The transitions that a broker knows, by name. */
export type Transitions = ReadonlyMap<string, AnyTransition>;

/** No file is that old: nothing gets a stamp. */
const NO_STAMP_AGE_MS = Number.MAX_SAFE_INTEGER;

const STEPS: StepTable = {
  inspect,
  makeDirectory,
  removeEmptyDirectory,
  removeTree,
  listDirectory,
  readDirectoryFiles: (path, reading) => readDirectoryFiles(path, reading, NO_STAMP_AGE_MS),
  readFile,
  writeFile,
  removeFile,
  rename,
  makeLink,
  readLink,
  mountIdOf: mountIdOfPath,
  mountPlaceOf,
  lookUpMount,
  bindPart,
  readMountTable: (about) => readMountTable(aboutPath(about)),
  wallMs: () => Date.now(),
  random: () => Math.random(),
};

/** The steps after which the world may be another one. */
const CHANGING: ReadonlySet<string> = new Set([
  'makeDirectory',
  'removeEmptyDirectory',
  'removeTree',
  'writeFile',
  'removeFile',
  'rename',
  'makeLink',
  'bindPart',
] satisfies readonly PathStepKind[]);

/** Each step is a sign of life: what is slow is not what hangs. A transition that is not known is a broken promise. */
export function performTransition(
  transitions: Transitions,
  { name, input }: { readonly name: string; readonly input: unknown },
  sign: (seen: number) => void,
): Result<unknown> {
  const transition = transitions.get(name);
  assert(transition !== undefined, `the broker knows the transition ${name}`);
  const program = transition.program(input as never);
  return keepWalked(() => {
    let next = program.next();
    for (let steps = 1; next.done !== true; steps += 1) {
      next = program.next(performStep(next.value));
      sign(steps);
    }
    return next.value;
  });
}

/** An error that no step expected is the failure of that step, and the program goes on with it. */
function performStep({ kind, args }: PathStep): unknown {
  const step = (STEPS as Readonly<Record<string, ((...args: never) => unknown) | undefined>>)[kind];
  assert(step !== undefined, `a transition has no step ${kind}`);
  try {
    return step(...(args as never));
  } catch (error) {
    return failErrno(error, kind, CHANGING.has(kind) ? 'unknown' : 'none');
  } finally {
    if (kind === 'bindPart') forgetWalked();
  }
}
