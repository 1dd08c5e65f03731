/**
 * `tsx test/interop/build-programs.ts [NAME…]`: builds those programs, or all, which takes a quarter of an hour when
 * nothing is in Go's cache. The gate begins with it, beside the unit tests; who needs one later waits for what is left.
 */
import { buildPrograms, PROGRAM_NAMES } from './go-program.ts';

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !PROGRAM_NAMES.some((known) => known === name));
if (unknown.length > 0) {
  process.stderr.write(`${unknown.join(', ')}: there is ${PROGRAM_NAMES.join(', ')}\n`);
  process.exitCode = 2;
} else {
  const lacking = buildPrograms(PROGRAM_NAMES.filter((name) => wanted.length === 0 || wanted.includes(name)));
  // The suites that need them say so again, and skip.
  if (lacking !== undefined) process.stderr.write(`\n*** NOT BUILT: ${lacking} ***\n\n`);
}
