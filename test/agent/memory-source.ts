/** A source in memory, as trivial as one can be: it makes every object anew whenever it is asked. */
import type { ObjectsSource, SourceReading } from '../../agent/source/objects-source.ts';
import { partsOf } from './manifests.ts';

export interface MemorySource extends ObjectsSource {
  /** Says this from now on, or the same once more. */
  say(files?: Readonly<Record<string, string>>, facts?: Partial<SourceReading>): void;
}

export function memorySource(name: string, files: Readonly<Record<string, string>> = {}): MemorySource {
  const listeners = new Set<() => void>();
  let said = files;
  let facts: Partial<SourceReading> = {};
  const tell = (): void => {
    for (const listener of listeners) listener();
  };
  return {
    name,
    start: async () => tell(),
    stop: () => listeners.clear(),
    current: () => ({ complete: true, parts: partsOf(said), ...facts }),
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    say(next = said, more = facts) {
      said = next;
      facts = more;
      tell();
    },
  };
}
