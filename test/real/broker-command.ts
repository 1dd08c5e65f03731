/** How tests start brokers. */
import { programArguments } from '../machine/program.ts';

export const BROKER_COMMAND: readonly string[] = [
  process.execPath,
  ...programArguments('test/broker-main.ts'),
];

/** The parser knows manifests, which the floor of the other brokers does not. */
export const PARSER_COMMAND: readonly string[] = [
  process.execPath,
  ...programArguments('agent/main.ts'),
  'broker',
];
