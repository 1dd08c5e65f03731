/** A root file system for containers that is made of what this machine has: a shell and its libraries. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

const TOOLS = ['sh', 'cat', 'ls', 'sleep', 'touch'];

/** Below `root`, which is made. */
export function makeSmallRoot(root: string): void {
  for (const name of ['bin', 'proc', 'sys', 'dev', 'etc', 'tmp'])
    mkdirSync(join(root, name), { recursive: true });
  const files = new Set<string>();
  for (const tool of TOOLS) {
    const program = `/bin/${tool}`;
    cpSync(program, join(root, program), { dereference: true });
    for (const [library] of execFileSync('ldd', [program], { encoding: 'utf8' }).matchAll(/\/\S+/g))
      files.add(library);
  }
  for (const file of files) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    cpSync(file, join(root, file), { dereference: true });
  }
}
