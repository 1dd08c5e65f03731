/** A Host that kills its own process at the n-th effect: before it, after it, or while it is under way. */
import type { Host } from '../../mount/host.ts';

export type CrashPoint = 'before' | 'during' | 'after';

/** Methods that change the world. A remote call counts when it goes to a Node or Controller service. */
const EFFECTS = new Set([
  'makeDirectory',
  'removeEmptyDirectory',
  'removeTree',
  'writeFile',
  'removeFile',
  'rename',
  'makeLink',
  'mount',
  'unmount',
]);

export interface CrashPlan {
  readonly point: CrashPoint;
  /** 1 is the first effect; 0 never crashes. */
  readonly effect: number;
}

/**
 * Guarantees: effects are counted in the order in which they begin, and the kill is SIGKILL: no handler, no flush.
 * `report` is told of every effect before it begins.
 */
export function crashingHost<H extends Host>(
  host: H,
  plan: CrashPlan,
  report: (count: number, name: string) => void,
): H {
  let count = 0;
  const die = (): Promise<never> => {
    process.kill(process.pid, 'SIGKILL');
    return new Promise(() => {});
  };
  return new Proxy(host, {
    get(target, name, receiver) {
      const value: unknown = Reflect.get(target, name, receiver);
      if (typeof value !== 'function' || typeof name !== 'string') return value;
      if (!EFFECTS.has(name) && name !== 'call') return value.bind(target);
      return async (...given: unknown[]): Promise<unknown> => {
        const label = name === 'call' ? changingCall(given) : name;
        if (label === undefined) return value.apply(target, given);
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
}

const CHANGING = /^(Node(Stage|Unstage|Publish|Unpublish)Volume|Controller(Publish|Unpublish)Volume)$/;

function changingCall(given: readonly unknown[]): string | undefined {
  const method = (given[0] as { method: { path: string } }).method.path.split('/').pop() ?? '';
  return CHANGING.test(method) ? method : undefined;
}
