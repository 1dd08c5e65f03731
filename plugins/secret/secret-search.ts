/** Looks in one text for what must not be shown of it, through all its readings at once. */
import { type Reading, readCharacters, readHexDigits, readNumbers, UNESCAPERS } from './text-reading.ts';

/** What has to be met for a secret to be there: characters, digits or bytes; what may stand between is no matter. */
export interface SecretForm {
  readonly alphabet: 'characters' | 'base64' | 'hex' | 'numbers';
  /** The first of them, to look whether it can be at all. */
  readonly head: readonly number[];
  readonly values: () => readonly number[];
}

export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface SecretSearch {
  look(form: SecretForm): void;
  /** They are in the order of the text, apart from each other; undefined when looking on would have taken too long. */
  found(): readonly Span[] | undefined;
}

/** A few tens of milliseconds. A driver's sentence and a key of 4 KiB take a hundredth of them. */
const STEPS_MAX = 400_000;
/** So much of a secret, and the rest was cut off, by the end of the text or a mark of that; or half of it, if less. */
const REST_LENGTH_MIN = 8;
const HALF_LENGTH_MIN = 4;

/** A text that was made of another, and where each of its characters, and its end, was in that; undefined: there. */
interface Cut {
  readonly text: string;
  readonly places: readonly number[] | undefined;
}

interface View extends Cut {
  readonly readings: Readonly<Record<'characters' | 'hex' | 'numbers', Reading>>;
  readonly starts: Readonly<Record<'characters' | 'hex' | 'numbers', Starts>>;
}

/** Places by the values of the first two steps from there. */
type Starts = ReadonlyMap<number, ReadonlySet<number>>;

/** What stands for the end of a line within an escape that it has broken in two. */
const LINE_ENDS = [/\r?\n[ \t]*/g, /\\\r?\n[ \t]*/g, /(?:\\+r)?\\+n[ \t]*|\\*\r?\n[ \t]*/g];

/** One view for each layer of quoting that somebody may have put around another. */
const VIEWS_MAX = 12;
/** More than there are code points. */
const CODES = 0x110000;

