/** JSON read with two questions more than JSON.parse asks: how deep is it, and is a key written twice? */

/** `invalid`: not JSON (or deeper than allowed); it may still be YAML, which says where it is broken. */
export type JsonReading =
  | { readonly kind: 'invalid' }
  | { readonly kind: 'value'; readonly value: unknown; readonly duplicate: string | undefined };

/**
 * `duplicate` is the first key that stands twice in one object: JSON.parse would keep the last of the two without a
 * word. Messages of JSON.parse are dropped, because they quote the text, which may hold a secret.
 */
export function readJson(text: string, depthMax: number): JsonReading {
  const value = parsed(text);
  if (value === undefined) return { kind: 'invalid' };
  const scan = scanKeys(text, depthMax);
  return scan === undefined
    ? { kind: 'invalid' }
    : { kind: 'value', value: value.value, duplicate: scan.duplicate };
}

function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** Assumes text that JSON.parse accepts; undefined when it is deeper than allowed. */
function scanKeys(text: string, depthMax: number): { readonly duplicate: string | undefined } | undefined {
  /** The keys seen in each open object; undefined for an open list. */
  const open: (Set<string> | undefined)[] = [];
  let duplicate: string | undefined;
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    if (sign === '{' || sign === '[') {
      open.push(sign === '{' ? new Set() : undefined);
      if (open.length > depthMax) return undefined;
    } else if (sign === '}' || sign === ']') {
      open.pop();
    } else if (sign === '"') {
      const end = endOfString(text, at);
      if (isKey(text, end)) {
        const key = JSON.parse(text.slice(at, end)) as string;
        if (open.at(-1)?.has(key) === true) duplicate ??= key;
        open.at(-1)?.add(key);
      }
      at = end - 1;
    }
  }
  return { duplicate };
}

/** The index after the closing quote of the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

const COLON_NEXT = /[ \t\r\n]*:/y;

function isKey(text: string, end: number): boolean {
  COLON_NEXT.lastIndex = end;
  return COLON_NEXT.test(text);
}
