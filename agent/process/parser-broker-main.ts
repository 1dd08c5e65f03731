/** The parser broker as a program of its own. */
import { runBroker } from '../../mount/broker/broker.ts';
import { parseManifestParts } from '../source/manifests/parse/manifest-child.ts';

await runBroker({ loadParse: async () => parseManifestParts });
