/** A source in memory, as trivial as one can be: it makes every object anew whenever it is asked. */
import type { ObjectsSource, SourceReading } from '../../agent/source/objects-source.ts';
import type { PodUid } from '../../plugins/volume.ts';
import { partsOf } from './manifests.ts';

export interface MemorySource extends ObjectsSource {
  /** Says this from now on, or the same once more. */
  say(files?: Readonly<Record<string, string>>, facts?: Partial<SourceReading>): void;
  /** Says that these pods will soon be gone. */
  warn(...pods: readonly PodUid[]): void;
}

export function memorySource(name: string, files: Readonly<Record<string, string>> = {}): MemorySource {
  const listeners = new Set<() => void>();
  const losing = new Set<(pods: ReadonlySet<PodUid>) => void>();
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
    onLosing(listener) {
      losing.add(listener);
      return () => losing.delete(listener);
    },
    warn(...pods) {
      for (const listener of losing) listener(new Set(pods));
    },
    say(next = said, more = facts) {
      said = next;
      facts = more;
      tell();
    },
  };
}
