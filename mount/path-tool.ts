/** Where a system tool is. */
import { accessSync, constants } from 'node:fs';
import { assert } from './failure.ts';

/** The only places where a tool is looked for, and the PATH it gets. */
export const TOOL_DIRECTORIES = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'] as const;
const TOOL_NAME = /^[A-Za-z0-9][-A-Za-z0-9._+]*$/;

/** The absolute path of a tool, or undefined when none of the system directories has it. */
export function findTool(name: string): string | undefined {
  assert(TOOL_NAME.test(name), `a tool has a bare name: ${JSON.stringify(name)}`);
  return TOOL_DIRECTORIES.map((directory) => `${directory}/${name}`).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
