/**
 * Reads the layout and remembers whether anything could not be read: missing is an answer, unreadable is not, and what
 * somebody has mounted over one of our directories is not ours to read.
 */
import { nameBegun } from '../../mount/temporary-file.ts';
import type { Failure } from '../../mount/failure.ts';
import { type Ground, strangerFailure } from '../../mount/ground.ts';
import { type AbsolutePath, below, type Host, parentOf } from '../../mount/host.ts';
import type { MountTable } from '../../mount/mount-table.ts';
import { readVolumeData } from '../../plugins/layout/volume-data.ts';
import { namesVolume, type VolumeDataOwner } from '../../plugins/layout/volume-data-text.ts';
import type { UnreadPlace } from './unattributed-mounts.ts';

const ENTRIES_MAX = 100_000;

export interface DiskReader {
  /** Sorted, without those that begin with a dot; empty when the directory is missing or cannot be read. */
  names(directory: AbsolutePath): Promise<readonly string[]>;
  /** As `names`, with what a crash in the making of a file left: `.<name>.tmp` counts as `<name>`. */
  namesBegun(directory: AbsolutePath): Promise<readonly string[]>;
  exists(path: AbsolutePath): Promise<boolean>;
  /** `nothing`: missing, empty or damaged, as after a power cut (k/k#108217). `unknown`: it could not be read now. */
  volData(directory: AbsolutePath): Promise<VolumeDataOwner | 'nothing' | 'unknown'>;
  /** False once anything could not be read, or is hidden. */
  complete(): boolean;
  /** Directories and files that could not be looked at, each with its path as blocker. */
  unlisted(): readonly Failure[];
  /** As `unlisted`: the directories whose vol_data.json could not be read. */
  unreadPapers(): readonly UnreadPaper[];
  /** What lies under somebody's mount, each once: nothing of it was read, nor taken for absent. */
  hidden(): readonly UnreadPlace[];
  /** Somebody mounted over it: it counts as hidden. */
  hide(place: UnreadPlace): void;
  /** Unlisted and without papers, each with what it is about. */
  unreadDirectories(): readonly UnreadPlace[];
}

export interface UnreadPaper {
  readonly directory: AbsolutePath;
  readonly failure: Failure;
}

/** Who lies over a directory, or over one above it; undefined: nobody. */
export type Cover = (directory: AbsolutePath) => Failure | undefined;

export function coverIn(table: MountTable, ground: Pick<Ground, 'strangerOver'>): Cover {
  return (directory) => {
    const stranger = ground.strangerOver(table, below(directory, '*'));
    return stranger && strangerFailure(directory, stranger);
  };
}

export function createDiskReader(host: Host, coverOf: Cover = () => undefined): DiskReader {
  const unlisted: UnreadPlace[] = [];
  const hidden = new Map<AbsolutePath, UnreadPlace>();
  const unreadPapers: UnreadPaper[] = [];
  const note = (path: AbsolutePath, failure: Failure): void => {
    unlisted.push({ path, failure: { ...failure, blocker: path } });
  };
  const hide = (place: UnreadPlace): void => void hidden.set(place.path, place);
  function isHidden(directory: AbsolutePath): boolean {
    const failure = coverOf(directory);
    if (failure !== undefined) hide({ path: directory, failure });
    return failure !== undefined;
  }
  async function list(directory: AbsolutePath): Promise<readonly string[]> {
    if (isHidden(directory)) return [];
    const listed = await host.listDirectory(directory, ENTRIES_MAX);
    if (listed.ok) return [...listed.value].sort();
    if (listed.failure.code !== 'path-missing') note(directory, listed.failure);
    return [];
  }
  return {
    names: async (directory) => (await list(directory)).filter((name) => !name.startsWith('.')),
    namesBegun: async (directory) => [
      ...new Set((await list(directory)).map((name) => nameBegun(name) ?? name)),
    ],
    async exists(path) {
      if (isHidden(parentOf(path))) return true;
      const facts = await host.inspect(path);
      if (!facts.ok) note(path, facts.failure);
      return !facts.ok || facts.value.kind !== 'absent';
    },
    async volData(directory) {
      if (isHidden(directory)) return 'unknown';
      const data = await readVolumeData(host, directory);
      if (data.ok) return namesVolume(data.value) ? data.value : 'nothing';
      unreadPapers.push({ directory, failure: { ...data.failure, blocker: directory } });
      return 'unknown';
    },
    complete: () => unlisted.length === 0 && unreadPapers.length === 0 && hidden.size === 0,
    unlisted: () => unlisted.map(({ failure }) => failure),
    unreadPapers: () => unreadPapers,
    hidden: () => [...hidden.values()],
    hide,
    unreadDirectories: () => [
      ...unreadPapers.map(({ directory, failure }) => ({ path: directory, failure })),
      ...unlisted,
    ],
  };
}
