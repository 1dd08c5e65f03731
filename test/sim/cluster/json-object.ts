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

/** One change or comparison of a JSON patch. */
interface Operation {
  readonly op: unknown;
  readonly path: unknown;
  readonly value: unknown;
}

/** RFC 6902, of its operations those that are sent: undefined where one of them fails, and then none counts. */
export function jsonPatch(before: Json, operations: readonly unknown[]): Json | undefined {
  let now: Json | undefined = before;
  for (const one of operations) {
    const { op, path, value } = one as Operation;
    const keys = String(path)
      .split('/')
      .slice(1)
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    if (op === 'add') now = withField(now, keys, value);
    else if (op !== 'test' || !isSameJson(fieldAt(now, keys) ?? null, value)) return undefined;
    if (now === undefined) return undefined;
  }
  return now;
}

/** Undefined where there is none; the API server takes it for null, unless what it would be in is missing, too. */
function fieldAt(object: Json, keys: readonly string[]): unknown {
  const [last = '', ...way] = [...keys].reverse();
  let found: unknown = object;
  for (const key of way.reverse()) found = isMapping(found) ? found[key] : undefined;
  return isMapping(found) ? found[last] : Symbol('nowhere');
}

function withField(object: Json, [key = '', ...rest]: readonly string[], value: unknown): Json | undefined {
  if (rest.length === 0) return { ...object, [key]: value };
  const inner = object[key];
  const changed = isMapping(inner) ? withField(inner, rest, value) : undefined;
  return changed && { ...object, [key]: changed };
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
