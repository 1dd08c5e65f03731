/** The SELinux context a volume is mounted with (KEP-1710). */
import type { SeLinuxLabel } from '../../kubernetes/objects/container.ts';

const USER = 'system_u';
/** Files have this role, whatever the role of the process is. */
const FILE_ROLE = 'object_r';
/** What processes in containers may use, whatever their own type is. */
const FILE_TYPE = 'container_file_t';

/**
 * The label of files for processes with this label: user and level are the process's, role and type those of files (as
 * opencontainers/selinux `InitLabels` makes it for the kubelet and the runtimes). Empty without a level: then the
 * runtime draws one that nobody knows beforehand. Empty, too, for containers that have different ones.
 */
export function seLinuxContext(label: SeLinuxLabel | 'different' | undefined): string {
  if (label === 'different' || label?.level === undefined) return '';
  return `${label.user ?? USER}:${FILE_ROLE}:${FILE_TYPE}:${label.level}`;
}
