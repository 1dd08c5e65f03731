/** How large this machine is, as programs that fill it want to know. */
import { statfsSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import type { AbsolutePath } from '../host.ts';

export interface MachineSize {
  readonly processors: number;
  readonly memoryBytes: bigint;
  /** The size of the file system that the directory is in; undefined when that cannot be told. */
  readonly diskBytes: bigint | undefined;
}

/** Waits for that file system: only for a directory that this process has been in before. */
export function machineSize(directory: AbsolutePath): MachineSize {
  return {
    processors: cpus().length,
    memoryBytes: BigInt(totalmem()),
    diskBytes: diskBytes(directory),
  };
}

function diskBytes(directory: AbsolutePath): bigint | undefined {
  try {
    const { blocks, bsize } = statfsSync(directory, { bigint: true });
    return blocks * bsize;
  } catch {
    return undefined;
  }
}
