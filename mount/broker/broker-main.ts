/** Entry point of a broker when it runs from source: tests and development. The bundle has its own subcommand. */
import { runBroker } from './broker.ts';

await runBroker();
