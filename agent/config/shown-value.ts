/** How a value of the configuration is shown in a problem. */
import { printable } from '../../mount/text/printable.ts';

export function shown(value: unknown): string {
  return value === undefined ? 'nothing' : printable(JSON.stringify(value) ?? String(value), 80);
}
