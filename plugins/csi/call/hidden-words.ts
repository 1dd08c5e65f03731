/** What must not be shown of a driver's words about a volume. */
import type { VolumeCall, VolumeSecrets } from '../../plugin.ts';
import { type SecretData, Sensitive } from '../../secret/sensitive.ts';
import type { CsiVolumeSpec } from '../../volume.ts';
import type { Hidden } from '../wire/status.ts';
import type { SecretMemory } from './secret-memory.ts';

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

/** An entry may be several options, and a value may have in it what ends others: `-o a=b,c=d`, `--a b --c d`. */
const WORD = /[^\s,;]+/g;
const VALUE_ENDS = [/,/, /;/, /\s/, /[\s,;](?:-|[^\s,;=:]+[=:])/, /$/];
/** Within a word; some drivers have `name value` and `name: value`. */
const VALUE_SEPARATOR = /[=:](?=.)/g;
/** A word without a value of its own that is a name all the same. */
const NEXT_NAME = /^-|:$/;
/** Between a name and its value, or within a secret one, there may be spaces on both sides of it. */
const SIGN = /^[=:]+/;
const QUOTES = /^["']+|["']+$/g;
const SECRET_NAME = /pass|secret|cred|token|key/i;
/** Shorter values of options that do not sound secret (`ordered`, `1000`) are words of other sentences, too. */
const OPTION_VALUE_LENGTH_MIN = 8;

/**
 * Mount options may hold secrets (CSI: "may contain sensitive information"), and which do is nobody's to know: each is
 * taken out where it stands whole, and its value alone where that is long, or the name of the option is telling.
 */
function secretMountOptions(spec: CsiVolumeSpec): SecretData | undefined {
  const hidden = spec.mountOptions.flatMap((option) => {
    const isOfValues = option.search(/[=:\s](?=.)/) !== -1;
    return isOfValues ? [option, ...hiddenWords(option)] : [];
  });
  return hidden.length === 0 ? undefined : new Sensitive(Object.fromEntries(Object.entries(hidden)));
}

/** A name in an entry: the next word may be its value, or more of it. */
interface Owner {
  readonly at: number;
  readonly isTelling: boolean;
  readonly hasValue: boolean;
}

/** What is hidden of an entry by its words: each may be told alone by who reads the entry as several options. */
function hiddenWords(option: string): readonly string[] {
  const hidden: string[] = [];
  let owner: Owner | undefined;
  for (const { 0: written, index: begin } of option.matchAll(WORD)) {
    const isItsFirst = owner?.isTelling === true && !owner.hasValue;
    const mayGoOn = owner?.hasValue === false || owner?.isTelling === true;
    const sign = mayGoOn ? (SIGN.exec(written)?.[0] ?? '') : '';
    // The value is the next word, or all that is behind the first of the signs.
    if (sign === written) continue;
    if (sign.length > 1) hidden.push(...valuesAt(option, begin + 1, isItsFirst));
    const [word, at] = [written.slice(sign.length), begin + sign.length];
    const names = [...word.matchAll(VALUE_SEPARATOR)].map(({ index }) => word.slice(0, index));
    const name = names.at(-1);
    const isOwned = isItsFirst || (owner?.isTelling === true && name === undefined && !NEXT_NAME.test(word));
    if (isOwned || sign !== '' || isSpaceAt(option, at - 1)) hidden.push(...valuesAt(option, at, isOwned));
    if (isItsFirst) hidden.push(option.slice(owner?.at, at + word.length));
    if (name !== undefined) hidden.push(word);
    for (const one of names)
      hidden.push(...valuesAt(option, at + one.length + 1, isItsFirst || SECRET_NAME.test(one)));
    if (isOwned) owner = owner && { ...owner, hasValue: true };
    else if (name !== undefined) owner = { at, isTelling: SECRET_NAME.test(name), hasValue: true };
    else owner = isSpaceAt(option, at + word.length) ? bareOwner(word, at) : undefined;
  }
  return hidden;
}

function bareOwner(word: string, at: number): Owner {
  return { at, isTelling: SECRET_NAME.test(word), hasValue: false };
}

function isSpaceAt(option: string, at: number): boolean {
  return /\s/.test(option.charAt(at));
}

/** A value from there: to any of its ends, as nobody knows which is that of its driver. */
function valuesAt(option: string, at: number, isTelling: boolean): readonly string[] {
  const rest = option.slice(at);
  const values = VALUE_ENDS.map((end) => rest.split(end, 1)[0] ?? '');
  const all = new Set([...values, ...values.map((value) => value.replace(QUOTES, ''))]);
  return [...all].filter((value) => isTelling || value.length >= OPTION_VALUE_LENGTH_MIN);
}
