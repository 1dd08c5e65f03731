/**
 * A stand-in of mount.nfs(8) on a kernel without an NFS client, for tests in a mount namespace of their own: it notes
 * how it was called, and binds the one share that it has. Whether a real server is mounted so is no business of it.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where mount(8) looks for its helpers. */
const HELPERS = '/sbin';
const SCRATCH = '/tmp';
export const NFS_SERVER = 'store.example';
export const NFS_PATH = '/share';
export const NFS_SOURCE = `${NFS_SERVER}:${NFS_PATH}`;

export interface StandInNfs {
  /** What the share has in it; whoever mounts something here gives out that. */
  readonly share: string;
  /** How mount.nfs(8) was called, the words of each call. */
  calls(): readonly (readonly string[])[];
  /** Nobody is answered while it is silent. */
  setSilent(isSilent: boolean): void;
  /** Takes all away, with what was mounted on the share. */
  remove(): void;
}

const program = (directory: string, share: string): string => `#!/bin/sh
printf '%s\\n' "$@" END >> ${directory}/calls
while [ -e ${directory}/silent ]; do sleep 0.05; done
case "$1" in ${NFS_SOURCE}) exec mount --bind ${share} "$2" ;; *) echo "mount.nfs: access denied" >&2; exit 32 ;; esac
`;

/** Lays it over /sbin of this mount namespace. The share is a file system in memory that is called as the source. */
export function layNfs(): StandInNfs {
  const make = ['-d', `${SCRATCH}/mooring-nfs-XXXXXX`];
  const directory = execFileSync('mktemp', make, { encoding: 'utf8' }).trim();
  // The upper layer of an overlay is on no overlay.
  execFileSync('mount', ['-t', 'tmpfs', 'nfs-test', directory]);
  const [upper, work, share] = ['upper', 'work', 'share'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  for (const one of [upper, work, share]) mkdirSync(one);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=0755', NFS_SOURCE, share]);
  writeFileSync(join(upper, 'mount.nfs'), program(directory, share));
  chmodSync(join(upper, 'mount.nfs'), 0o755);
  const helpers = realpathSync(HELPERS);
  const layers = `lowerdir=${helpers},upperdir=${upper},workdir=${work}`;
  execFileSync('mount', ['-t', 'overlay', '-o', layers, 'helpers', helpers]);
  return {
    share,
    calls() {
      const file = join(directory, 'calls');
      if (!existsSync(file)) return [];
      const texts = readFileSync(file, 'utf8').split('END\n').slice(0, -1);
      return texts.map((text) => text.trimEnd().split('\n'));
    },
    setSilent(isSilent) {
      if (isSilent) writeFileSync(join(directory, 'silent'), '');
      else rmSync(join(directory, 'silent'));
    },
    remove() {
      for (const target of [helpers, share, directory]) execFileSync('umount', ['--lazy', target]);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
