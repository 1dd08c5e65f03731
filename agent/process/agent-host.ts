/** The machine as the agent process has it: its host with all brokers, and the reader of manifests. */
import { createLinuxHost, type LinuxHost } from '../../mount/agent-side/linux-host.ts';
import { createParserBroker } from '../../mount/agent-side/parser-broker.ts';
import { createGrpcRemote } from '../../plugins/csi/wire/grpc.ts';
import type { Config } from '../config/config.ts';
import { createDirectoryWatcher } from '../source/manifests/directory-watcher.ts';
import { createChildParser } from '../source/manifests/parse/child-parser.ts';
import type { ManifestParser } from '../source/manifests/parse/manifest-parser.ts';
import { BROKER_PROGRAMS } from './broker-programs.ts';

export interface AgentHost {
  readonly host: LinuxHost;
  readonly parser: ManifestParser;
  readonly closeHost: () => Promise<void>;
}

/** Its helpers hold the descriptor of their lock until the last of them has ended. */
export async function createAgentHost(
  { config, brokerCommand }: { readonly config: Config; readonly brokerCommand: readonly string[] },
  helpersDescriptor: number,
  onLastWords?: (words: string) => void,
): Promise<AgentHost> {
  const remote = createGrpcRemote();
  // The watcher wants the host's timer and the host the watcher; nothing watches before both are there.
  const watcher = createDirectoryWatcher({ timer: (delayMs, fire) => host.timer(delayMs, fire) });
  const { pathDeadlineMs } = config;
  const host: LinuxHost = await createLinuxHost({
    remote: remote.call,
    watch: watcher.watch,
    brokerCommand,
    brokerPrograms: BROKER_PROGRAMS,
    helpersDescriptor,
    onLastWords,
    immutableMountPoints: config.immutableMountPoints,
    deadlinesMs: { path: pathDeadlineMs, mount: pathDeadlineMs, unmount: pathDeadlineMs },
  });
  // It touches nothing of the machine, so the next agent need not wait for it: no helpers lock.
  const parserBroker = createParserBroker({ command: brokerCommand, programs: BROKER_PROGRAMS });
  // There is a manifest in most directories, and something else to do until it is read.
  parserBroker.begin();
  const closeHost = async (): Promise<void> => {
    remote.close();
    await Promise.all([watcher.close(), parserBroker.close(), host.close()]);
  };
  return { host, parser: createChildParser(parserBroker), closeHost };
}
