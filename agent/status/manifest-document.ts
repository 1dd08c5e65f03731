/** What `mooring manifests`, `mooring forget` and /v1/manifests show (docs/API.md). Pure. */
import { keptSpan, replacedSentence } from './sentence.ts';
import type { ReplacedStatus, StatusDocument } from './status-document.ts';
import { type Look, wrap } from '../../mount/text/table.ts';

/** A pod that is kept although its manifest is gone, in case that is a mistake. */
export interface KeptPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** When it is believed to be gone. */
  readonly believedInMs: number;
  /** Sources that cannot be read now: as long as there is one, it is kept all the same. */
  readonly unknown: readonly string[];
}

export interface ManifestsDocument {
  readonly apiVersion: 'mooring/v1';
  readonly kind: 'Manifests';
  /** Null: the manifests are read from the directory that they were always read from. */
  readonly replaced: ReplacedStatus | null;
  /** Each pod is found by its uid. */
  readonly kept: readonly KeptPod[];
}

export interface ManifestsChangeDocument {
  readonly apiVersion: 'mooring/v1';
  readonly kind: 'ManifestsChange';
  readonly change: 'accepted' | 'forgotten';
  /** namespace/name (or uid) of the pods that are kept no longer. */
  readonly pods: readonly string[];
  /** What happens now, for people. */
  readonly next: string;
}

export function manifestsDocument({ pods, sources }: StatusDocument): ManifestsDocument {
  const { replaced, vanished, vanishing } = sources;
  const kept = pods.flatMap(({ namespace, name, uid }): readonly KeptPod[] => {
    const group = [vanished, vanishing].find((one) => one?.pods.includes(uid) === true);
    const unknown = group === vanished ? sources.unknown : [];
    return group ? [{ namespace, name, uid, believedInMs: group.believedInMs, unknown }] : [];
  });
  kept.sort((a, b) => (a.uid < b.uid ? -1 : 1));
  return { apiVersion: 'mooring/v1', kind: 'Manifests', replaced, kept };
}

/** Ends with a line end. */
export function manifestsText({ replaced, kept }: ManifestsDocument, look: Look): string {
  const sentences = [
    ...(replaced === null ? [] : [`${replacedSentence(replaced)}.`]),
    ...kept.map(({ namespace, name, uid, believedInMs, unknown }) => {
      const called = name === '' ? uid : `${namespace}/${name} (${uid})`;
      return `${called}: its manifest is gone; kept ${keptSpan(believedInMs, unknown)}.`;
    }),
  ];
  if (sentences.length === 0) return 'Every manifest that was there is there.\n';
  const lines = sentences.flatMap((one) => (look.widthMax === undefined ? [one] : wrap(one, look.widthMax)));
  return `${lines.join('\n')}\n`;
}
