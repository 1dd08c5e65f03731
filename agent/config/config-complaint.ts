/** What is said to a person whose configuration cannot be used. Pure. */
import type { ConfigProblem } from './config.ts';

/** One line for a person: `back_off.first_ms: -1: must be a whole number from 10 to 60000 (milliseconds)`. */
export function describeProblem({ key, value, message }: ConfigProblem): string {
  return value === undefined ? `${key}: ${message}` : `${key}: ${value}: ${message}`;
}

/** All problems, with a line for each; ends with a line end. */
export function configurationComplaint(problems: readonly ConfigProblem[]): string {
  const lines = problems.map((problem) => `  ${describeProblem(problem)}\n`);
  return `mooring: the configuration cannot be used:\n${lines.join('')}`;
}
