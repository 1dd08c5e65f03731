/** Kubernetes quantities (`10Gi`, `500M`, `1.5e3`), read as whole bytes. */
import { type Bytes, bytesFrom } from '../../plugins/volume.ts';

const QUANTITY =
  /^\+?([0-9]{1,19}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(?:[eE]([-+]?[0-9]{1,2})|([numk]|[MGTPE]i?|Ki))?$/;

/** In billionths of a byte, so that `n` is a whole number too: Kubernetes writes it where `m` would not be exact. */
const FACTOR = {
  n: 1n,
  u: 10n ** 3n,
  m: 10n ** 6n,
  '': 10n ** 9n,
  k: 10n ** 12n,
  M: 10n ** 15n,
  G: 10n ** 18n,
  T: 10n ** 21n,
  P: 10n ** 24n,
  E: 10n ** 27n,
  Ki: (10n ** 9n) << 10n,
  Mi: (10n ** 9n) << 20n,
  Gi: (10n ** 9n) << 30n,
  Ti: (10n ** 9n) << 40n,
  Pi: (10n ** 9n) << 50n,
  Ei: (10n ** 9n) << 60n,
} as const satisfies Record<string, bigint>;

/** CSI counts bytes in int64. */
const BYTES_MAX = 2n ** 63n - 1n;

/** Rounded up, as Kubernetes does; undefined when it is not a quantity, is negative, or has no exact whole number. */
export function parseQuantityBytes(text: string): number | undefined {
  const bytes = parseQuantity(text);
  return bytes !== undefined && bytes <= Number.MAX_SAFE_INTEGER ? Number(bytes) : undefined;
}

/** Rounded up, and exact to the byte; undefined when it is not a quantity, is negative, or more than int64 holds. */
export function parseExactBytes(text: string): Bytes | undefined {
  const bytes = parseQuantity(text);
  return bytes !== undefined && bytes <= BYTES_MAX ? bytesFrom(bytes) : undefined;
}

/** Rounded up to thousandths, which `m` means; undefined when it is not a quantity or is negative. */
export function parseThousandths(text: string): bigint | undefined {
  const [, digits, exponent = '0', suffix = ''] = QUANTITY.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const [whole = '', fraction = ''] = digits.split('.');
  const power = Number(exponent) - fraction.length;
  const count = BigInt(whole + fraction) * FACTOR[suffix as keyof typeof FACTOR];
  return dividedUp(count * 10n ** BigInt(Math.max(power, 0)), FACTOR.m * 10n ** BigInt(Math.max(-power, 0)));
}

/** Rounded up. */
export function wholeUnits(thousandths: bigint): bigint {
  return dividedUp(thousandths, FACTOR[''] / FACTOR.m);
}

/** Neither is negative, and the divisor is not 0. */
export function dividedUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}

function parseQuantity(text: string): bigint | undefined {
  const thousandths = parseThousandths(text);
  return thousandths === undefined ? undefined : wholeUnits(thousandths);
}
