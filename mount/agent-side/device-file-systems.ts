/** File systems on block devices, by tools in the broker that runs tools, and by bytes in one that reads paths. */
import type { DeviceFileSystems } from '../block-devices.ts';
import {
  checkCall,
  checked,
  contentIn,
  fullCheckCall,
  growCall,
  growsMounted,
  makeCall,
  probeCall,
  readAnewCall,
  type FileSystemType,
  type ToolCall,
  WRITE_MS_MAX,
} from '../device/file-system-tools.ts';
import { done, type Failure, fail, ok, type Result } from '../failure.ts';
import type { AbsolutePath } from '../host.ts';
import { endOf, type ToolReport, type ToolRequest } from '../tool.ts';
import type { ToolAnswer } from '../broker/broker-protocol.ts';

export interface DeviceFileSystemsParts {
  readonly runTool: (request: ToolRequest) => Promise<ToolAnswer>;
  readonly proveBlank: (path: AbsolutePath) => Promise<Result<void>>;
  readonly isDeviceChangeable: (path: AbsolutePath) => Promise<Result<boolean>>;
}

type End = Omit<Failure, 'message'>;

const BROKEN: End = { code: 'mount-failed', effect: 'unknown' };
const READ_ANEW_MS = 60_000;
const PROBE_MS = 60_000;

export function createDeviceFileSystems(parts: DeviceFileSystemsParts): DeviceFileSystems {
  async function run([tool, ...argv]: ToolCall, deadlineMs: number): Promise<Result<ToolReport>> {
    const report = await parts.runTool({ tool, argv, deadlineMs });
    if (!report.ok || !report.value.deadlinePassed) return report;
    return fail({ code: 'deadline-passed', message: endOf(tool, report.value), effect: 'unknown' });
  }

  /** One that has ended by itself may have refused; one that was ended may have left anything. */
  async function runWell(call: ToolCall, deadlineMs: number, refusal: End = BROKEN): Promise<Result<void>> {
    const report = await run(call, deadlineMs);
    if (!report.ok || report.value.exitCode === 0) return report.ok ? done : report;
    const end = report.value.exitCode === undefined ? BROKEN : refusal;
    return fail({ ...end, message: endOf(call[0], report.value) });
  }

  /** What another machine has written to the disk since it was read here is seen by the proof. */
  async function proveBlank(device: AbsolutePath): Promise<Result<void>> {
    const refusal: End = { code: 'input-output', effect: 'none', blocker: device };
    const anew = await runWell(readAnewCall(device), READ_ANEW_MS, refusal);
    return anew.ok ? parts.proveBlank(device) : fail({ ...anew.failure, effect: 'none' });
  }

  async function check(device: AbsolutePath, type: FileSystemType): Promise<Result<void>> {
    const call = checkCall(type, device);
    if (call === undefined) return done;
    const ours = await parts.isDeviceChangeable(device);
    if (!ours.ok || !ours.value) return ours.ok ? done : ours;
    const report = await run(call, WRITE_MS_MAX);
    if (!report.ok) return report;
    const found = checked(report.value.exitCode);
    if (found === 'good') return done;
    const because = endOf('e2fsck', report.value);
    if (found === 'unfinished')
      return fail({ code: 'mount-failed', message: because, effect: 'unknown', blocker: device });
    const message = `the file system needs a person: run e2fsck ${device}; ${because}`;
    return fail({ code: 'device-content', message, effect: 'unknown', blocker: device });
  }

  return {
    async readDeviceContent(device) {
      const report = await run(probeCall(device), PROBE_MS);
      if (!report.ok) return fail({ ...report.failure, effect: 'none' });
      const { exitCode, stdout } = report.value;
      return ok(contentIn({ exitCode, stdout, complaint: endOf('blkid', report.value) }));
    },
    proveBlank,
    async makeFileSystem(device, type) {
      const blank = await proveBlank(device);
      return blank.ok ? runWell(makeCall(type, device), WRITE_MS_MAX) : blank;
    },
    checkFileSystem: check,
    async growFileSystem({ device, type, mountPoint }) {
      const call = growCall(type, device, mountPoint ?? '');
      const grow = () =>
        runWell(call, WRITE_MS_MAX, { code: 'expand-infeasible', effect: 'none', blocker: device });
      if (growsMounted(type)) return mountPoint === undefined ? done : grow();
      const ours = await parts.isDeviceChangeable(device);
      if (!ours.ok || !ours.value) return ours.ok ? done : ours;
      const grown = await grow();
      if (grown.ok) return grown;
      const looked = await run(fullCheckCall(device), WRITE_MS_MAX);
      if (!looked.ok) return looked;
      const again = await grow();
      if (again.ok || again.failure.effect !== 'none') return again;
      // Refused half way it may be broken.
      const whole = await check(device, type);
      return whole.ok ? again : whole;
    },
  };
}
