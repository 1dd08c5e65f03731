import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build, type Metafile } from 'esbuild';
import { DEFAULT_MANIFEST_LIMITS } from '../../../agent/source/manifests/parse/manifest-limits.ts';
import { createBrokerPool } from '../../../mount/agent-side/broker-pool.ts';
import { createParserBroker } from '../../../mount/agent-side/parser-broker.ts';
import { createToolBroker } from '../../../mount/agent-side/tool-broker.ts';
import type { BrokerPrograms } from '../../../mount/broker/broker-protocol.ts';
import type { AbsolutePath } from '../../../mount/host.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** Node is all of it that there is. */
const command = [process.execPath, '/nowhere/mooring.mjs', 'broker'];

async function built(kind: string): Promise<{ readonly text: string; readonly metafile: Metafile }> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [`agent/process/${kind}-broker-main.ts`],
    bundle: true,
    platform: 'node',
    format: 'esm',
    minify: true,
    write: false,
    metafile: true,
    banner: {
      js: "import { createRequire as own } from 'node:module'; const require = own(import.meta.url);",
    },
    logLevel: 'error',
  });
  return { text: outputFiles[0]?.text ?? '', metafile };
}

const [path, tool, parser] = await Promise.all(['path', 'tool', 'parser'].map(built));
assert.ok(path !== undefined && tool !== undefined && parser !== undefined);
const programs: BrokerPrograms = { path: path.text, tool: tool.text, parser: parser.text };

test('a path broker runs from its text alone, without a file', async (t) => {
  const pool = createBrokerPool({ command, programs, deadlineMs: 60_000, removeTreeDeadlineMs: 60_000 });
  t.after(() => pool.close());
  const facts = await pool.call('inspect', { path: '/' as AbsolutePath });
  assert.equal(facts.ok && facts.value.kind, 'directory');
});

test('so do a tool broker and a parser', async (t: TestContext) => {
  const tools = createToolBroker({ command, programs });
  const texts = createParserBroker({ command, programs });
  t.after(() => Promise.all([tools.close(), texts.close()]));
  const answer = await tools.run({ tool: 'sh', argv: ['-c', 'exit 3'], deadlineMs: 60_000 });
  assert.equal(answer.ok && answer.value.exitCode, 3);
  const bytes = Buffer.from('a: 1');
  const parsed = await texts.parse({ origin: 'a.yaml', bytes, limits: DEFAULT_MANIFEST_LIMITS });
  assert.equal(parsed.kind, 'parsed');
});

test('a path broker is given no package and nothing of the agent, for there are several', () => {
  const inputs = Object.keys(path.metafile.inputs);
  const foreign = inputs.filter((input) => /node_modules|^(agent|reconciler|kubernetes)\//.test(input));
  assert.deepEqual(foreign, ['agent/process/path-broker-main.ts']);
});
