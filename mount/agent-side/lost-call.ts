/** What a path call is answered that no broker has answered. */
import { effectOfLost, type PathCall } from '../broker/broker-protocol.ts';
import { type Effect, type FailureCode, fail, type Result } from '../failure.ts';

/** No broker had it yet. */
export function failUnbegun(call: PathCall, code: FailureCode): Result<never> {
  return failCall(call, code, 'none');
}

/** No broker had it in time: it says nothing of what it is about. `isBehindOthers`: they have the brokers. */
export function failUnasked(call: PathCall, isBehindOthers: boolean): Result<never> {
  const about = aboutOf(call.args);
  const why = isBehindOthers ? 'other calls do not end' : 'no helper process was up, the machine is busy';
  const message = `${nameOf(call)} ${about} had no turn in time: ${why}`;
  return fail({ code: 'deadline-passed', message, effect: 'none', blocker: about, isUnasked: true });
}

/** Its broker has ended under it. */
export function failLost(call: PathCall, code: FailureCode): Result<never> {
  return failCall(call, code, effectOfLost(call));
}

function failCall(call: PathCall, code: FailureCode, effect: Effect): Result<never> {
  const about = aboutOf(call.args);
  const message = `${nameOf(call)} ${about} ${WHAT_HAPPENED[code] ?? 'lost its broker'}`;
  return fail({ code, message, effect, blocker: about });
}

const WHAT_HAPPENED: Partial<Record<FailureCode, string>> = {
  'deadline-passed': 'took too long',
  'no-longer-wanted': 'is not wanted any more',
};

function nameOf(call: PathCall): string {
  return call.kind === 'transition' ? call.args.name : call.kind;
}

function aboutOf(args: PathCall['args']): string {
  if ('path' in args) return args.path;
  if ('target' in args) return args.target;
  if ('device' in args) return args.device;
  if ('places' in args) return `${args.places.length} places`;
  if ('within' in args) return args.within;
  return 'from' in args ? args.from : `inode ${args.inode} of ${args.fileSystem}`;
}
