/** The tool broker as a program of its own. */
import { runBroker } from '../../mount/broker/broker.ts';
import { runTool } from '../../mount/tool.ts';

await runBroker({ loadTool: async () => runTool });
