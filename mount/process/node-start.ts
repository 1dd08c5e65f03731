/**
 * How a process of ours is started under Node.js, so that nobody can come in by its debugger: SIGUSR1 opens one at
 * 127.0.0.1:9229 to every user of the machine, from a moment on when no line of ours has run yet.
 */

/**
 * The debugger can be told where to listen before it can be told to. A link-local address without an interface is one
 * that the kernel never binds (EINVAL). `--disable-sigusr1` is not known to Node.js 20; port numbers begin at 1024.
 */
export const DEAF_NODE_FLAGS = ['--inspect-port=[fe80::1]:1024'] as const;

/** With them Node.js loads code, opens a debugger, tells what passes through it, or writes files. */
const NODE_VARIABLES = ['OPTIONS', 'PATH', 'DEBUG', 'V8_COVERAGE'];

/** The first line of a program that is shipped. Older kernels read 127 bytes of it. */
export const PROGRAM_FIRST_LINE = [
  '#!/usr/bin/env -S',
  ...NODE_VARIABLES.map((name) => `-uNODE_${name}`),
  'node',
  ...DEAF_NODE_FLAGS,
].join(' ');

/** The options that a process was started with, without those that concern its debugger. */
export function withoutDebugger(nodeOptions: readonly string[]): readonly string[] {
  return nodeOptions.filter((option) => !/^--(inspect|debug-port)/.test(option));
}
