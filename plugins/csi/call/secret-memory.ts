/**
 * The secrets that a driver was given for a volume in this life of the agent, for one purpose: to take them out of what
 * the driver says later, when the wish does not know them any more. In memory, and no longer than the volume stands, or
 * than a call that was given up may still make something of it.
 */
import type { Result } from '../../../mount/failure.ts';
import type { VolumeCall, VolumePlugin } from '../../plugin.ts';
import { isSameSecret, type SecretData } from '../../secret/sensitive.ts';
import type { PublicationKey, VolumeId } from '../../volume.ts';
import { tokenSecrets } from './service-account-tokens.ts';

export interface SecretMemory {
  /**
   * What each place that stands was set up with first, and the newest of what came after; and the newest of what was
   * given otherwise. Empty when it had none, or nothing is known of it.
   */
  of(volume: VolumeId): readonly SecretData[];
  /** Was something of it set up in this life, so that `of` is all there is? */
  knows(volume: VolumeId): boolean;
  /** The same plugin, which remembers what its calls send and forgets when nothing of the volume is left. */
  remembering<Plugin extends VolumePlugin>(plugin: Plugin): Plugin;
}

type Use = 'attached' | 'staged' | PublicationKey;

/** By one call; undefined where it has none. */
type Sent = readonly (SecretData | undefined)[];

interface Entry {
  /** What has been climbed and did not come down yet, with what was sent for it: the first, then the newest first. */
  readonly places: Map<Use, readonly SecretData[]>;
  /** What was sent for places that are down, and for none (to grow, to detach). Newest first. */
  others: readonly SecretData[];
}

/**
 * Beside the first, which what was mounted with it keeps however often it is rotated: a publish sends a secret and
 * tokens, and of each a driver may have the one of now and the one before.
 */
const LATER_OF_PLACE_MAX = 4;
const OTHERS_MAX = 16;

export function createSecretMemory(): SecretMemory {
  const entries = new Map<VolumeId, Entry>();

  function note(volume: VolumeId, place: Use, sent: Sent): void {
    const entry = entries.get(volume) ?? { places: new Map(), others: [] };
    entries.set(volume, entry);
    entry.places.set(place, present(sent).reduce(withSent, entry.places.get(place) ?? []));
  }

  /** For no place. What nothing is known of is not known by this either. */
  function noteOther(volume: VolumeId, sent: SecretData | undefined): void {
    const entry = entries.get(volume);
    if (entry !== undefined) entry.others = present([sent]).reduce(withOther, entry.others);
  }

  /** The driver that may still be at work on a call knows what it was sent, whatever came down meanwhile. */
  function release({ spec: { id: volume }, facts }: VolumeCall, place: Use): void {
    const entry = entries.get(volume);
    if (entry === undefined) return;
    entry.others = (entry.places.get(place) ?? []).reduceRight(withOther, entry.others);
    entry.places.delete(place);
    if (entry.places.size === 0 && facts.mayComeLate !== true) entries.delete(volume);
  }

  return {
    of(volume) {
      const { places, others = [] } = entries.get(volume) ?? {};
      return [...(places?.values() ?? [])].flat().concat(others);
    },
    knows: (volume) => entries.has(volume),
    remembering: (plugin) =>
      rememberingPlugin(plugin, {
        has: (volume, place) => entries.get(volume)?.places.has(place) === true,
        ...{ note, noteOther, release },
      }),
  };
}

interface Notes {
  has(volume: VolumeId, place: Use): boolean;
  note(volume: VolumeId, place: Use, sent: Sent): void;
  noteOther(volume: VolumeId, sent: SecretData | undefined): void;
  release(call: VolumeCall, place: Use): void;
}

function rememberingPlugin<Plugin extends VolumePlugin>(plugin: Plugin, notes: Notes): Plugin {
  async function up<T>(
    call: VolumeCall,
    place: Use,
    sent: Sent,
    climb: () => Promise<Result<T>>,
  ): Promise<Result<T>> {
    const { id } = call.spec;
    const isNew = !notes.has(id, place);
    notes.note(id, place, sent);
    const result = await climb();
    if (!result.ok && result.failure.effect === 'none' && isNew) notes.release(call, place);
    return result;
  }

  async function down(
    call: VolumeCall,
    place: Use,
    descend: () => Promise<Result<void>>,
  ): Promise<Result<void>> {
    const result = await descend();
    if (result.ok) notes.release(call, place);
    return result;
  }

  const { expand } = plugin;
  return {
    ...plugin,
    attach: (call) => up(call, 'attached', [call.secrets.controllerPublish], () => plugin.attach(call)),
    detach: (call) => {
      notes.noteOther(call.spec.id, call.secrets.controllerPublish);
      return down(call, 'attached', () => plugin.detach(call));
    },
    stage: (call) => up(call, 'staged', [call.secrets.stage], () => plugin.stage(call)),
    unstage: (call) => down(call, 'staged', () => plugin.unstage(call)),
    publish: (call) => {
      const sent = [call.secrets.publish, tokenSecrets(call)];
      return up(call, call.publication.key, sent, () => plugin.publish(call));
    },
    unpublish: (call) => down(call, call.publication.key, () => plugin.unpublish(call)),
    ...(expand && {
      expand: (call) => {
        notes.noteOther(call.spec.id, call.secrets.expand);
        return expand(call);
      },
    }),
  };
}

function present(sent: Sent): readonly SecretData[] {
  return sent.filter((one) => one !== undefined);
}

function withSent([first, ...later]: readonly SecretData[], sent: SecretData): readonly SecretData[] {
  if (first === undefined || isSameSecret(first, sent)) return [first ?? sent, ...later];
  return [first, ...withNewest(later, sent, LATER_OF_PLACE_MAX)];
}

function withOther(others: readonly SecretData[], sent: SecretData): readonly SecretData[] {
  return withNewest(others, sent, OTHERS_MAX);
}

/** Each content once: a source may make the same secret anew each time it is read. */
function withNewest(known: readonly SecretData[], sent: SecretData, max: number): readonly SecretData[] {
  return [sent, ...known.filter((one) => !isSameSecret(one, sent))].slice(0, max);
}
