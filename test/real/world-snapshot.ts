/** The world as it can be compared: what an outside observer sees of a state root and a driver's pool. */
import { closeSync, lstatSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { VolumeRecord } from '../../reconciler/recovery/record.ts';
import { recordsIn } from '../demo/recorded.ts';
import { attachedLoopDevices } from '../machine/loop-devices.ts';
import { parseMountTable } from '../../mount/mount-table.ts';

/** Names that differ from run to run get one name. */
function normal(text: string): string {
  return text
    .replaceAll(/\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+/g, '..GENERATION')
    .replaceAll(/loop\d+/g, 'loopN');
}

/**
 * Sorted lines: mounts; directories and files with groups, modes and contents; devices with their first bytes; records;
 * loop devices of the pool, and those that hold a device for a pod.
 */
export function snapshot(root: string, pool: string): readonly string[] {
  return [
    ...mounts(root),
    ...tree(root, 'pods'),
    ...tree(root, 'plugins/kubernetes.io'),
    ...tree(root, 'plugins/kubernetes.io~local-volume'),
    ...records(root),
    ...loops(pool),
    ...loops(root),
  ].sort();
}

function mounts(root: string): string[] {
  const table = parseMountTable(readFileSync('/proc/self/mountinfo', 'utf8'));
  if (!table.ok) throw new Error(table.failure.message);
  return table.value.entries
    .filter(({ target }) => target.startsWith(`${root}/`))
    .map(({ target, fsType, root: part, options }) => {
      return `mount ${target.slice(root.length)} ${fsType} ${normal(part)} ${options.includes('ro') ? 'ro' : 'rw'}`;
    });
}

const FILE_BYTES_SHOWN = 200;

function tree(root: string, part: string): string[] {
  const lines: string[] = [];
  const walk = (path: string): void => {
    const shown = normal(path.slice(root.length));
    const facts = lstatSync(path, { throwIfNoEntry: false });
    if (facts === undefined) return;
    const mode = `${facts.gid} ${(facts.mode & 0o7777).toString(8)}`;
    if (facts.isSymbolicLink()) lines.push(`link ${shown} -> ${normal(readlinkSync(path))}`);
    else if (facts.isDirectory()) {
      lines.push(`directory ${shown} ${mode}`);
      for (const name of readdirSync(path)) if (name !== 'lost+found') walk(join(path, name));
    } else if (facts.isBlockDevice()) {
      lines.push(`device ${shown} ${mode} ${JSON.stringify(beginningOf(path))}`);
    } else {
      lines.push(
        `file ${shown} ${mode} ${JSON.stringify(readFileSync(path, 'utf8').slice(0, FILE_BYTES_SHOWN))}`,
      );
    }
  };
  walk(join(root, part));
  return lines;
}

function beginningOf(device: string): string {
  const descriptor = openSync(device, 'r');
  const bytes = Buffer.alloc(FILE_BYTES_SHOWN);
  readSync(descriptor, bytes, 0, bytes.length, 0);
  closeSync(descriptor);
  return bytes.toString('latin1').replace(/\0+$/, '');
}

function records(root: string): string[] {
  return [...recordsIn(join(root, 'mooring/records'))].flatMap(([name, record]) => {
    // The record is of a call that a kill cut off: the volume is down, and watched for what may still come.
    if (record.ok && isDown(record.value)) return [];
    const { tombstones: _, ...value } = record.ok ? record.value : { tombstones: undefined };
    const shape = JSON.stringify(record.ok ? value : record.failure)
      .replaceAll(/"mountId":\d+/g, '"mountId":N')
      .replaceAll(/"(device|blockDevice)":"[\d:]+"/g, '"$1":"D"');
    return `record ${name} ${shape}`;
  });
}

function isDown({ attached, staged, publications, tombstones = [] }: VolumeRecord): boolean {
  return attached === 'absent' && staged === 'absent' && publications.length === 0 && tombstones.length > 0;
}

function loops(directory: string): string[] {
  return attachedLoopDevices()
    .filter(({ backingFile }) => backingFile.startsWith(`${directory}/`))
    .map(({ backingFile }) => `loop ${backingFile.slice(directory.length)}`);
}
