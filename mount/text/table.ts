/** Plain text tables for people: aligned, cut to the terminal's width, coloured only where that is wanted. */

/** SGR codes of ECMA-48; `plain` is none. */
const COLOURS = { plain: '', dim: '2', bold: '1', red: '31', green: '32', yellow: '33', cyan: '36' } as const;
export type Colour = keyof typeof COLOURS;

export interface Cell {
  readonly text: string;
  readonly colour?: Colour;
}

export interface Column {
  readonly title: string;
  /** Characters it keeps when the line is too long; a column without it is never cut. */
  readonly charactersMin?: number;
  readonly align?: 'left' | 'right';
}

/** A row of cells, or a line of its own below the row before it. */
export type Row = readonly Cell[] | { readonly below: Cell; readonly indent: number };

export interface Look {
  /** Undefined: nobody measures (a pipe, a file), nothing is cut. */
  readonly widthMax: number | undefined;
  readonly colour: boolean;
  /** False: the terminal may not know `…`, `●` and their like. */
  readonly unicode: boolean;
}

const GAP = '  ';
const LINE_BELOW_CHARACTERS_MIN = 20;

/** Lines without trailing blanks; the cells hold printable text (printable.ts) without tabs. */
export function renderTable(columns: readonly Column[], rows: readonly Row[], look: Look): readonly string[] {
  const cells = rows.filter(isCells);
  const widths = columns.map((column, index) => {
    return Math.max(charactersOf(column.title), ...cells.map((row) => charactersOf(row[index]?.text ?? '')));
  });
  fit(widths, columns, look.widthMax);
  const line = (row: readonly Cell[]): string => {
    const parts = columns.map(({ align }, index) => {
      const { text = '', colour } = row[index] ?? {};
      const width = widths[index] ?? 0;
      const cut = shorten(text, width, look);
      const blanks = ' '.repeat(width - charactersOf(cut));
      const painted = paint(cut, colour, look);
      return align === 'right' ? blanks + painted : painted + blanks;
    });
    return parts.join(GAP).trimEnd();
  };
  const title = line(columns.map((column) => ({ text: column.title, colour: 'bold' })));
  return [title, ...rows.flatMap((row) => (isCells(row) ? [line(row)] : lineBelow(row, look)))];
}

/** Colours and nothing else; without colour the text itself. */
export function paint(text: string, colour: Colour | undefined, { colour: wanted }: Look): string {
  if (!wanted || colour === undefined || colour === 'plain' || text === '') return text;
  return `\u001b[${COLOURS[colour]}m${text}\u001b[0m`;
}

/** At most `charactersMax` characters, the last ones an ellipsis when something was cut. */
export function shorten(text: string, charactersMax: number, { unicode }: Pick<Look, 'unicode'>): string {
  const characters = [...text];
  if (characters.length <= charactersMax) return text;
  const ellipsis = unicode ? '…' : '...';
  return charactersMax <= ellipsis.length
    ? characters.slice(0, Math.max(0, charactersMax)).join('')
    : characters.slice(0, charactersMax - ellipsis.length).join('') + ellipsis;
}

/**
 * Breaks text at blanks into lines of at most `charactersMax` (Infinity: one line); a longer word stays whole on its
 * own line.
 */
export function wrap(text: string, charactersMax: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && charactersOf(last) + 1 + charactersOf(word) <= charactersMax) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else {
      lines.push(word);
    }
  }
  return lines;
}

function isCells(row: Row): row is readonly Cell[] {
  return Array.isArray(row);
}

function lineBelow({ below, indent }: Exclude<Row, readonly Cell[]>, look: Look): readonly string[] {
  // Lines after the first stand under the text, not under its mark.
  const mark = /^\S{1,2} /.exec(below.text)?.[0] ?? '';
  const width = Math.max(
    LINE_BELOW_CHARACTERS_MIN,
    (look.widthMax ?? Number.POSITIVE_INFINITY) - indent - mark.length,
  );
  return wrap(below.text.slice(mark.length), width).map((line, index) => {
    return (
      ' '.repeat(indent) + (index === 0 ? mark : ' '.repeat(mark.length)) + paint(line, below.colour, look)
    );
  });
}

/** Takes from the widest column that may shrink, character by character, until the line fits or nothing can give. */
function fit(widths: number[], columns: readonly Column[], widthMax: number | undefined): void {
  if (widthMax === undefined) return;
  let excess = widths.reduce((sum, width) => sum + width, GAP.length * (columns.length - 1)) - widthMax;
  for (; excess > 0; excess -= 1) {
    let widest = -1;
    columns.forEach(({ charactersMin }, index) => {
      const width = widths[index] ?? 0;
      if (charactersMin !== undefined && width > charactersMin && width > (widths[widest] ?? 0))
        widest = index;
    });
    if (widest < 0) return;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
}

function charactersOf(text: string): number {
  return [...text].length;
}
