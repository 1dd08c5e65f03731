/** Kubernetes quantities (`10Gi`, `500M`, `1.5e3`), read as whole bytes. */
const QUANTITY =
  /^\+?([0-9]{1,18}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(?:([eE][-+]?[0-9]{1,2})|(m|k|[MGTPE]i?|Ki))?$/;

const SUFFIX = {
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
} as const satisfies Record<string, number>;

/** Rounded up, as Kubernetes does; undefined when it is not a quantity, is negative, or has no exact whole number. */
export function parseQuantityBytes(text: string): number | undefined {
  const [, digits, exponent, suffix] = QUANTITY.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const factor = suffix === undefined ? 1 : (SUFFIX[suffix as keyof typeof SUFFIX] ?? Number.NaN);
  const bytes = Math.ceil(Number(`${digits}${exponent ?? ''}`) * factor);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}
