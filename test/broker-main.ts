/** Entry point of a broker when it runs from source, with what the contract tries beside what the product does. */
import { runBroker } from '../mount/broker/broker.ts';
import { TRANSITIONS } from '../plugins/kinds/transitions.ts';
import { CONTRACT_TRANSITIONS } from './contract/transitions.ts';

await runBroker({
  loadTransitions: async () => [...TRANSITIONS, ...CONTRACT_TRANSITIONS],
  loadTool: async () => (await import('../mount/tool.ts')).runTool,
});