/** How programs write that they have left something out, in or behind the quotes round the rest. */
const CUT_MARK = /(?:\\*["'`])? ?(?:\.{3}|…|\\+u2026|\*{3}|[[(<](?:\.{3}|…|truncated))/iy;

class TooLong extends Error {}

export function createSecretSearch(text: string, isCut: boolean): SecretSearch {
  let stepsLeft = STEPS_MAX;
  let views: readonly View[] | undefined;
  let tooLong = false;
  const spans: Span[] = [];

  const count = (): void => {
    stepsLeft -= 1;
    if (stepsLeft < 0) throw new TooLong();
  };

  function look({ alphabet, head, values }: SecretForm): void {
    const kind = alphabet === 'base64' ? 'characters' : alphabet;
    let all: readonly number[] | undefined;
    views ??= viewsOf(text, count);
    for (const view of views) {
      for (const from of startsOf(view.starts[kind], alphabet, head)) {
        all ??= values();
        const to = endOf(view, view.readings[kind], from, alphabet, all);
        if (to !== undefined) spans.push(spanOf(view, from, alphabet === 'base64' ? padded(view, to) : to));
      }
    }
  }

  /** Where the values have been met when read from there. */
  function endOf(
    { text: read }: View,
    reading: Reading,
    from: number,
    alphabet: SecretForm['alphabet'],
    values: readonly number[],
  ): number | undefined {
    let places = new Set([from]);
    for (const [met, value] of values.entries()) {
      const next = new Set<number>();
      let atEnd = false;
      // A set takes what is added while it is gone through: what may stand between is passed.
      for (const place of places) {
        if (place >= read.length) atEnd = true;
        for (const step of reading(place)) {
          count();
          if (step.value === undefined) places.add(step.to);
          else if (isSame(alphabet, step.value, value)) next.add(step.to);
        }
      }
      if (next.size === 0) {
        if (atEnd && isEnough(met, values.length, isCut)) return read.length;
        return isEnough(met, values.length, false) ? firstCut(read, places) : undefined;
      }
      places = next;
    }
    return Math.max(...places);
  }

  return {
    look(form) {
      if (tooLong) return;
      try {
        look(form);
      } catch (error) {
        if (!(error instanceof TooLong)) throw error;
        tooLong = true;
      }
    },
    found: () => (tooLong ? undefined : merged(spans)),
  };
}

/** The first of the places at which a mark says that more was cut off. */
function firstCut(text: string, places: Iterable<number>): number | undefined {
  const cuts = [...places].filter((place) => {
    CUT_MARK.lastIndex = place;
    return CUT_MARK.test(text);
  });
  return cuts.length === 0 ? undefined : Math.min(...cuts);
}

function isEnough(met: number, length: number, isCut: boolean): boolean {
  const half = Math.max(HALF_LENGTH_MIN, Math.ceil(length / 2));
  return met >= (isCut ? HALF_LENGTH_MIN : Math.min(REST_LENGTH_MIN, half));
}

/** The text, without line ends, and with one or two layers of escapes less. */
function viewsOf(text: string, count: () => void): readonly View[] {
  const whole: Cut = { text, places: undefined };
  const cuts = [whole, ...LINE_ENDS.map((lineEnd) => without(text, lineEnd))];
  const known = new Map(cuts.map((one) => [one.text, one]));
  // A map takes what is added while it is gone through, in order.
  for (const cut of known.values()) {
    for (const lessOf of UNESCAPERS) {
      const less = unescaped(cut, lessOf, count);
      if (known.size < VIEWS_MAX && !known.has(less.text)) known.set(less.text, less);
    }
  }
  return [...known.values()].map((cut) => viewOf(cut, count));
}

function without(text: string, what: RegExp): Cut {
  let kept = '';
  const places: number[] = [];
  let at = 0;
  const keep = (to: number): void => {
    kept += text.slice(at, to);
    for (; at < to; at += 1) places.push(at);
  };
  for (const match of text.matchAll(what)) {
    keep(match.index);
    at = match.index + match[0].length;
  }
  keep(text.length);
  return { text: kept, places: [...places, text.length] };
}

function unescaped({ text, places }: Cut, lessOf: (typeof UNESCAPERS)[number], count: () => void): Cut {
  let kept = '';
  const kepts: number[] = [];
  for (let at = 0; at < text.length; ) {
    count();
    const step = lessOf(text, at);
    const known = step?.value !== undefined && step.value < CODES ? step.value : undefined;
    const one = known === undefined ? (text[at] ?? '') : String.fromCodePoint(known);
    for (let unit = 0; unit < one.length; unit += 1) kepts.push(places?.[at] ?? at);
    kept += one;
    at = known === undefined ? at + 1 : (step?.to ?? at + 1);
  }
  return { text: kept, places: [...kepts, places?.[text.length] ?? text.length] };
}

function viewOf({ text, places }: Cut, count: () => void): View {
  const readings = {
    characters: readCharacters(text),
    hex: readHexDigits(text),
    numbers: readNumbers(text),
  };
  const starts = (reading: Reading): Starts => startsIn(text, reading, count);
  return {
    text,
    places,
    readings,
    starts: {
      characters: starts(readings.characters),
      hex: starts(readings.hex),
      numbers: starts(readings.numbers),
    },
  };
}

function startsIn(text: string, reading: Reading, count: () => void): Starts {
  const starts = new Map<number, Set<number>>();
  for (let from = 0; from < text.length; from += 1) {
    for (const first of reading(from)) {
      if (first.value === undefined) continue;
      const places = new Set([first.to]);
      for (const place of places) {
        for (const second of reading(place)) {
          count();
          if (second.value === undefined) places.add(second.to);
          else {
            const key = first.value * CODES + second.value;
            const known = starts.get(key);
            if (known === undefined) starts.set(key, new Set([from]));
            else known.add(from);
          }
        }
      }
    }
  }
  return starts;
}

function* startsOf(
  starts: Starts,
  alphabet: SecretForm['alphabet'],
  values: readonly number[],
): Iterable<number> {
  const [first, second] = values;
  if (first === undefined || second === undefined) return;
  for (const one of sameAs(alphabet, first)) {
    for (const other of sameAs(alphabet, second)) yield* starts.get(one * CODES + other) ?? [];
  }
}

/** The two alphabets of base64, and the two cases of hexadecimal digits. */
function sameAs(alphabet: SecretForm['alphabet'], value: number): readonly number[] {
  if (alphabet === 'base64') return value === 0x2b ? [0x2b, 0x2d] : value === 0x2f ? [0x2f, 0x5f] : [value];
  return alphabet === 'hex' && value >= 0x61 ? [value, value - 0x20] : [value];
}

function isSame(alphabet: SecretForm['alphabet'], met: number, value: number): boolean {
  return met === value || sameAs(alphabet, value).includes(met);
}

/** The last digit holds some bits only, and padding says how many bytes there were. */
function padded({ text }: View, to: number): number {
  const rest = /^(?:[\w+/-])?(?:=|%(?:25)*3[Dd]|\\+u003[Dd]){0,2}/.exec(text.slice(to, to + 64));
  return to + (rest?.[0].length ?? 0);
}

function spanOf({ places }: View, from: number, to: number): Span {
  return { from: places?.[from] ?? from, to: places?.[to] ?? to };
}

function merged(spans: readonly Span[]): readonly Span[] {
  const ordered = [...spans].sort((a, b) => a.from - b.from);
  const all: Span[] = [];
  for (const span of ordered) {
    const last = all.at(-1);
    if (last !== undefined && span.from <= last.to)
      all[all.length - 1] = { from: last.from, to: Math.max(last.to, span.to) };
    else all.push(span);
  }
  return all;
}
