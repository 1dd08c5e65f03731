/** Before a process is started: where a tool is, what is known of its target, and whether there are descriptors. */
import { accessSync, closeSync, constants, openSync } from 'node:fs';
import { failErrno } from './errno.ts';
import { assert, done, type Result } from './failure.ts';

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

/**
 * Too few descriptors are an answer here, with effect `none`: of them Node.js makes a child without streams, and loses
 * the pipes that it had made, for as long as this process lives. `count`: what the start of one takes at most.
 */
export function refuseWithoutDescriptors(file: string, count: number): Result<void> {
  const spare: number[] = [];
  try {
    while (spare.length < count) spare.push(openSync('/dev/null', constants.O_RDONLY));
    return done;
  } catch (error) {
    return failErrno(error, `cannot start ${file}`, 'none');
  } finally {
    for (const descriptor of spare) closeSync(descriptor);
  }
}

/** Tools follow links, so the way to the target is looked at before one is run. */
export interface WalkedTarget {
  /** The call before this one has walked there: that look is not needed. */
  readonly isWalked?: true;
}

export interface UnmountTarget extends WalkedTarget {
  /** It was proven to be a tmpfs of ours: nothing can keep its umount, so it may share a process with others. */
  readonly isMemory?: true;
  /** It has, or may have, a server, which may be silent: nothing is asked of that, and its helper is not run. */
  readonly isRemote?: true;
}
