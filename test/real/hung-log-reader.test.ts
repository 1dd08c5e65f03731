/** The agent as it is shipped, whose standard error somebody has and does not read, as a journal that hangs. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, readlinkSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { getFromAgent } from '../../agent/cli/api-client.ts';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import { KINDS, openChannel } from '../agent/process/standard-error-channel.ts';
import { scratchDirectory } from '../mount/scratch.ts';
import { until } from '../until.ts';
import { bundle } from './bundle.ts';
import { inPrivateNamespace } from './namespace.ts';

const skip = inPrivateNamespace();

/** As many lines as the agent logs of refused manifests at one look. */
const PODS = 32;
/** Each is 16 KiB of lines: together more than pipe or socket and the process of the reader take. */
const CHANGES = 24;
const ANSWER_MS_MAX = 15_000;

/** Refused: there is no such medium. */
function refusedPods(medium: string): string {
  const pod = (name: string): string => `apiVersion: v1
kind: Pod
metadata: { name: ${name}, namespace: default, uid: u-${name.slice(-8)} }
spec:
  containers: [{ name: one, image: none, volumeMounts: [{ name: one, mountPath: /one }] }]
  volumes: [{ name: one, emptyDir: { medium: ${medium} } }]
`;
  return Array.from({ length: PODS }, (_, turn) => pod(`${'x'.repeat(200)}${turn}`)).join('---\n');
}

function helpersOf(agent: number | undefined): readonly number[] {
  const pids = readFileSync(`/proc/${agent}/task/${agent}/children`, 'utf8').trim();
  return pids.split(' ').filter(Boolean).map(Number);
}

for (const kind of KINDS) {
  test(`an agent whose log goes to a ${kind} that nobody reads goes on, answers and ends`, {
    skip,
  }, async (t) => {
    const scratch = scratchDirectory(t);
    const [root, manifests, socket] = ['root', 'manifests', 'agent.sock'].map((name) => join(scratch, name));
    assert.ok(root !== undefined && manifests !== undefined && socket !== undefined);
    for (const directory of [root, manifests]) mkdirSync(directory, { mode: 0o750 });
    writeFileSync(
      join(scratch, 'config.yaml'),
      JSON.stringify({ root, manifests, socket, node_name: 'hung' }),
    );
    const program = await bundle(scratch, 'agent/main.ts', 'mooring.mjs');
    const words = ['agent', '--config', join(scratch, 'config.yaml'), '--allow-private-mount-namespace'];
    const channel = openChannel(t, kind);
    const agent = spawn(process.execPath, [program, ...words], {
      stdio: ['ignore', 'ignore', channel.given],
    });
    t.after(() => agent.kill('SIGKILL'));
    const ended = once(agent, 'exit');

    const path = '/v1/status';
    const status = () =>
      getFromAgent<StatusDocument>({ socket, path, kind: 'Status', timeoutMs: ANSWER_MS_MAX });
    await until('the agent answers', async () => (await status()).kind === 'ok');
    // A child that inherits a socket makes it blocking for the agent, too; a pipe the agent can have for itself.
    const written = readlinkSync(`/proc/${agent.pid}/fd/2`);
    for (const helper of kind === 'socket' ? helpersOf(agent.pid) : [])
      assert.notEqual(readlinkSync(`/proc/${helper}/fd/2`), written, 'a helper inherits it');
    for (let change = 0; change < CHANGES; change++) {
      writeFileSync(join(scratch, 'new.yaml'), refusedPods(`m${change}`));
      // A child that is given a pipe as its own makes it blocking for all who share it, as those of a shell do.
      if (channel.given !== 'pipe') spawnSync('true', { stdio: ['ignore', 'ignore', channel.given] });
      renameSync(join(scratch, 'new.yaml'), join(manifests, 'pods.yaml'));
      await until(`change ${change} is refused`, async () => {
        const answer = await status();
        assert.equal(answer.kind, 'ok', answer.kind === 'ok' ? '' : answer.message);
        const { rejected } = answer.body.sources;
        return rejected.length === PODS && rejected.every(({ message }) => message.includes(`"m${change}"`));
      });
    }
    agent.kill('SIGTERM');
    channel.begin(agent);
    assert.deepEqual(await ended, [0, null]);
  });
}
