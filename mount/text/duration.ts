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
