/** `tsx test/machine/provide.ts PURPOSE… [--no-install]`: has the tools for each, or says what to do and exits 1. */
import { NEEDED, NO_INSTALL, type Purpose, provideTools } from './system-tools.ts';

for (const word of process.argv.slice(2).filter((one) => one !== NO_INSTALL)) {
  const lacking = word in NEEDED ? provideTools(word as Purpose) : `no such purpose: ${word}`;
  if (lacking === undefined) continue;
  process.stderr.write(`${lacking}\n`);
  process.exitCode = 1;
}
