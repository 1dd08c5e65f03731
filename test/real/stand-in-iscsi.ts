/**
 * A stand-in of iscsiadm(8) on a kernel without iSCSI, for tests in a mount namespace of their own: it notes how it is
 * called, keeps records as the real one does, and makes of a session a loop device and the entries of sysfs that Linux
 * has. Whether a real target lets anybody in is no business of it.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const HELPERS = '/sbin';
const SCRATCH = '/tmp';
const SYSFS = '/sys/class';
const DISK_BYTES = '40M';
export const IQN = 'iqn.2026-11.example:store';
const OTHER_IQN = 'iqn.2026-11.example:root';
/** What each target asks for. */
export const PASSWORD = 'precious-123456';

/** Each portal has a number, and so has its session. */
const program = (directory: string, disks: string): string => `#!/bin/sh
case "$*" in
*' 10.0.0.'*) number=\${*#* 10.0.0.} number=\${number%%:*} ;;
*' -r '*) number=\${*#* -r } number=\${number%% *} ;;
esac
own=${directory}/$number session=${SYSFS}/iscsi_session/session$number
node=/etc/iscsi/nodes/${IQN}/10.0.0.$number,3260
question=/etc/iscsi/send_targets/10.0.0.$number,3260
printf '%s\\n' "$*" >> $own/calls
new() { mkdir -p "\${1%/*}" && printf '# BEGIN RECORD\\n# END RECORD\\n' > "$1"; }
case "$*" in
*discoverydb*'-o new') new $question/st_config ;;
*--discover) while [ -e $own/silent ]; do sleep 0.05; done; echo "10.0.0.$number:3260,1 ${IQN}" ;;
*discoverydb*'-o delete')
  [ -e $question ] || exit 6
  find $question -type l -exec readlink {} + | xargs -r rm -r
  rm -r $question ;;
*'-o new') new $node ;;
*'-o delete') [ -e $node ] || exit 21; [ ! -e $session ] || exit 15; rm $node ;;
*--login)
  [ ! -e $session ] || exit 15
  grep -qx 'node.session.auth.password = ${PASSWORD}' $node || exit 24
  disk=$(losetup --find --show ${disks}/$number) || exit 9
  echo "$disk" > $own/loop
  made=${SYSFS}/made$number; block=$made/device/target0:0:0/0:0:0:1/block/\${disk#/dev/}
  connection=${SYSFS}/iscsi_connection/connection$number:0
  mkdir -p $block $connection ${SYSFS}/iscsi_session
  echo 10.0.0.$number > $connection/persistent_address; echo 3260 > $connection/persistent_port
  echo ${IQN} > $made/targetname; echo default > $made/ifacename; echo LOGGED_IN > $made/state
  cat /sys/block/\${disk#/dev/}/dev > $block/dev
  mv $made $session ;;
*--logout)
  grep -q "^$(cat $own/loop) " /proc/self/mounts && exit 9
  rm -r $session && losetup --detach "$(cat $own/loop)" ;;
*) echo "not as iscsiadm is called: $*" >&2; exit 7 ;;
esac
`;

/** A target with one disk, its LUN 1. */
export interface StandInTarget {
  /** `10.0.0.<number>` */
  readonly address: string;
  /** Entries that are there while somebody is logged in, and the record of a login. */
  readonly session: string;
  readonly record: string;
  /** How iscsiadm(8) was called, a line each. */
  calls(): readonly string[];
  /** The device of the session that is there, or was there last. */
  device(): string;
  /** Nobody is answered while it is silent. */
  setSilent(isSilent: boolean): void;
  /** An administrator asks the portal for its targets, and gets another one: the records of that. */
  discover(): readonly string[];
}

export interface StandInIscsi {
  /** A new one; the disk is blank. */
  target(number: number): StandInTarget;
  /** Ends the sessions that are left, and takes all away. */
  remove(): void;
}

/** Lays it over /sbin, /etc and /sys/class of this mount namespace. */
export function layIscsi(): StandInIscsi {
  const make = ['-d', `${SCRATCH}/mooring-iscsi-XXXXXX`];
  const directory = execFileSync('mktemp', make, { encoding: 'utf8' }).trim();
  // Where all can see them: whoever asks who has a disk counts a loop device of its size whose file he cannot see.
  const disks = mkdtempSync(join(tmpdir(), 'mooring-iscsi-disks-'));
  const mounted: string[] = [];
  const targets: StandInTarget[] = [];

  function mountOver(target: string, type: string, ...options: readonly string[]): void {
    execFileSync('mount', ['-t', type, ...options, 'iscsi-test', target]);
    mounted.unshift(target);
  }

  function overlay(target: string, name: string): void {
    const [upper = '', work = ''] = ['upper', 'work'].map((part) => join(directory, `${name}-${part}`));
    for (const one of [upper, work]) mkdirSync(one);
    mountOver(target, 'overlay', '-o', `lowerdir=${target},upperdir=${upper},workdir=${work}`);
  }

  // The upper layer of an overlay is on no overlay.
  mountOver(directory, 'tmpfs');
  overlay('/etc', 'etc');
  const helpers = realpathSync(HELPERS);
  overlay(helpers, 'helpers');
  writeFileSync(join(helpers, 'iscsiadm'), program(directory, disks));
  chmodSync(join(helpers, 'iscsiadm'), 0o755);
  mountOver(SYSFS, 'tmpfs');
  return {
    target(number) {
      const target = createTarget(directory, disks, number);
      targets.push(target);
      return target;
    },
    remove() {
      for (const target of targets)
        if (existsSync(target.session)) execFileSync('losetup', ['--detach', target.device()]);
      for (const target of mounted) execFileSync('umount', ['--lazy', target]);
      for (const one of [directory, disks]) rmSync(one, { recursive: true, force: true });
    },
  };
}

function createTarget(directory: string, disks: string, number: number): StandInTarget {
  const own = join(directory, String(number));
  mkdirSync(own);
  execFileSync('truncate', ['--size', DISK_BYTES, join(disks, String(number))]);
  const address = `10.0.0.${number}`;
  return {
    address,
    session: `${SYSFS}/iscsi_session/session${number}`,
    record: `/etc/iscsi/nodes/${IQN}/${address},3260`,
    calls() {
      const file = join(own, 'calls');
      return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
    },
    device: () => readFileSync(join(own, 'loop'), 'utf8').trim(),
    setSilent(isSilent) {
      if (isSilent) writeFileSync(join(own, 'silent'), '');
      else rmSync(join(own, 'silent'));
    },
    discover: () => discoverAt(`${address},3260`),
  };
}

/** As iscsiadm(8) keeps it: what a question has found it links to, and takes along when it is deleted. */
function discoverAt(portal: string): readonly string[] {
  const found = `/etc/iscsi/nodes/${OTHER_IQN}/${portal},1`;
  const question = `/etc/iscsi/send_targets/${portal}`;
  for (const directory of [found, question]) mkdirSync(directory, { recursive: true });
  const records = { node: join(found, 'default'), discovery: join(question, 'st_config') };
  for (const [kind, path] of Object.entries(records))
    writeFileSync(path, `# BEGIN RECORD\n${kind}.startup = automatic\n# END RECORD\n`);
  symlinkSync(found, join(question, `${OTHER_IQN},${portal},1,default`));
  return Object.values(records);
}
