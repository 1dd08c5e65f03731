/** What must not be shown of a driver's words about a volume. */
import type { VolumeCall, VolumeSecrets } from '../../plugin.ts';
import { type SecretData, Sensitive } from '../../secret/sensitive.ts';
import type { CsiVolumeSpec } from '../../volume.ts';
import type { CallContext } from '../wire/status.ts';
import type { SecretMemory } from './secret-memory.ts';

export type Hidden = Pick<CallContext, 'secrets' | 'mayHoldOthers'>;

/** A volume as it stands, and what the wish has for it now. */
export interface KnownVolume extends Pick<VolumeCall, 'secrets'> {
  readonly spec: CsiVolumeSpec;
  readonly facts: { readonly isInherited?: true | undefined };
}

type Memory = Pick<SecretMemory, 'of' | 'knows'>;

/**
 * A driver keeps what it was given: the answer to a publish or an unstage may tell the secret of the stage. In an
 * earlier life of the agent the secret of the wish may have been another one; so where a volume has secrets, or tokens,
 * and what stands of it was not all set up in this life, nobody knows what to take out.
 */
export function hiddenFrom(
  memory: Memory,
  { spec, secrets, facts }: KnownVolume,
  tokens?: SecretData,
): Hidden {
  const named = secretsIn(secrets);
  const hasSome = secrets.mayBeMore === true || secrets.tokens === true || named.length > 0;
  return {
    secrets: [tokens, ...named, ...memory.of(spec.id), secretMountOptions(spec)],
    mayHoldOthers: hasSome && (facts.isInherited === true || !memory.knows(spec.id)),
  };
}

/** What must not be shown of a driver's words that are about none of its volumes, and may be about any. */
export function hiddenFromAll(memory: Memory, volumes: readonly KnownVolume[]): Hidden {
  const each = volumes.map((one) => hiddenFrom(memory, one));
  return {
    secrets: each.flatMap(({ secrets }) => secrets),
    mayHoldOthers: each.some(({ mayHoldOthers }) => mayHoldOthers === true),
  };
}

function secretsIn(secrets: VolumeSecrets): readonly SecretData[] {
  const { controllerPublish, stage, publish, expand } = secrets;
  return [controllerPublish, stage, publish, expand].filter((one) => one !== undefined);
}

/** `name=value`; some drivers have `name value`, `name:value` and `--option name=value`. */
const OPTION_SEPARATOR = /[=: ](?=.)/g;
const SECRET_NAME = /pass|secret|cred|token|key/i;
/** Shorter values of options that do not sound secret (`ordered`, `1000`) are words of other sentences, too. */
const OPTION_VALUE_LENGTH_MIN = 8;

/**
 * Mount options may hold secrets (CSI: "may contain sensitive information"), and which do is nobody's to know: each is
 * taken out where it stands whole, and its value alone where that is long, or the name of the option is telling.
 */
function secretMountOptions(spec: CsiVolumeSpec): SecretData | undefined {
  const hidden = spec.mountOptions.flatMap((option) => {
    const values = [...option.matchAll(OPTION_SEPARATOR)].flatMap(({ index }) => {
      const [name, value] = [option.slice(0, index), option.slice(index + 1)];
      const isHidden = SECRET_NAME.test(name) || value.length >= OPTION_VALUE_LENGTH_MIN;
      return isHidden ? [value] : [];
    });
    return option.search(OPTION_SEPARATOR) === -1 ? [] : [option, ...values];
  });
  return hidden.length === 0 ? undefined : new Sensitive(Object.fromEntries(Object.entries(hidden)));
}
