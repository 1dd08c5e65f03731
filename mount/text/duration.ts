/** Time spans as people say them. */

const UNITS = [
  { label: 'd', ms: 86_400_000 },
  { label: 'h', ms: 3_600_000 },
  { label: 'm', ms: 60_000 },
  { label: 's', ms: 1_000 },
] as const;

/** `850ms`, `41s`, `3m12s`, `2h5m`, `9d4h`: the two largest units, the lesser left out when it is zero. */
export function spanText(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  const first = UNITS.findIndex((unit) => ms >= unit.ms);
  const larger = UNITS[first];
  if (larger === undefined) return '0s';
  const whole = Math.floor(ms / larger.ms);
  const lesser = UNITS[first + 1];
  const rest = lesser === undefined ? 0 : Math.floor((ms % larger.ms) / lesser.ms);
  return `${whole}${larger.label}${lesser === undefined || rest === 0 ? '' : `${rest}${lesser.label}`}`;
}

/** The most that a timer can wait. */
const SPAN_MS_MAX = 2 ** 31 - 1;

/**
 * What `spanText` writes, and more units one after the other, and a whole number alone, which is seconds; undefined for
 * anything else, and for more than 24 days.
 */
export function parseSpanMs(text: string): number | undefined {
  const parts = /^\d{1,10}$/.test(text) ? [`${text}s`] : (text.match(/\d{1,10}(?:ms|[dhms])/g) ?? []);
  if (text === '' || (parts.join('') !== text && parts.join('') !== `${text}s`)) return undefined;
  const ms = parts.reduce((sum, part) => {
    const unit = part.endsWith('ms') ? 1 : (UNITS.find(({ label }) => part.endsWith(label))?.ms ?? 0);
    return sum + Number.parseInt(part, 10) * unit;
  }, 0);
  return ms <= SPAN_MS_MAX ? ms : undefined;
}
