/**
 * The secrets that a driver was given for a volume in this life of the agent, for one purpose: to take them out of what
 * the driver says later, when the wish does not know them any more. In memory, and no longer than the volume stands.
 */
import type { Result } from '../../../mount/failure.ts';
import type { VolumeCall, VolumePlugin } from '../../plugin.ts';
import type { SecretData } from '../../secret/sensitive.ts';
import type { PublicationKey, VolumeId } from '../../volume.ts';
import { tokenSecrets } from './service-account-tokens.ts';

export interface SecretMemory {
  /** Newest first; empty when it had none, or nothing is known of it. */
  of(volume: VolumeId): readonly SecretData[];
  /** Was something of it set up in this life, so that `of` is all there is? */
  knows(volume: VolumeId): boolean;
  /** The same plugin, which remembers on the way up and forgets when nothing of the volume is left. */
  remembering<Plugin extends VolumePlugin>(plugin: Plugin): Plugin;
}

type Use = 'attached' | 'staged' | PublicationKey;

interface Entry {
  /** What has been climbed and did not come down yet. */
  readonly places: Set<Use>;
  /** By what they are for: that of now, and the one before, which the driver may still have. */
  readonly secrets: Map<string, readonly SecretData[]>;
}

/** Secrets are rotated, and tokens come anew with each republish. */
const KEPT_OF_EACH = 2;

export function createSecretMemory(): SecretMemory {
  const entries = new Map<VolumeId, Entry>();

  function note({ spec, secrets }: VolumeCall, tokens: SecretData | undefined, place: Use): boolean {
    const entry = entries.get(spec.id) ?? { places: new Set(), secrets: new Map() };
    entries.set(spec.id, entry);
    const { controllerPublish, stage, publish, expand } = secrets;
    for (const [name, secret] of Object.entries({ controllerPublish, stage, publish, expand, tokens })) {
      const known = entry.secrets.get(name) ?? [];
      if (secret === undefined || known[0] === secret) continue;
      entry.secrets.set(name, [secret, ...known].slice(0, KEPT_OF_EACH));
    }
    const isNew = !entry.places.has(place);
    entry.places.add(place);
    return isNew;
  }

  function release(volume: VolumeId, place: Use): void {
    const entry = entries.get(volume);
    entry?.places.delete(place);
    if (entry?.places.size === 0) entries.delete(volume);
  }

  async function up<T>(
    call: VolumeCall,
    place: Use,
    tokens: SecretData | undefined,
    climb: () => Promise<Result<T>>,
  ): Promise<Result<T>> {
    const isNew = note(call, tokens, place);
    const result = await climb();
    if (!result.ok && result.failure.effect === 'none' && isNew) release(call.spec.id, place);
    return result;
  }

  async function down(
    call: VolumeCall,
    place: Use,
    descend: () => Promise<Result<void>>,
  ): Promise<Result<void>> {
    const result = await descend();
    if (result.ok) release(call.spec.id, place);
    return result;
  }

  return {
    of: (volume) => [...(entries.get(volume)?.secrets.values() ?? [])].flat(),
    knows: (volume) => entries.has(volume),
    remembering: (plugin) => ({
      ...plugin,
      attach: (call) => up(call, 'attached', undefined, () => plugin.attach(call)),
      detach: (call) => down(call, 'attached', () => plugin.detach(call)),
      stage: (call) => up(call, 'staged', undefined, () => plugin.stage(call)),
      unstage: (call) => down(call, 'staged', () => plugin.unstage(call)),
      publish: (call) => up(call, call.publication.key, tokenSecrets(call), () => plugin.publish(call)),
      unpublish: (call) => down(call, call.publication.key, () => plugin.unpublish(call)),
    }),
  };
}
