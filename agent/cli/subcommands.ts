/** What the files that add commands are given; the types of the command line parser have one importer. */
import type { Screen } from './show.ts';

/** What of a command of the parser is needed here. */
export interface CommandLike<Option> {
  commandsGroup(heading: string): CommandLike<Option>;
  command(usage: string): CommandLike<Option>;
  summary(text: string): CommandLike<Option>;
  description(text: string): CommandLike<Option>;
  addOption(option: Option): CommandLike<Option>;
  option(flags: string, text: string): CommandLike<Option>;
  addHelpText(position: 'after', text: string): CommandLike<Option>;
  // biome-ignore lint/suspicious/noExplicitAny: the parser gives each action what its own usage says
  action(run: (...given: any[]) => Promise<void>): CommandLike<Option>;
}

export interface Subcommands<Option> {
  readonly socket: () => Option;
  readonly format: (...choices: readonly [string, ...string[]]) => Option;
  readonly screen: () => Screen;
  /** Whether it was done. */
  readonly ended: (done: boolean) => void;
}
