/** Objects of an API server as plain JSON values, and what is asked of them. Pure. */
export type Json = Readonly<Record<string, unknown>>;

export function isMapping(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Empty where there is no mapping. */
export function at(object: unknown, ...keys: readonly string[]): Json {
  let found: unknown = object;
  for (const key of keys) found = isMapping(found) ? found[key] : undefined;
  return isMapping(found) ? found : {};
}

export function metadataOf(object: Json): Json {
  return at(object, 'metadata');
}

export function nameOf(object: Json): string {
  return String(metadataOf(object)['name']);
}

export function uidOf(object: Json): string {
  return String(metadataOf(object)['uid']);
}

export function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];
}

/** RFC 7386. */
export function mergePatch(before: unknown, patch: unknown): unknown {
  if (!isMapping(patch)) return patch;
  const merged = new Map(Object.entries(isMapping(before) ? before : {}));
  for (const [key, value] of Object.entries(patch))
    if (value === null) merged.delete(key);
    else merged.set(key, mergePatch(merged.get(key), value));
  return Object.fromEntries(merged);
}

/** Whatever the order of their fields. */
export function isSameJson(a: unknown, b: unknown): boolean {
  return JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isMapping(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, one]) => [key, sorted(one)]),
  );
}
