/** Loop devices of this machine that have a file, from /sys alone: no hung disk delays a look. */
import { readdirSync, readFileSync } from 'node:fs';

export interface AttachedLoopDevice {
  /** `loop3`. */
  readonly name: string;
  /** As the kernel says it: with ` (deleted)` behind it when the file has no name any more. */
  readonly backingFile: string;
}

/** Other tests attach and detach meanwhile: what goes between two reads is left out. */
export function attachedLoopDevices(): readonly AttachedLoopDevice[] {
  return readdirSync('/sys/block').flatMap((name) => {
    const backingFile = name.startsWith('loop') ? backingFileOf(name) : undefined;
    return backingFile === undefined || backingFile === '' ? [] : [{ name, backingFile }];
  });
}

function backingFileOf(name: string): string | undefined {
  try {
    return readFileSync(`/sys/block/${name}/loop/backing_file`, 'utf8').trim();
  } catch (error) {
    // Nothing is attached to it, or it was detached while it was read.
    if (['ENOENT', 'ENODEV'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}
