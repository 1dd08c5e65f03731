/** The broker as this program has it: with what the floors above the brokers' own know. */
import { runBroker } from '../../mount/broker/broker.ts';

/** As `runBroker`. */
export async function runOwnBroker(): Promise<void> {
  await runBroker({
    loadTransitions: async () => (await import('../../plugins/kinds/transitions.ts')).TRANSITIONS,
    loadParse: async () => (await import('../source/manifests/manifest-child.ts')).parseManifestParts,
  });
}
