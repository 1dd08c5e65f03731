/** Transitions that only tests know. A broker of tests has them beside those of the product. */
import { done, fail, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, below, type FileEntry, type PathFacts } from '../../mount/host.ts';
import { paths } from '../../mount/path-steps.ts';
import { type AnyTransition, type Program, transition, type TransitionArgs } from '../../mount/transition.ts';
import { type FilledMemory, fillMemory, type MemoryPlace } from '../../plugins/pod/memory-mount.ts';

const PLAIN = { mode: 0o640, durable: false };

export interface Furnished {
  readonly names: readonly string[];
  readonly facts: ReadonlyMap<string, PathFacts>;
  readonly content: Uint8Array | undefined;
  readonly link: string;
  readonly nothing: undefined;
}

/** One of nearly every step, and an answer of nearly every form. */
export const furnish = transition<{ path: AbsolutePath; content: Uint8Array }, Furnished>(
  'contract-furnish',
  function* ({ path, content }) {
    const file = below(path, 'file');
    yield* paths.makeDirectory(path, 0o750);
    yield* paths.writeFile(below(path, 'new'), content, PLAIN);
    yield* paths.rename(below(path, 'new'), file);
    yield* paths.makeLink(below(path, 'link'), 'file');
    yield* paths.writeFile(below(path, 'gone'), content, PLAIN);
    yield* paths.removeFile(below(path, 'gone'));
    const names = yield* paths.listDirectory(path, 10);
    const link = yield* paths.readLink(below(path, 'link'));
    const found = yield* paths.inspect(file);
    const read = yield* contentOf(file, path);
    if (!names.ok || !link.ok || !found.ok) return fail(failureIn(names, link, found));
    const facts = new Map([['file', found.value]]);
    return ok({ names: [...names.value].sort(), facts, content: read, link: link.value, nothing: undefined });
  },
);

/** Makes directories in order until one cannot be made; says how many there are. */
export const makeAll = transition<{ path: AbsolutePath; names: readonly string[] }, number>(
  'contract-make-all',
  function* ({ path, names }) {
    for (const [index, name] of names.entries()) {
      const made = yield* paths.makeDirectory(below(path, name), 0o750);
      if (!made.ok) return fail({ ...made.failure, message: `after ${index}`, effect: 'unknown' });
    }
    return ok(names.length);
  },
);

/** The first of the names that is free; what stands in the way of the others is no failure. */
export const makeFirst = transition<{ path: AbsolutePath; names: readonly string[] }, string | undefined>(
  'contract-make-first',
  function* ({ path, names }) {
    for (const name of names) if ((yield* paths.makeDirectory(below(path, name), 0o750)).ok) return ok(name);
    return ok(undefined);
  },
);

/** Reads a number and writes the next one: two at a time would lose one. */
export const countUp = transition<TransitionArgs, number>('contract-count-up', function* ({ path }) {
  const read = yield* contentOf(below(path, 'count'), path);
  const next = Number(new TextDecoder().decode(read)) + 1;
  const written = yield* paths.writeFile(below(path, 'count'), new TextEncoder().encode(String(next)), PLAIN);
  return written.ok ? ok(next) : written;
});

/** For brokers only: a program that is never done. */
export const spin = transition<TransitionArgs, void>('contract-spin', function* ({ path }) {
  yield* paths.makeDirectory(below(path, 'begun'), 0o750);
  for (;;) performance.now();
});

/** For brokers only: steps that are slow, and so many of them. */
export const dawdle = transition<{ path: AbsolutePath; steps: number; stepMs: number }, number>(
  'contract-dawdle',
  function* ({ path, steps, stepMs }) {
    for (let step = 0; step < steps; step += 1) {
      const endMs = performance.now() + stepMs;
      while (performance.now() < endMs);
      yield* paths.inspect(path);
    }
    return ok(steps);
  },
  { changesTheWorld: false },
);

/** For brokers only: a broken promise of the program itself. */
export const stumble = transition<TransitionArgs, void>('contract-stumble', function* ({ path }) {
  yield* paths.makeDirectory(below(path, 'begun'), 0o750);
  if (path !== '/') throw new Error('broken invariant: as the test wants it');
  return done;
});

/** A tmpfs with nothing in it. */
export const fillNothing = transition<MemoryPlace, FilledMemory<undefined>>(
  'contract-fill-nothing',
  (place) =>
    fillMemory(place, function* (): Program<Result<undefined>> {
      yield* paths.inspect(place.path);
      return ok(undefined);
    }),
);

export const CONTRACT_TRANSITIONS: readonly AnyTransition[] = [
  fillNothing,
  furnish,
  makeAll,
  makeFirst,
  countUp,
  spin,
  dawdle,
  stumble,
];

function* contentOf(file: AbsolutePath, directory: AbsolutePath): Program<Uint8Array | undefined> {
  const entries = yield* paths.readDirectoryFiles(directory, { entriesMax: 10, fileBytesMax: 1_000 });
  const isIt = ({ name }: FileEntry): boolean => below(directory, name) === file;
  const content = entries.ok ? entries.value.find(isIt)?.content : undefined;
  return content?.ok === true ? content.value : undefined;
}

function failureIn(
  ...results: readonly ({ ok: true } | { ok: false; failure: Parameters<typeof fail>[0] })[]
) {
  for (const result of results) if (!result.ok) return result.failure;
  throw new Error('one of them has failed');
}
