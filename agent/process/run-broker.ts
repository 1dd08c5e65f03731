/** Any broker as this program has it, where it was not built with a program of its own for each. */
import { runBroker } from '../../mount/broker/broker.ts';

/** As `runBroker`. */
export async function runOwnBroker(): Promise<void> {
  await runBroker({
    loadTransitions: async () => (await import('../../plugins/kinds/transitions.ts')).TRANSITIONS,
    loadTool: async () => (await import('../../mount/tool.ts')).runTool,
    loadParse: async () => (await import('../source/manifests/parse/manifest-child.ts')).parseManifestParts,
  });
}
