/**
 * The real agent in its own process, as main composes it, over a Host that kills it at a chosen effect.
 * Says on standard output, one JSON line each: `{"effect":n,"name":"…"}` before an effect, and `{"settled":true}`
 * every time when everything wanted is there, nothing unwanted is left, and nothing runs. On standard input it can be
 * given another crash point, one JSON line `{"point":"…","effect":n}`: effects are counted anew from then on, and
 * `{"armed":true}` is said. Ended by SIGTERM it says first what it waits for.
 *
 * argv: root manifests-directory crash-point crash-effect broker-bundle
 */
import { mkdirSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { createAgent } from '../../agent/node/agent.ts';
import { parseConfig } from '../../agent/config/parse-config.ts';
import { createDirectoryWatcher } from '../../agent/source/manifests/directory-watcher.ts';
import { createTrustedManifests } from '../../agent/source/manifests/trusted-manifests.ts';
import { NO_TOKENS } from '../../agent/source/token-source.ts';
import { isSettled } from '../../agent/node/settled.ts';
import { below } from '../../mount/host.ts';
import { waitForHelpers } from '../../mount/process/instance-lock.ts';
import { createLinuxHost, type LinuxHost } from '../../mount/agent-side/linux-host.ts';
import { createGrpcRemote } from '../../plugins/csi/wire/grpc.ts';
import { IN_PROCESS_PARSER } from '../agent/in-process-parser.ts';
import { isMoreThan } from '../../plugins/volume.ts';
import type { Log, LogFields } from '../../mount/process/log.ts';
import { type CrashPlan, type CrashPoint, crashingHost } from './crashing-host.ts';

const [root = '', manifests = '', point = 'before', effect = '0', broker = ''] = process.argv.slice(2);
const say = (line: object): void => {
  writeSync(1, `${JSON.stringify(line)}\n`);
};

const reading = parseConfig(
  {
    root,
    manifests,
    socket: `${root}/agent.sock`,
    allow_private_mount_namespace: true,
    settle_ms: 20,
    // What goes while the agent is dead is to be gone.
    vanished_hold_ms: 0,
    back_off: { first_ms: 50, max_ms: 1_000 },
    record_store: process.env['SWEEP_RECORDS'] ?? 'journal',
  },
  {},
  'sweep-node',
);
if (!reading.ok) throw new Error(JSON.stringify(reading.problems));

const own = below(reading.value.root, 'mooring');
mkdirSync(own, { recursive: true, mode: 0o750 });
const helpers = await waitForHelpers(below(own, 'helpers.lock'));
if (!helpers.ok) throw new Error(helpers.failure.message);
const watcher = createDirectoryWatcher({ timer: (delayMs, fire) => real.timer(delayMs, fire) });
const real: LinuxHost = await createLinuxHost({
  remote: createGrpcRemote().call,
  watch: watcher.watch,
  brokerCommand: [process.execPath, broker],
  helpersDescriptor: helpers.value.descriptor,
});
const crash = crashingHost(real, { point: point as CrashPoint, effect: Number(effect) }, (count, name) =>
  say({ effect: count, name }),
);
const { host } = crash;
const line = (level: string) => (event: string, fields?: LogFields) => {
  if (process.env['SWEEP_LOG'] === '1')
    process.stderr.write(`${level} ${event} ${JSON.stringify(fields ?? {})}\n`);
};
const log: Log = { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') };
const config = reading.value;
const sources = [createTrustedManifests({ host, parser: IN_PROCESS_PARSER, config, log })];
const agent = createAgent({ host, sources, tokens: NO_TOKENS, config, log });
const started = await agent.start();
if (!started.ok) throw new Error(started.failure.message);

let announced = false;
function look(): void {
  const view = agent.view();
  const { reconciler } = view;
  const actual = reconciler.actual();
  const settled =
    isSettled(view) &&
    [...reconciler.desired().volumes.values()].every(({ spec, size }) => {
      const known = actual.get(spec.id)?.sizeBytes;
      return size === undefined || known === undefined || !isMoreThan(size.bytes, known);
    });
  if (settled && !announced) say({ settled: true, empty: reconciler.desired().volumes.size === 0 });
  announced = settled;
}
process.once('SIGTERM', () => {
  const { reconciler, desiredObjects } = agent.view();
  const { complete } = desiredObjects;
  say({ waitsFor: { complete, running: reconciler.running(), obstacles: reconciler.obstacles() } });
  process.exit(1);
});
agent.onChange(() => setImmediate(look));
setImmediate(look);
createInterface(process.stdin).on('line', (text) => {
  crash.plan(JSON.parse(text) as CrashPlan);
  say({ armed: true });
});
