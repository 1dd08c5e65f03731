/**
 * Somebody who has something of a place, mounted or not: what is taken away there is taken from him. He is a process in
 * any mount namespace, or the first one met in a namespace that was given the place or does not follow ours. Of a
 * volume that another pod has as well, and keeps, who was given it need not have it from here, and does not count.
 * Nobody is looked for who has a device open or a file mapped; the host's own brokers are left out. Found within 10 s,
 * by /proc alone: no file system is asked.
 */
export interface PlaceHolder {
  readonly pid: number;
  /** The process chose it itself: letters, digits and a few signs, at most 32. Empty when it has just ended. */
  readonly command: string;
  /** Where it has it, as that is called in its own mount namespace: printable, at most 256 bytes. */
  readonly path: string;
  /**
   * `uses`: it works in there, runs from there or has a file open. `bound`: it is in a mount namespace that was given
   * the place, as containers are. `copy`: it is in a mount namespace that was made with a copy of all mounts, does not
   * follow ours, and nothing in there uses the place.
   */
  readonly how: 'uses' | 'bound' | 'copy';
}

/** Those of several places, in their order; each place has at most 8, and copies only where there is room for them. */
export type PlaceHolders = readonly (readonly PlaceHolder[])[];

/** People are told who it is, what he is called, and where he has it. */
export function holderText({ pid, command, path, how }: PlaceHolder): string {
  const name = command === '' ? '' : ` (${command})`;
  switch (how) {
    case 'uses':
      return `pid ${pid}${name} uses ${path}`;
    case 'bound':
      return `pid ${pid}${name} has it at ${path} in its own mount namespace`;
    case 'copy':
      return `pid ${pid}${name} has a private copy of it at ${path}, which nobody there uses`;
  }
}
