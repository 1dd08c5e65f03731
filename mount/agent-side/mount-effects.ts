/** What the host does by tools: mount(8), umount(8) and systemd-notify(1), each in a broker that runs tools. */
import type { HostDeadlines } from './host-deadlines.ts';
import type { ToolBroker } from './tool-broker.ts';
import { createTurns } from '../process/turns.ts';
import { mountArguments, mountTableOf, serverOf, TABLE_ARGUMENTS } from './tools/mount-arguments.ts';
import { createTogether } from './tools/together.ts';
import type { PathCallKind, PathCalls, ToolAnswer } from '../broker/broker-protocol.ts';
import { done, fail, type Failure, ok, type Result } from '../failure.ts';
import type { AbsolutePath, Host, MountRequest } from '../host.ts';
import { endOf, type ToolRequest } from '../tool.ts';
import type { WalkedTarget } from '../path-tool.ts';

type MountEffects = Pick<Host, 'mount' | 'unmount' | 'notify'>;

/** A request that its argv was made of. */
type Checked = MountRequest & { readonly argv: readonly string[] };

export type Ask = <Kind extends PathCallKind>(
  kind: Kind,
  args: PathCalls[Kind]['args'],
) => Promise<PathCalls[Kind]['result']>;

export interface MountTools {
  readonly tools: ToolBroker;
  /** For what may wait for a device, or for nobody knows what. */
  readonly deviceTools: ToolBroker;
  /** For what may wait for a server. */
  readonly remoteTools: ToolBroker;
}

export function createMountEffects(
  { tools, deviceTools, remoteTools }: MountTools,
  ask: Ask,
  deadlines: HostDeadlines,
): MountEffects {
  // One mount.nfs(8) waits for a server that is silent, and not all: the turns of its broker are for other servers.
  const inTurnOfServer = createTurns();
  /** mount(8) and umount(8) resolve links in a target; a target of ours has none. */
  async function refuseLinks(target: AbsolutePath): Promise<Result<void>> {
    const seen = await ask('mountIdOf', { path: target });
    return seen.ok ? done : seen;
  }
  async function act(
    request: ToolRequest,
    code: Failure['code'],
    target: AbsolutePath,
    { isWalked }: WalkedTarget,
    broker: ToolBroker,
  ): Promise<Result<void>> {
    const straight = isWalked === true ? done : await refuseLinks(target);
    return straight.ok ? doneOrFail(request.tool, await broker.run(request), code) : straight;
  }
  const unmountTogether = createTogether(async (targets: readonly AbsolutePath[]) => {
    const report = await tools.run({
      tool: 'umount',
      argv: ['--', ...targets],
      deadlineMs: deadlines.unmount,
    });
    return targets.map(() => report);
  });
  const mountTogether = createTogether((requests: readonly Checked[]) =>
    mountAll(tools, requests, deadlines.mount),
  );
  return {
    mount: async (request) => {
      const argv = mountArguments(request);
      if (!argv.ok) return argv;
      if (request.isWalked === true && isMemory(request)) {
        const report = await mountTogether({ ...request, argv: argv.value });
        return doneOrFail('mount', about('mount', request.target, report), 'mount-failed');
      }
      const tool = { tool: 'mount', argv: argv.value, deadlineMs: deadlines.mount };
      const run = (broker: ToolBroker) => act(tool, 'mount-failed', request.target, request, broker);
      return request.fsType === 'nfs'
        ? inTurnOfServer(serverOf(request), () => run(remoteTools))
        : run(asksNobody(request) ? tools : deviceTools);
    },
    unmount: async (target, walked = {}) => {
      if (walked.isWalked === true && walked.isMemory === true)
        return doneOrFail('umount', about('umount', target, await unmountTogether(target)), 'unmount-failed');
      const plain = walked.isRemote === true ? ['--internal-only', '--no-canonicalize'] : [];
      const request = { tool: 'umount', argv: [...plain, '--', target], deadlineMs: deadlines.unmount };
      // A disk writes what it has before it lets go.
      const broker = walked.isRemote === true ? remoteTools : deviceTools;
      return act(request, 'unmount-failed', target, walked, broker);
    },
    notify: async (state) => {
      const socket = process.env['NOTIFY_SOCKET'];
      if (socket === undefined || socket === '') return done;
      // As the agent, not as the broker: NotifyAccess=main looks at the sender.
      const argv = [`--pid=${process.pid}`, '--', ...state.split('\n').filter((line) => line !== '')];
      const environment = { NOTIFY_SOCKET: socket };
      const request = { tool: 'systemd-notify', argv, deadlineMs: deadlines.notify, environment };
      return doneOrFail(request.tool, await tools.runFirst(request), 'input-output');
    },
  };
}

/** One alone has its own command line, and so the words that people know. */
async function mountAll(
  tools: ToolBroker,
  requests: readonly Checked[],
  deadlineMs: number,
): Promise<readonly ToolAnswer[]> {
  const oneByOne = () =>
    Promise.all(requests.map(({ argv }) => tools.run({ tool: 'mount', argv, deadlineMs })));
  if (requests.length === 1) return oneByOne();
  const inputFile = mountTableOf(requests);
  const report = await tools.run({ tool: 'mount', argv: TABLE_ARGUMENTS, deadlineMs, inputFile });
  // Where no table can be made, no mount(8) has run.
  const isWithoutTable =
    !report.ok && report.failure.code !== 'broker-lost' && report.failure.effect === 'none';
  return isWithoutTable ? oneByOne() : requests.map(() => report);
}

/** Nothing can keep the mount of one: it has neither device nor server. */
function isMemory({ fsType }: MountRequest): boolean {
  return fsType === 'tmpfs' || fsType === 'hugetlbfs';
}

/** A bind gives a second name to what is there, and reads nothing of it. */
function asksNobody(request: MountRequest): boolean {
  return isMemory(request) || request.fsType === 'bind';
}

/** The exit code is a hint, the words behind it are for people: the caller asks the kernel. */
function doneOrFail(tool: string, report: ToolAnswer, code: Failure['code']): Result<void> {
  if (!report.ok) return report;
  const { exitCode, deadlinePassed } = report.value;
  if (exitCode === 0 && !deadlinePassed) return done;
  const message = endOf(tool, report.value);
  return fail({ code: deadlinePassed ? 'deadline-passed' : code, message, effect: 'unknown' });
}

/** What people are shown of a run over several targets: its words about this one. */
function about(tool: string, target: AbsolutePath, report: ToolAnswer): ToolAnswer {
  if (!report.ok) return report;
  const lines = report.value.stderr.split('\n').filter((line) => line.startsWith(`${tool}: ${target}: `));
  return ok({ ...report.value, stderr: lines.join('\n') });
}
