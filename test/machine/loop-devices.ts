/** Loop devices of this machine that have a file, from /sys alone: no hung disk delays a look. */
import { spawnSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';

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

/**
 * Takes its file from a device as it is now, `/dev/loop3`; not once it has lost that, and has another test's. Open, a
 * device keeps its file; the kernel counts `diskseq` up with each file that a device is given or loses.
 */
export function detacherOf(device: string): () => void {
  const turn = turnOf(device);
  return () => {
    const pin = openSync(device, 'r');
    try {
      if (turnOf(device) === turn) spawnSync('losetup', ['--detach', device]);
    } finally {
      closeSync(pin);
    }
  };
}

function turnOf(device: string): string {
  return readFileSync(`/sys/block/${device.slice('/dev/'.length)}/diskseq`, 'utf8');
}
