/** What a node says it uses, put together from what stands and what others have said. Pure. */

export interface InUseFacts {
  /** What stands or is being set up here. */
  readonly standing: ReadonlySet<string>;
  /** Nothing of them is left, and they are being taken off the list. */
  readonly leaving: ReadonlySet<string>;
  /** The server listed them before this life looked, and they may be here as long as the disk was not read. */
  readonly unexplained: ReadonlySet<string>;
  /** What the server lists now. */
  readonly listed: readonly string[];
  /** What this life has written, or found as it wanted it; what is listed beside that is somebody else's. */
  readonly written: ReadonlySet<string>;
}

/** Sorted, each once. A name goes only when it is known that nothing of it is here, or by whoever wrote it. */
export function inUseList({
  standing,
  leaving,
  unexplained,
  listed,
  written,
}: InUseFacts): readonly string[] {
  const others = listed.filter((name) => !written.has(name));
  const all = new Set([...standing, ...unexplained, ...others]);
  for (const name of leaving) all.delete(name);
  return [...all].sort();
}

export function isSameList(a: readonly string[], b: readonly string[]): boolean {
  const names = new Set(a);
  return names.size === new Set(b).size && b.every((name) => names.has(name));
}
