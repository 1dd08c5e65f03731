/** What the host does by tools: mount(8), umount(8) and systemd-notify(1), each in the broker that runs tools. */
import { isFileSystemType } from '../device/file-system-tools.ts';
import type { HostDeadlines } from './host-deadlines.ts';
import type { ToolBroker } from './tool-broker.ts';
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

export function createMountEffects(tools: ToolBroker, ask: Ask, deadlines: HostDeadlines): MountEffects {
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
  ): Promise<Result<void>> {
    const straight = isWalked === true ? done : await refuseLinks(target);
    return straight.ok ? runOrFail(tools, request, code) : straight;
  }
  const unmountTogether = createUnmountTogether((targets) =>
    tools.run({ tool: 'umount', argv: ['--', ...targets], deadlineMs: deadlines.unmount }),
  );
  return {
    mount: async (request) => {
      const argv = mountArguments(request);
      if (!argv.ok) return argv;
      return act(
        { tool: 'mount', argv: argv.value, deadlineMs: deadlines.mount },
        'mount-failed',
        request.target,
        request,
      );
    },
    unmount: async (target, walked = {}) => {
      if (walked.isWalked === true && walked.isMemory === true)
        return doneOrFail('umount', about(target, await unmountTogether(target)), 'unmount-failed');
      const request = { tool: 'umount', argv: ['--', target], deadlineMs: deadlines.unmount };
      return act(request, 'unmount-failed', target, walked);
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
/** mount(8) reads `LABEL=` and the like as a search for a device. */
const TMPFS_LABEL = /^[A-Za-z0-9][-A-Za-z0-9_.:/]*$/;

function mountArguments({ fsType, source, target, options }: MountRequest): Result<readonly string[]> {
  const wrong = options.find((option) => option === '' || option.includes(',') || CONTROL.test(option));
  if (wrong !== undefined) return refuse(`not a mount option: ${JSON.stringify(wrong)}`);
  const isPath = fsType === 'bind' || isFileSystemType(fsType);
  const sourceIsGood = isPath ? source.startsWith('/') && !source.includes('\0') : TMPFS_LABEL.test(source);
  if (!sourceIsGood) return refuse(`not a ${fsType} source: ${JSON.stringify(source)}`);
  const kind = fsType === 'bind' ? ['--bind'] : ['-t', fsType];
  const chosen = options.length === 0 ? [] : ['-o', options.join(',')];
  return ok([...kind, ...chosen, '--', source, target]);
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
