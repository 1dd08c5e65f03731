/** Two specifications of one volume, compared field by field as the table of their kind says. */
import { isDeepStrictEqual } from 'node:util';
import type { FieldRule } from '../traits/volume-traits.ts';
import type { VolumeSpec } from '../volume.ts';
import { traitsOf } from './kinds.ts';

/** A field of some kind's specification, for people; it never holds a secret's content. */
export type SpecField = string;

/** What staging this volume has fixed, in the order of the table. */
export function fixedFields(spec: VolumeSpec): readonly SpecField[] {
  const known = fixedOf.get(spec);
  if (known !== undefined) return known;
  const fixed = rulesOf(spec).flatMap(([field, rule]) => (rule.fixed?.(spec) === true ? [field] : []));
  fixedOf.set(spec, fixed);
  return fixed;
}

/** Asked several times at every look at a volume; a specification is never changed. */
const fixedOf = new WeakMap<VolumeSpec, readonly SpecField[]>();

/** Those of the fixed fields that decide where on disk the volume is. */
export function placeFields(spec: VolumeSpec): readonly SpecField[] {
  return fixedFields(spec).filter((field) => ruleOf(spec, field).place === true);
}

export function ruleOf(spec: VolumeSpec, field: SpecField): FieldRule<VolumeSpec> {
  return (traitsOf(spec).fields as Readonly<Record<SpecField, FieldRule<VolumeSpec>>>)[field] ?? {};
}

export function fieldValue(spec: VolumeSpec, field: SpecField): unknown {
  return (spec as unknown as Readonly<Record<SpecField, unknown>>)[field];
}

/** The two mean the same by this field, however it is written. */
export function meansSame(a: VolumeSpec, b: VolumeSpec, field: SpecField): boolean {
  const meaning = ruleOf(a, field).meaning;
  return meaning === undefined
    ? isSameValue(fieldValue(a, field), fieldValue(b, field))
    : isSameValue(meaning(a), meaning(b));
}

/** The same volume, wanted as before in every field. */
export function isSameSpec(a: VolumeSpec, b: VolumeSpec): boolean {
  if (a === b) return true;
  if (a.kind !== b.kind || a.id !== b.id) return false;
  return rulesOf(a).every(([field]) => isSameValue(fieldValue(a, field), fieldValue(b, field)));
}

/** Thousands of volumes are compared at a time, and nearly all fields are words. */
export function isSameValue(a: unknown, b: unknown): boolean {
  return a === b || (typeof a === 'object' && isDeepStrictEqual(a, b));
}

type Rules = readonly (readonly [SpecField, FieldRule<VolumeSpec>])[];

/** Asked of every volume at every look at the wish; a table never changes. */
const listed = new WeakMap<object, Rules>();

function rulesOf(spec: VolumeSpec): Rules {
  const { fields } = traitsOf(spec);
  const known = listed.get(fields);
  if (known !== undefined) return known;
  const rules: Rules = Object.entries(fields);
  listed.set(fields, rules);
  return rules;
}
