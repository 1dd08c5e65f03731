/** Questions about values as JSON has them. Pure. */

export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value; empty when it is no mapping. */
export function mappingIn(value: unknown): Readonly<Record<string, unknown>> {
  return isMapping(value) ? value : {};
}

/** The texts of a list; empty when it is none. */
export function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];
}
