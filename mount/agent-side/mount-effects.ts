/** What the host does by tools: mount(8), umount(8) and systemd-notify(1), each in the broker that runs tools. */
import { isFileSystemType } from '../device/file-system-tools.ts';
import type { HostDeadlines } from './host-deadlines.ts';
import type { ToolBroker } from './tool-broker.ts';
import { createTurns } from './turns.ts';
import { createUnmountTogether } from './unmount-together.ts';
import type { PathCallKind, PathCalls, ToolAnswer } from '../broker/broker-protocol.ts';
import { done, fail, type Failure, ok, type Result } from '../failure.ts';
import type { AbsolutePath, Host, MountRequest } from '../host.ts';
import { printable } from '../text/printable.ts';
import { endOf, type ToolRequest } from '../tool.ts';
import type { WalkedTarget } from '../path-tool.ts';

type MountEffects = Pick<Host, 'mount' | 'unmount' | 'notify'>;

export type Ask = <Kind extends PathCallKind>(
  kind: Kind,
  args: PathCalls[Kind]['args'],
) => Promise<PathCalls[Kind]['result']>;

export interface MountTools {
  readonly tools: ToolBroker;
  /** For what may wait for a server. */
  readonly remoteTools: ToolBroker;
}

export function createMountEffects(
  { tools, remoteTools }: MountTools,
  ask: Ask,
  deadlines: HostDeadlines,
): MountEffects {
  // One mount.nfs(8) waits for a server that is silent, and not all: its broker has few turns.
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
    broker = tools,
  ): Promise<Result<void>> {
    const straight = isWalked === true ? done : await refuseLinks(target);
    return straight.ok ? runOrFail(broker, request, code) : straight;
  }
  const unmountTogether = createUnmountTogether((targets) =>
    tools.run({ tool: 'umount', argv: ['--', ...targets], deadlineMs: deadlines.unmount }),
  );
  return {
    mount: async (request) => {
      const argv = mountArguments(request);
      if (!argv.ok) return argv;
      const tool = { tool: 'mount', argv: argv.value, deadlineMs: deadlines.mount };
      const run = (broker: ToolBroker) => act(tool, 'mount-failed', request.target, request, broker);
      return request.fsType === 'nfs'
        ? inTurnOfServer(serverOf(request), () => run(remoteTools))
        : run(tools);
    },
    unmount: async (target, walked = {}) => {
      if (walked.isWalked === true && walked.isMemory === true)
        return doneOrFail('umount', about(target, await unmountTogether(target)), 'unmount-failed');
      const plain = walked.isRemote === true ? ['--internal-only', '--no-canonicalize'] : [];
      const request = { tool: 'umount', argv: [...plain, '--', target], deadlineMs: deadlines.unmount };
      const broker = walked.isRemote === true ? remoteTools : tools;
      return act(request, 'unmount-failed', target, walked, broker);
    },
    notify: async (state) => {
      const socket = process.env['NOTIFY_SOCKET'];
      if (socket === undefined || socket === '') return done;
      // As the agent, not as the broker: NotifyAccess=main looks at the sender.
      const argv = [`--pid=${process.pid}`, '--', ...state.split('\n').filter((line) => line !== '')];
      const environment = { NOTIFY_SOCKET: socket };
      return runOrFail(
        tools,
        { tool: 'systemd-notify', argv, deadlineMs: deadlines.notify, environment },
        'input-output',
      );
    },
  };
}

const CONTROL = /[\u0000-\u001f\u007f]/;
/** A name or an address, never an option; one of IPv6 is in brackets, so the first `:/` ends it. */
const NFS_SOURCE = /^(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-f:.]+\]):\/[^\u0000-\u001f\u007f]*$/;
/** mount(8) reads `LABEL=` and the like as a search for a device. */
const TMPFS_LABEL = /^[A-Za-z0-9][-A-Za-z0-9_.:/]*$/;

function mountArguments({ fsType, source, target, options }: MountRequest): Result<readonly string[]> {
  const wrong = options.find((option) => option === '' || option.includes(',') || CONTROL.test(option));
  if (wrong !== undefined) return refuse(`not a mount option: ${JSON.stringify(wrong)}`);
  if (!isSource(fsType, source)) return refuse(`not a ${fsType} source: ${JSON.stringify(source)}`);
  const kind = fsType === 'bind' ? ['--bind'] : ['-t', fsType];
  const chosen = options.length === 0 ? [] : ['-o', options.join(',')];
  return ok([...kind, ...chosen, '--', source, target]);
}

/** What `NFS_SOURCE` has before its path. */
function serverOf({ source }: MountRequest): string {
  return source.slice(0, source.indexOf(':/'));
}

function isSource(fsType: MountRequest['fsType'], source: string): boolean {
  if (fsType === 'nfs') return NFS_SOURCE.test(source);
  const isPath = fsType === 'bind' || isFileSystemType(fsType);
  return isPath ? source.startsWith('/') && !source.includes('\0') : TMPFS_LABEL.test(source);
}

function refuse(message: string): Result<never> {
  return fail({ code: 'mount-failed', message: printable(message, 256), effect: 'none' });
}

/** The exit code is a hint, the words behind it are for people: the caller asks the kernel. */
async function runOrFail(
  tools: ToolBroker,
  request: ToolRequest,
  code: Failure['code'],
): Promise<Result<void>> {
  return doneOrFail(request.tool, await tools.run(request), code);
}

function doneOrFail(tool: string, report: ToolAnswer, code: Failure['code']): Result<void> {
  if (!report.ok) return report;
  const { exitCode, deadlinePassed } = report.value;
  if (exitCode === 0 && !deadlinePassed) return done;
  const message = endOf(tool, report.value);
  return fail({ code: deadlinePassed ? 'deadline-passed' : code, message, effect: 'unknown' });
}

/** What people are shown of a run over several targets: its words about this one. */
function about(target: AbsolutePath, report: ToolAnswer): ToolAnswer {
  if (!report.ok) return report;
  const lines = report.value.stderr.split('\n').filter((line) => line.startsWith(`umount: ${target}: `));
  return ok({ ...report.value, stderr: lines.join('\n') });
}
