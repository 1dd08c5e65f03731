/** The path broker as a program of its own: what no call on a path needs is no part of it. */
import { runBroker } from '../../mount/broker/broker.ts';
import { TRANSITIONS } from '../../plugins/kinds/transitions.ts';

await runBroker({ loadTransitions: async () => TRANSITIONS });
