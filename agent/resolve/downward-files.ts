/** The files of a volume that shows fields of its own pod, and the generation they belong to. Pure. */
import { Buffer } from 'node:buffer';
import type { DownwardSource, DownwardValue } from '../../kubernetes/objects/content-source.ts';
import type { NodeResources } from '../../kubernetes/fields/node-resource.ts';
import { dividedUp } from '../../kubernetes/fields/quantity.ts';
import { sha256Hex } from '../../plugins/layout/layout.ts';
import { Sensitive } from '../../plugins/secret/sensitive.ts';
import type { ContentFiles } from './content-files.ts';

/** Total. The generation is another one whenever a file is, and at no other time: pods are made anew for any reason. */
export function downwardFiles(
  { files, defaultMode }: Pick<DownwardSource, 'files' | 'defaultMode'>,
  allocatable: NodeResources,
): ContentFiles {
  const shown = files.map(({ path, mode, value }) => {
    return { path, mode: mode ?? defaultMode, text: textOf(value, allocatable) };
  });
  const generation = sha256Hex(JSON.stringify(shown.map(({ path, mode, text }) => [path, mode, text])));
  return {
    files: new Sensitive(
      new Map(shown.map(({ path, mode, text }) => [path, { content: Buffer.from(text), mode }])),
    ),
    generation: generation.slice(0, 16),
  };
}

/** A node that does not say what it gives has nothing to give, as for the kubelet. */
function textOf(value: DownwardValue, allocatable: NodeResources): string {
  if (value.kind === 'text') return value.text;
  return String(dividedUp(allocatable[value.resource] ?? 0n, value.divisor));
}
