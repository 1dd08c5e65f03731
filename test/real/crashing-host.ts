/** A Host that kills its own process at the n-th effect: before it, after it, or while it is under way. */
import { lstatSync, readdirSync } from 'node:fs';
import type { Host } from '../../mount/host.ts';
import { performStepwise } from '../perform-stepwise.ts';

export type CrashPoint = 'before' | 'during' | 'after';

/** Methods that change the world. A remote call counts when it changes a volume. */
const EFFECTS = new Set([
  'makeDirectory',
  'removeEmptyDirectory',
  'removeTree',
  'writeFile',
  'overwriteFile',
  'removeFile',
  'rename',
  'makeLink',
  'makeFileSystem',
  'checkFileSystem',
  'growFileSystem',
  'mount',
  'unmount',
  'holdDevice',
  'releaseDevice',
  'changeOwnership',
  'logInToIscsi',
  'logOutOfIscsi',
]);

export interface CrashPlan {
  readonly point: CrashPoint;
  /** 1 is the first effect; 0 never crashes. */
  readonly effect: number;
}

export interface CrashingHost<H extends Host> {
  readonly host: H;
  /** Another crash point; effects are counted from 1 again. */
  plan(next: CrashPlan): void;
}

/**
 * Guarantees: effects are counted in the order in which they begin, and the kill is SIGKILL: no handler, no flush. What
 * finds that there is nothing to do is no effect: a crash beside it is one beside its neighbours.
 * A transition is done step by step, so that a crash can come between any two.
 * `report` is told of every effect before it begins.
 */
export function crashingHost<H extends Host>(
  host: H,
  first: CrashPlan,
  report: (count: number, name: string) => void,
): CrashingHost<H> {
  let plan = first;
  let count = 0;
  const die = (): Promise<never> => {
    process.kill(process.pid, 'SIGKILL');
    return new Promise(() => {});
  };
  const crashing = new Proxy(host, {
    get(target, name, receiver) {
      if (name === 'perform') return stepwise(receiver);
      const value: unknown = Reflect.get(target, name, receiver);
      if (typeof value !== 'function' || typeof name !== 'string') return value;
      if (!EFFECTS.has(name) && name !== 'call') return value.bind(target);
      return async (...given: unknown[]): Promise<unknown> => {
        const label = name === 'call' ? changingCall(given) : name;
        if (label === undefined || changesNothing(name, given)) return value.apply(target, given);
        count += 1;
        const mine = count === plan.effect;
        report(count, label);
        if (mine && plan.point === 'before') return die();
        const running: unknown = value.apply(target, given);
        if (mine && plan.point === 'during') return new Promise(() => setImmediate(die));
        const answer = await running;
        return mine && plan.point === 'after' ? die() : answer;
      };
    },
  });
  return {
    host: crashing,
    plan(next) {
      plan = next;
      count = 0;
    },
  };
}

function stepwise(host: Host): Host['perform'] {
  return (transition, args) => performStepwise(host, transition, args);
}

/** Removes what is not there or is in use, or makes the directory that is there. */
function changesNothing(name: string, [path, mode]: readonly unknown[]): boolean {
  if (typeof path !== 'string') return false;
  const facts = lstatSync(path, { throwIfNoEntry: false });
  switch (name) {
    case 'removeFile':
    case 'removeTree':
      return facts === undefined;
    case 'removeEmptyDirectory':
      return facts?.isDirectory() !== true || !isEmpty(path);
    case 'makeDirectory':
      return facts?.isDirectory() === true && (facts.mode & 0o7777) === mode;
    default:
      return false;
  }
}

/** False for one that has just been removed by another. */
function isEmpty(directory: string): boolean {
  try {
    return readdirSync(directory).length === 0;
  } catch {
    return false;
  }
}

const CHANGING = /^(Node(Stage|Unstage|Publish|Unpublish|Expand)Volume|Controller(Publish|Unpublish)Volume)$/;

function changingCall(given: readonly unknown[]): string | undefined {
  const method = (given[0] as { method: { path: string } }).method.path.split('/').pop() ?? '';
  return CHANGING.test(method) ? method : undefined;
}
