/** Manifests are read in a process of their own, and the agent's never loads what reads them. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { createChildParser } from '../../../../../agent/source/manifests/parse/child-parser.ts';
import { createParserBroker } from '../../../../../mount/agent-side/parser-broker.ts';
import { manifestParserContract } from '../../../../contract/manifest-parser.ts';
import { PARSER_COMMAND } from '../../../../real/broker-command.ts';
import { IN_PROCESS_PARSER } from '../../../in-process-parser.ts';

const broker = createParserBroker({ command: PARSER_COMMAND });
after(() => broker.close());

manifestParserContract('in a process of its own', createChildParser(broker));
manifestParserContract('in this process', IN_PROCESS_PARSER);

test('nothing that the agent runs reaches the YAML package', async () => {
  const { metafile } = await build({
    entryPoints: [fileURLToPath(new URL('../../../../../agent/process/run-agent.ts', import.meta.url))],
    bundle: true,
    platform: 'node',
    format: 'esm',
    write: false,
    metafile: true,
    logLevel: 'error',
  });
  const inputs = Object.keys(metafile.inputs);
  assert.ok(inputs.some((one) => one.includes('node_modules/chokidar')));
  assert.deepEqual(
    inputs.filter((one) => one.includes('node_modules/yaml')),
    [],
  );
});
