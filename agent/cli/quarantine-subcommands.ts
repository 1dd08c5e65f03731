/** `mooring quarantine` on the command line; what it does is loaded when it is given. */
import { QUARANTINE_NOTES } from './help.ts';
import type { QuarantineOptions } from './quarantine-command.ts';
import type { CommandLike, Subcommands } from './subcommands.ts';

export function addQuarantineCommand<Option>(
  program: CommandLike<Option>,
  { socket, format, screen, ended }: Subcommands<Option>,
): void {
  program.commandsGroup('Change:');
  const quarantine = program
    .command('quarantine')
    .summary('volumes that another node may have')
    .description(
      'A volume in quarantine is taken down here, and not set up again before this machine was searched and nobody ' +
        'uses it any more.',
    )
    .addHelpText('after', QUARANTINE_NOTES);
  const add = (usage: string, description: string): CommandLike<Option> =>
    quarantine.command(usage).description(description).addOption(format('table', 'json')).addOption(socket());
  add('list', 'Shows what is in quarantine, why, and what each waits for.').action(
    async (options: QuarantineOptions) => {
      const { listQuarantine } = await import('./quarantine-command.ts');
      ended(await listQuarantine(options, screen()));
    },
  );
  add('add <volume>', 'Takes a volume down, wanted or not, until it is proven clean.').action(
    async (volume: string, options: QuarantineOptions) => {
      const { addToQuarantine } = await import('./quarantine-command.ts');
      ended(await addToQuarantine(volume, options, screen()));
    },
  );
  add('clear <volume>', 'Lets a volume go without proof; data may be lost.')
    .option('--yes', 'do it; without this only what it means is said')
    .action(async (volume: string, { yes = false, ...options }: QuarantineOptions & { yes?: boolean }) => {
      const { clearQuarantine } = await import('./quarantine-command.ts');
      ended(await clearQuarantine(volume, { ...options, yes }, screen()));
    });
}
