/** `mooring mounts`: what the containers of a pod are given, for people and for what starts them. */
import { isMountReady, isReady } from '../mounts/container-mounts.ts';
import { type LaunchWords, shellWord } from '../mounts/launch-words.ts';
import type { ContainerMounts, MountsDocument } from '../mounts/mounts-document.ts';
import { podmanArguments } from '../mounts/podman-arguments.ts';
import { systemdBinds } from '../mounts/systemd-binds.ts';
import { printable } from '../../mount/text/printable.ts';
import type { ApiAnswer } from './api-client.ts';
import { mountsText } from './mounts-text.ts';
import { complain, complainOfAll, json, lookAt, type Screen, type Shown } from './show.ts';

/** Two paths of 4,095 bytes, each of them an escape. */
const WORD_BYTES_MAX = 65_536;

export interface MountsOptions {
  readonly socket: string;
  readonly output: 'table' | 'json' | 'podman' | 'systemd';
  /** Undefined: all of them; of the forms for a launcher the one that there is. */
  readonly container?: string;
}

/** What the agent says of the pod's containers; `pod` is its name, namespace/name or uid. */
export function askForMounts(socket: string, pod: string): Promise<ApiAnswer<MountsDocument>> {
  return lookAt<MountsDocument>({
    socket,
    path: `/v1/pods/${encodeURIComponent(pod)}/mounts`,
    kind: 'Mounts',
  });
}

/** For people and as JSON whatever is known; for a launcher all of a container or nothing. */
export async function showMounts(pod: string, options: MountsOptions, screen: Screen): Promise<Shown> {
  const answer = await askForMounts(options.socket, pod);
  if (answer.kind !== 'ok') return complain(answer.message, screen);
  const { container: name, output } = options;
  const { containers: all } = answer.body;
  const containers = name === undefined ? all : all.filter((one) => one.name === name);
  if (containers.length === 0)
    return complain(`the pod has no container ${name}, but ${namesOf(all)}`, screen);
  if (output === 'podman' || output === 'systemd') return showForLauncher(containers, output, screen);
  const document = { ...answer.body, containers };
  screen.write(output === 'json' ? json(document) : mountsText(document, screen.look()));
  return true;
}

/** What each form makes of a container, and how it writes a word. */
const FORMS = {
  podman: { words: podmanArguments, line: shellWord },
  systemd: { words: systemdBinds, line: (word: string) => word },
} as const satisfies Record<
  string,
  { words: (of: ContainerMounts) => LaunchWords; line: (word: string) => string }
>;

function showForLauncher(
  containers: readonly ContainerMounts[],
  output: keyof typeof FORMS,
  screen: Screen,
): Shown {
  const [container] = containers;
  if (container === undefined || containers.length > 1)
    return complain(
      `the pod has more than one container; say with --container which of ${namesOf(containers)}`,
      screen,
    );
  if (!isReady(container)) return complain(notReady(container), screen);
  const { words, line } = FORMS[output];
  const told = words(container);
  if (told.kind === 'impossible') return complainOfAll(told.problems, screen);
  // Exact for what starts the container; a terminal would act on what is in a path.
  const isPipe = screen.rows() === undefined;
  const shown = told.words.map((word) => (isPipe ? line(word) : printable(line(word), WORD_BYTES_MAX)));
  screen.write(shown.map((word) => `${word}\n`).join(''));
  return true;
}

function notReady({ name, mounts, devices }: ContainerMounts): string {
  const missing = [
    ...mounts.filter((one) => !isMountReady(one)),
    ...devices.filter(({ hostPath }) => hostPath === null),
  ];
  const lines = missing.map(
    ({ volume, sentence }) => `  ${printable(`${volume}: ${sentence}`, WORD_BYTES_MAX)}`,
  );
  return [`container ${name} cannot be started yet:`, ...new Set(lines)].join('\n');
}

function namesOf(containers: readonly ContainerMounts[]): string {
  return containers.map(({ name }) => name).join(', ');
}
