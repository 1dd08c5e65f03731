/** `mooring mounts`, `render`, `wait` and `release` on the command line; what they do is loaded when one is given. */
import { EXIT_CODES } from '../config/exit-code.ts';
import { parseSpanMs } from '../../mount/text/duration.ts';
import { MOUNTS_NOTES, RELEASE_NOTES, RENDER_NOTES, WAIT_NOTES } from './help.ts';
import type { MountsOptions } from './mounts-command.ts';
import type { Screen } from './show.ts';
import type { CommandLike, Subcommands } from './subcommands.ts';
import type { ReleaseOptions } from './wait-command.ts';

export function addPodCommands<Option>(
  program: CommandLike<Option>,
  parts: Subcommands<Option> & { readonly exited: (code: number) => void },
): void {
  const { socket, format, screen, ended } = parts;
  program.commandsGroup('Run:');
  program
    .command('mounts <pod>')
    .summary('what the containers of a pod are given')
    .description(
      'Shows for each container what is bound where, or prints it for podman or a unit of systemd. ' +
        'For those two it fails while a volume of the container is not there.',
    )
    .addOption(format('table', 'json', 'podman', 'systemd'))
    .option('-c, --container <name>', 'of this container alone')
    .addOption(socket())
    .addHelpText('after', MOUNTS_NOTES)
    .action(async (pod: string, options: MountsOptions) => {
      const { isNamed } = await import('./show.ts');
      if (!isNamed(pod, screen())) return parts.exited(EXIT_CODES.usage);
      const { showMounts } = await import('./mounts-command.ts');
      ended(await showMounts(pod, options, screen()));
    });
  program
    .command('render <file>')
    .summary('a pod as podman kube play takes it')
    .description(
      'Prints the pods of a manifest with every volume replaced by what is mounted, in JSON, which is YAML. ' +
        'Fails while a volume of them is not there. Other objects of the file are left out.',
    )
    .addOption(socket())
    .addHelpText('after', RENDER_NOTES)
    .action(async (file: string, { socket: path }: { socket: string }) => {
      const { renderFile } = await import('./render-command.ts');
      ended(await renderFile(file, path, screen()));
    });
  const addWait = (usage: string, summary: string, description: string, notes: string, run: Run) =>
    program
      .command(usage)
      .summary(summary)
      .description(description)
      .option('-t, --timeout <time>', 'at most so long, as 90s or 5m; else for ever')
      .addOption(socket())
      .addHelpText('after', notes)
      .action(async (pod: string, options: GivenWait) =>
        parts.exited(await runWait(pod, options, screen(), run)),
      );
  addWait(
    'wait <pod>',
    'until the volumes of a pod are there',
    'Says what it waits for, and ends when all volumes of the pod are there. It waits for the agent, too.',
    WAIT_NOTES,
    async () => (await import('./wait-command.ts')).waitForPod,
  );
  addWait(
    'release <pod>',
    'until nothing is left of a pod',
    'Says what it waits for, and ends when nothing is left of a pod whose manifest is gone. ' +
      'A pod that is still wanted keeps its volumes, and after two seconds it ends.',
    RELEASE_NOTES,
    async () => (await import('./wait-command.ts')).releasePod,
  ).option('--force', 'whoever has something of it still: what he has is taken down');
}

interface GivenWait {
  readonly socket: string;
  readonly timeout?: string;
  readonly force?: boolean;
}

type Run = () => Promise<(pod: string, options: ReleaseOptions, screen: Screen) => Promise<number>>;

async function runWait(
  pod: string,
  { socket, timeout, force }: GivenWait,
  screen: Screen,
  run: Run,
): Promise<number> {
  const { isNamed } = await import('./show.ts');
  if (!isNamed(pod, screen)) return EXIT_CODES.usage;
  const timeoutMs = timeout === undefined ? Number.POSITIVE_INFINITY : parseSpanMs(timeout);
  if (timeoutMs === undefined) {
    screen.complain(`mooring: --timeout "${timeout}": expected a time such as 90s, 5m or 1h30m\n`);
    return EXIT_CODES.usage;
  }
  return (await run())(pod, { socket, timeoutMs, ...(force === undefined ? {} : { force }) }, screen);
}
