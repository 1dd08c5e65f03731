/** The steps that a transition has: each is the call of that name of `Host`, and answers the same. */
import type { Host } from './host.ts';
import type { PathStep, Program } from './transition.ts';

export type PathStepKind =
  | 'inspect'
  | 'makeDirectory'
  | 'removeEmptyDirectory'
  | 'removeTree'
  | 'listDirectory'
  | 'readDirectoryFiles'
  | 'readFile'
  | 'writeFile'
  | 'removeFile'
  | 'rename'
  | 'makeLink'
  | 'readLink'
  | 'mountIdOf'
  | 'mountPlaceOf'
  | 'lookUpMount'
  | 'bindPart'
  | 'readMountTable'
  | 'wallMs'
  | 'random';

export type StepArgs<Kind extends PathStepKind> = Parameters<Host[Kind]>;
export type StepAnswer<Kind extends PathStepKind> = Awaited<ReturnType<Host[Kind]>>;

/** Whoever performs steps has one entry for each. */
export type StepTable = {
  readonly [Kind in PathStepKind]: (...args: StepArgs<Kind>) => StepAnswer<Kind>;
};

function stepOf<Kind extends PathStepKind>(
  kind: Kind,
): (...args: StepArgs<Kind>) => Program<StepAnswer<Kind>> {
  return function* (...args) {
    const asked: PathStep = { kind, args };
    return (yield asked) as StepAnswer<Kind>;
  };
}

/** `yield* paths.inspect(path)` answers what `await host.inspect(path)` does. */
export const paths: {
  readonly [Kind in PathStepKind]: (...args: StepArgs<Kind>) => Program<StepAnswer<Kind>>;
} = {
  inspect: stepOf('inspect'),
  makeDirectory: stepOf('makeDirectory'),
  removeEmptyDirectory: stepOf('removeEmptyDirectory'),
  removeTree: stepOf('removeTree'),
  listDirectory: stepOf('listDirectory'),
  /** No content has a stamp. */
  readDirectoryFiles: stepOf('readDirectoryFiles'),
  readFile: stepOf('readFile'),
  writeFile: stepOf('writeFile'),
  removeFile: stepOf('removeFile'),
  rename: stepOf('rename'),
  makeLink: stepOf('makeLink'),
  readLink: stepOf('readLink'),
  mountIdOf: stepOf('mountIdOf'),
  mountPlaceOf: stepOf('mountPlaceOf'),
  lookUpMount: stepOf('lookUpMount'),
  bindPart: stepOf('bindPart'),
  readMountTable: stepOf('readMountTable'),
  wallMs: stepOf('wallMs'),
  random: stepOf('random'),
};
