/** Bytes for people. */

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'] as const;

/** `10 GiB`, `1.5 GiB`: decimal digits in the largest binary unit, cut (never rounded up) to one decimal. */
export function sizeText(bytes: string): string {
  let unit = 0;
  let tenths = BigInt(bytes) * 10n;
  while (tenths >= 10_240n && unit < UNITS.length - 1) {
    tenths /= 1_024n;
    unit += 1;
  }
  const fraction = unit > 0 && tenths % 10n !== 0n ? `.${tenths % 10n}` : '';
  return `${tenths / 10n}${fraction} ${UNITS[unit]}`;
}
