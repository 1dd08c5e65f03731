/** What mount(8) is told: on its command line, or of several in a table as of fstab(5). */
import { isFileSystemType } from '../../device/file-system-tools.ts';
import { fail, ok, type Result } from '../../failure.ts';
import type { MountRequest } from '../../host.ts';
import { printable } from '../../text/printable.ts';

const CONTROL = /[\u0000-\u001f\u007f]/;
/** A name or an address, never an option; one of IPv6 is in brackets, so the first `:/` ends it. */
const NFS_SOURCE = /^(?:[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9a-f:.]+\]):\/[^\u0000-\u001f\u007f]*$/;
/** mount(8) reads `LABEL=` and the like as a search for a device. */
const TMPFS_LABEL = /^[A-Za-z0-9][-A-Za-z0-9_.:/]*$/;

/** The argv of one mount. A request that no tool should see is refused: `mount-failed`, effect `none`. */
export function mountArguments({ fsType, source, target, options }: MountRequest): Result<readonly string[]> {
  const wrong = options.find((option) => option === '' || option.includes(',') || CONTROL.test(option));
  if (wrong !== undefined) return refuse(`not a mount option: ${JSON.stringify(wrong)}`);
  if (!isSource(fsType, source)) return refuse(`not a ${fsType} source: ${JSON.stringify(source)}`);
  const kind = fsType === 'bind' ? ['--bind'] : ['-t', fsType];
  const chosen = options.length === 0 ? [] : ['-o', options.join(',')];
  return ok([...kind, ...chosen, '--', source, target]);
}

/** The argv for several, whose table is on standard input and a regular file: mount(8) takes no other. */
export const TABLE_ARGUMENTS = ['--all', '--fstab', '/proc/self/fd/0'] as const;

/** The lines of several, each of which `mountArguments` has accepted. */
export function mountTableOf(requests: readonly MountRequest[]): string {
  return requests.map(tableLineOf).join('');
}

function tableLineOf({ fsType, source, target, options }: MountRequest): string {
  const fields = [source, target, fsType, options.length === 0 ? 'defaults' : options.join(',')];
  return `${fields.map(asField).join(' ')} 0 0\n`;
}

/** A field ends at white space; what it may not have is written as its octal number (fstab(5)). */
function asField(text: string): string {
  return text.replace(/[ \t\n\v\f\r\\]/g, (character) => {
    return `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`;
  });
}

/** What `NFS_SOURCE` has before its path. */
export function serverOf({ source }: MountRequest): string {
  return source.slice(0, source.indexOf(':/'));
}

function isSource(fsType: MountRequest['fsType'], source: string): boolean {
  if (fsType === 'nfs') return NFS_SOURCE.test(source);
  const isPath = fsType === 'bind' || isFileSystemType(fsType);
  return isPath ? source.startsWith('/') && !source.includes('\0') : TMPFS_LABEL.test(source);
}

function refuse(message: string): Result<never> {
  return fail({ code: 'mount-failed', message: printable(message, 256), effect: 'none' });
}
