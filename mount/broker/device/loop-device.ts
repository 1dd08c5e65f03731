/** What a loop device has open, as losetup(8) tells it. */
import { ok, type Result } from '../../failure.ts';
import type { NodeIdentity } from './path-device.ts';
import type { ToolReport, ToolRequest } from '../../tool.ts';

export interface LoopDeviceParts {
  readonly runTool: (request: ToolRequest) => Promise<Result<ToolReport>>;
  readonly deadlineMs: number;
}

/**
 * The inode of the file behind it: it stays what it was, whatever became of the path (LOOP_GET_STATUS64 of loop(4)).
 * Undefined when losetup does not tell, as of one that has just gone. `name` is `loop3`.
 */
export async function inodeBehind(
  { runTool, deadlineMs }: LoopDeviceParts,
  name: string,
): Promise<Result<NodeIdentity | undefined>> {
  const argv = ['--list', '--noheadings', '--output', 'BACK-MAJ:MIN,BACK-INO', `/dev/${name}`];
  const report = await runTool({ tool: 'losetup', argv, deadlineMs });
  if (!report.ok) return report;
  const said = /^\s*([0-9]+:[0-9]+)\s+([0-9]+)\s*$/.exec(report.value.stdout);
  const [, fileSystem, inode] = said ?? [];
  return ok(fileSystem === undefined || inode === undefined ? undefined : { fileSystem, inode });
}
