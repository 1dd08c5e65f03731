/** `mooring manifests` and `mooring forget` on the command line; what they do is loaded when one of them is given. */
import { FORGET_NOTES, MANIFEST_NOTES } from './help.ts';
import type { ManifestOptions } from './manifest-command.ts';
import type { CommandLike, Subcommands } from './subcommands.ts';

export function addManifestCommands<Option>(
  program: CommandLike<Option>,
  { socket, format, screen, ended }: Subcommands<Option>,
): void {
  const add = (parent: CommandLike<Option>, usage: string, description: string): CommandLike<Option> =>
    parent.command(usage).description(description).addOption(format('text', 'json')).addOption(socket());
  const manifests = program
    .command('manifests')
    .summary('manifests that are not where they were')
    .description(
      'What vanished while nobody looked is kept for a time; another directory in the place is not read.',
    )
    .addHelpText('after', MANIFEST_NOTES);
  add(
    manifests,
    'list',
    'Shows whether the directory is another one, and which pods are kept and how long.',
  ).action(async (options: ManifestOptions) => {
    const { listManifests } = await import('./manifest-command.ts');
    ended(await listManifests(options, screen()));
  });
  add(
    manifests,
    'accept',
    'Says that the directory that is there now is the right one; it is read then.',
  ).action(async (options: ManifestOptions) => {
    const { acceptDirectory } = await import('./manifest-command.ts');
    ended(await acceptDirectory(options, screen()));
  });
  add(
    program,
    'forget [pods...]',
    'Says that pods whose manifests vanished are gone; their emptyDirs are deleted.',
  )
    .summary('pods whose manifests vanished are gone')
    .option('--all', 'all that are kept because their manifests vanished')
    .addHelpText('after', FORGET_NOTES)
    .action(async (pods: string[], { all = false, ...options }: ManifestOptions & { all?: boolean }) => {
      const { forgetPods } = await import('./manifest-command.ts');
      ended(await forgetPods(pods, { ...options, all }, screen()));
    });
}
