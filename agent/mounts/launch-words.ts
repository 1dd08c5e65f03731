/** What a launcher of containers is told, or why it cannot be told. */
export type LaunchWords =
  | { readonly kind: 'words'; readonly words: readonly string[] }
  /** One line for people for each; never empty. Half of the places would be the wrong ones. */
  | { readonly kind: 'impossible'; readonly problems: readonly string[] };

/** A tilde within a name is no home directory. */
const PLAIN_WORD = /^(?:[A-Za-z0-9_/.,:=@%+-]|(?<=[a-z.])~)+$/;

/** One word of a POSIX shell; plain words stay as they are. */
export function shellWord(word: string): string {
  return PLAIN_WORD.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
