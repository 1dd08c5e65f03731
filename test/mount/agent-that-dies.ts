/**
 * An agent in its own process, for tests that kill it: holds the helpers lock, has a path broker, and a tool broker
 * that runs `sleep`. argv: lock-file seconds. Says its brokers' pids on standard output when all of it runs.
 */
import { writeSync } from 'node:fs';
import type { AbsolutePath } from '../../mount/host.ts';
import { waitForHelpers } from '../../mount/process/instance-lock.ts';
import { createLinuxHost } from '../../mount/agent-side/linux-host.ts';
import { createToolBroker } from '../../mount/agent-side/tool-broker.ts';
import { BROKER_COMMAND } from '../real/broker-command.ts';

const [lockFile = '', seconds = '0'] = process.argv.slice(2);
const lock = await waitForHelpers(lockFile as AbsolutePath);
if (!lock.ok) throw new Error(lock.failure.message);
const helpersDescriptor = lock.value.descriptor;
const host = await createLinuxHost({
  remote: async () => ({ kind: 'broken', because: 'unreachable', message: '' }),
  watch: () => () => {},
  brokerCommand: BROKER_COMMAND,
  helpersDescriptor,
});
await host.inspect('/' as AbsolutePath);
const tools = createToolBroker({ command: BROKER_COMMAND, helpersDescriptor });
await tools.run({ tool: 'true', argv: [], deadlineMs: 10_000 });
void tools.run({ tool: 'sleep', argv: [seconds], deadlineMs: 60_000 });
// The second answer says that the first request has been begun.
await tools.run({ tool: 'true', argv: [], deadlineMs: 10_000 });
writeSync(1, `${JSON.stringify([...host.brokers(), ...tools.pids()])}\n`);
