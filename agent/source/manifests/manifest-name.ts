/** Which files of the directory are manifests, by their names, and what is said of the others. Pure. */
import type { FileEntry } from '../../../mount/host.ts';
import { compareText } from '../../../mount/text/compare-text.ts';

const MANIFEST_NAME = /^[^.].*\.(?:yaml|yml|json)$/s;
/** Hidden ones, and what editors keep beside a file: nobody expects them to be read. */
const NOBODYS_NAME = /^\.|~$|^#.*#$/s;
const NAMES_TOLD_MAX = 3;

export function isManifestName(name: string): boolean {
  return MANIFEST_NAME.test(name);
}

/**
 * The names of files that whoever put them there may take for manifests. `told`: those of the listing before; with
 * `onlyTold` no others, for what a program writes under another name first is there for a moment.
 */
export function passedOver(
  entries: readonly FileEntry[],
  told: readonly string[],
  onlyTold: boolean,
): readonly string[] {
  const before = new Set(told);
  const names = entries
    .filter(({ name, facts: { kind } }) => {
      const isFile = kind === 'file' || kind === 'symlink';
      return isFile && !isManifestName(name) && !NOBODYS_NAME.test(name);
    })
    .map(({ name }) => name)
    .filter((name) => !onlyTold || before.has(name))
    .sort(compareText);
  return names.length === told.length && names.every((name, index) => name === told[index]) ? told : names;
}

/** Undefined: there is nobody to be told of. */
export function passedOverText(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  const more = names.length > NAMES_TOLD_MAX ? ` and ${names.length - NAMES_TOLD_MAX} more` : '';
  const some = names.slice(0, NAMES_TOLD_MAX).join(', ');
  return `not read, for a manifest has a name that ends in .yaml, .yml or .json: ${some}${more}`;
}
