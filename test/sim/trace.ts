/** What happened, in order: the last lines for people, a hash of all for machines. */

/** No secret of any simulated object is without this; where it shows, a secret leaked (INV-25). */
export const CANARY = 'CANARY';

const LINES_KEPT = 20_000;

export interface Trace {
  add(line: string): void;
  /** The newest lines, oldest first. */
  tail(count: number): readonly string[];
  /** Equal for equal traces; 16 hexadecimal digits. */
  hash(): string;
  length(): number;
}

/** Two FNV-1a streams: not for enemies, only for "is this run the same as that one?". */
export function createTrace(nowMs: () => number): Trace {
  const lines: string[] = [];
  let left = 0x811c9dc5;
  let right = 0x050c5d1f;
  let count = 0;
  return {
    add: (text) => {
      const line = `${nowMs()} ${text}`;
      // In variables of its own the loop is several times as fast as in those that outlive it.
      let [first, second] = [left, right];
      for (let at = 0; at < line.length; at += 1) {
        const code = line.charCodeAt(at);
        first = Math.imul(first ^ code, 0x01000193);
        second = Math.imul(second ^ code, 0x01000193) ^ at;
      }
      left = first;
      right = second;
      count += 1;
      lines.push(line);
      if (lines.length > 2 * LINES_KEPT) lines.splice(0, LINES_KEPT);
    },
    tail: (wanted) => lines.slice(-wanted),
    hash: () => [left, right].map((half) => (half >>> 0).toString(16).padStart(8, '0')).join(''),
    length: () => count,
  };
}
