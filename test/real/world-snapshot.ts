/** The world as it can be compared: what an outside observer sees of a state root and a driver's pool. */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { parseMountTable } from '../../mount/mount-table.ts';

/** Names that differ from run to run get one name. */
function normal(text: string): string {
  return text
    .replaceAll(/\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+/g, '..GENERATION')
    .replaceAll(/loop\d+/g, 'loopN');
}

/** Sorted lines: mounts, directories and files with modes and contents, records, loop devices. */
export function snapshot(root: string, pool: string): readonly string[] {
  return [
    ...mounts(root),
    ...tree(root, 'pods'),
    ...tree(root, 'plugins/kubernetes.io'),
    ...records(root),
    ...loops(pool),
  ].sort();
}

function mounts(root: string): string[] {
  const table = parseMountTable(readFileSync('/proc/self/mountinfo', 'utf8'));
  if (!table.ok) throw new Error(table.failure.message);
  return table.value.entries
    .filter(({ target }) => target.startsWith(`${root}/`))
    .map(({ target, fsType, root: part, options }) => {
      return `mount ${target.slice(root.length)} ${fsType} ${part} ${options.includes('ro') ? 'ro' : 'rw'}`;
    });
}

const FILE_BYTES_SHOWN = 200;

function tree(root: string, part: string): string[] {
  const lines: string[] = [];
  const walk = (path: string): void => {
    const shown = normal(path.slice(root.length));
    const facts = lstatSync(path, { throwIfNoEntry: false });
    if (facts === undefined) return;
    const mode = (facts.mode & 0o7777).toString(8);
    if (facts.isSymbolicLink()) lines.push(`link ${shown} -> ${normal(readlinkSync(path))}`);
    else if (facts.isDirectory()) {
      lines.push(`directory ${shown} ${mode}`);
      for (const name of readdirSync(path)) if (name !== 'lost+found') walk(join(path, name));
    } else {
      lines.push(
        `file ${shown} ${mode} ${JSON.stringify(readFileSync(path, 'utf8').slice(0, FILE_BYTES_SHOWN))}`,
      );
    }
  };
  walk(join(root, part));
  return lines;
}

function records(root: string): string[] {
  const directory = join(root, 'mooring/records');
  return readdirSync(directory)
    .filter((name) => !name.startsWith('.'))
    .map((name) => {
      const body = readFileSync(join(directory, name), 'utf8').split('\n')[1] ?? '';
      const shape = body
        .replaceAll(/"mountId":\d+/g, '"mountId":N')
        .replaceAll(/"device":"[\d:]+"/g, '"device":"D"');
      return `record ${name} ${shape}`;
    });
}

function loops(pool: string): string[] {
  return readdirSync('/sys/block').flatMap((name) => {
    try {
      const backing = readFileSync(`/sys/block/${name}/loop/backing_file`, 'utf8').trim();
      return backing.startsWith(pool) ? [`loop ${backing.slice(pool.length)}`] : [];
    } catch {
      return [];
    }
  });
}
