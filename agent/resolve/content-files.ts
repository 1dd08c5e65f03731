/** The files of a secret or configMap volume, and the generation they belong to. */
import { fail, ok, type Result } from '../../mount/failure.ts';
import { sha256Hex } from '../../plugins/layout/layout.ts';
import type { VolumeFiles } from '../../plugins/plugin.ts';
import { Sensitive } from '../../plugins/secret/sensitive.ts';
import type { ContentSource } from '../../kubernetes/objects/content-source.ts';
import { objectKey, type Pod, type Stamped } from '../../kubernetes/objects/objects.ts';
import { refuseMissing, refuseUnknown, refuseUnread } from './missing.ts';
import type { DesiredObjects } from '../source/desired-objects.ts';

/** What a content volume should hold, and the name of that state. */
export interface ContentFiles {
  readonly files: VolumeFiles;
  /** It is made from the object's revision and the volume's own fields; no byte of the content goes into it. */
  readonly generation: string;
}

/** A pod, and whether it was told of the volume, or may have been: then it is not to lose what it has of it. */
export type ContentPod = Pick<Stamped<Pod>, 'reference' | 'origin'> & { readonly hasVolume: () => boolean };

/**
 * `reference-missing` when the object, or a key of it, is not there and the volume is not optional. Of an optional
 * volume what is missing is left out, as by the kubelet; what only may be missing is not, but for a pod that is new.
 */
export function contentFiles(
  desired: DesiredObjects,
  { reference: { namespace }, origin, hasVolume }: ContentPod,
  source: ContentSource,
): Result<ContentFiles> {
  const key = objectKey({ namespace, name: source.name });
  const secret = source.kind === 'secret' ? desired.secrets.get(key) : undefined;
  const configMap = source.kind === 'config-map' ? desired.configMaps.get(key) : undefined;
  const object = secret ?? configMap;
  const title = `${source.kind === 'secret' ? 'Secret' : 'ConfigMap'} ${key}`;
  if (object === undefined) {
    const unread = refuseUnread(desired, title, origin);
    const isLeftOut = unread !== undefined && source.optional && !hasVolume();
    const unknown = refuseUnknown(desired, title) ?? (isLeftOut ? undefined : unread);
    if (unknown !== undefined) return unknown;
    if (!source.optional) return refuseMissing(desired, title);
  }
  const data: ReadonlyMap<string, Uint8Array> = secret?.data.reveal() ?? configMap?.data ?? new Map();
  const files = new Map<string, { readonly content: Uint8Array; readonly mode: number }>();
  const items = source.items ?? [...data.keys()].map((one) => ({ key: one, path: one, mode: undefined }));
  for (const { key: wanted, path, mode } of items) {
    const content = data.get(wanted);
    if (content !== undefined) files.set(path, { content, mode: mode ?? source.defaultMode });
    else if (!source.optional) return missing(`${title} has no key ${wanted}`);
  }
  const { optional, defaultMode, items: chosen } = source;
  const shape = sha256Hex(JSON.stringify([source.kind, key, optional, defaultMode, chosen ?? null]));
  return ok({
    files: new Sensitive(files),
    generation: `${object?.revision ?? 'absent'}-${shape.slice(0, 16)}`,
  });
}

function missing(message: string): ReturnType<typeof fail> {
  return fail({ code: 'reference-missing', message, effect: 'none' });
}
