/**
 * Every test that failed, once more at the very end of a run: there are two thousand, and whoever sees only the end of
 * the log must still learn which one it was. Read from what node's runner prints in TAP (https://testanything.org).
 */

/** What is shown of one failure, in lines: where it is, the message and the top of the stack. */
const LINES_MAX = 30;

/** The failures of a TAP report: of each the line that tells it and the beginning of its YAML block. */
export class Failures {
  readonly #found: string[][] = [];
  #open: string[] | undefined;

  add(line: string): void {
    if (/^\s*not ok /.test(line)) {
      this.#open = [line];
      this.#found.push(this.#open);
    } else if (/^\s*\.\.\.$/.test(line)) {
      this.#open = undefined;
    } else if (this.#open !== undefined && this.#open.length < LINES_MAX) {
      this.#open.push(line);
    }
  }

  /** For the end of the log; empty if all is well. A test that holds others fails with them and is shown, too. */
  toString(): string {
    if (this.#found.length === 0) return '';
    return `\n=== failed:\n${this.#found.map((lines) => lines.join('\n')).join('\n')}\n`;
  }
}
