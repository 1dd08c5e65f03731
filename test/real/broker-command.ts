/** How tests start brokers: from source. */
import { fileURLToPath } from 'node:url';

export const BROKER_COMMAND: readonly string[] = [
  process.execPath,
  '--import',
  import.meta.resolve('tsx'),
  fileURLToPath(new URL('../broker-main.ts', import.meta.url)),
];

/** The parser knows manifests, which the floor of the other brokers does not. */
export const PARSER_COMMAND: readonly string[] = [
  process.execPath,
  '--import',
  import.meta.resolve('tsx'),
  fileURLToPath(new URL('../../agent/main.ts', import.meta.url)),
  'broker',
];
