/** The lines of a unit by which systemd binds the volumes of a container. Pure; systemd.exec(5), systemd.syntax(7). */
import type { ContainerMounts, PlaceInContainer } from './mounts-document.ts';
import type { LaunchWords } from './launch-words.ts';

/**
 * One line each. Read-only ones are so for what is mounted below, too; mounts that are made later on the host are seen
 * in the unit (`MountFlags=` is rslave by default). A device is bound as the file it is. Assumes that all places of the
 * container are ready.
 */
export function systemdBinds({ mounts, devices, seLinux }: ContainerMounts): LaunchWords {
  const problems: string[] = [];
  for (const { containerPath, propagation, image } of mounts) {
    if (image !== null)
      problems.push(
        `${containerPath}: systemd mounts no image; bind what podman image mount ${image.reference} prints`,
      );
    if (propagation === 'Bidirectional')
      problems.push(`${containerPath}: systemd has no word for mountPropagation Bidirectional`);
  }
  for (const { containerPath, readOnly } of devices) {
    // The kernel asks no mount whether a device may be written to.
    if (readOnly) problems.push(`${containerPath}: a bind does not make a device read-only`);
  }
  if (seLinux !== null)
    problems.push(
      'seLinuxOptions: a unit takes a whole context, and the pod has parts of one: write SELinuxContext=',
    );
  const words = [...mounts, ...devices].map((place) => bindLine(place, problems));
  return problems.length > 0 ? { kind: 'impossible', problems } : { kind: 'words', words };
}

function bindLine({ hostPath, containerPath, readOnly }: PlaceInContainer, problems: string[]): string {
  const [source, destination] = [hostPath ?? '', containerPath].map((path) => {
    // A line ends there whatever stands around it, and no escape is read in a path.
    if (/[\n\r]/.test(path))
      problems.push(`${JSON.stringify(path)}: a unit cannot say a path with a line break`);
    // Systemd ignores such a line, with a word in the journal, and what it starts would write beside the volume.
    if (/(?:^|\/)\.\.(?:\/|$)/.test(path)) problems.push(`${path}: a unit takes no path with ".."`);
    return unitPath(path);
  });
  return `${readOnly ? 'BindReadOnlyPaths' : 'BindPaths'}=${source}:${destination}`;
}

/**
 * `%` begins a specifier. Quotes keep blanks and colons together; within them a backslash takes the next character as
 * it is (`extract_first_word`).
 */
function unitPath(path: string): string {
  const text = path.replaceAll('%', '%%');
  return /^[A-Za-z0-9_/.,=@%+~-]+$/.test(text) ? text : `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
