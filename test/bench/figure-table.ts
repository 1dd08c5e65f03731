/** The figures as a table for people. Pure. */
import type { Figure, Group } from './figures.ts';

const TITLE_COLUMNS = 62;
const VALUE_COLUMNS = 10;

export function figureTable(groups: readonly Group[]): string {
  return groups.map(({ title, figures }) => ['', title, ...figures.map(lineOf)].join('\n')).join('\n');
}

function lineOf({ title, value, p99, unit, target }: Figure): string {
  const second = p99 === undefined ? '' : valueText(p99);
  const cells = [
    `  ${title.padEnd(TITLE_COLUMNS)}`,
    valueText(value).padStart(VALUE_COLUMNS),
    second.padStart(VALUE_COLUMNS),
    ` ${unit.padEnd(8)}`,
    target === undefined ? '' : `${target.text.padEnd(12)} ${target.met ? 'met' : 'MISSED'}`,
  ];
  return cells.join(' ').trimEnd();
}

/** Three digits that mean something. */
function valueText(value: number): string {
  if (!Number.isFinite(value)) return '-';
  if (Number.isInteger(value)) return String(value);
  return value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
}
