/** The simulated API server keeps the contracts of the real one, through its own transport and over a real wire. */
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ApiTransport } from '../../../kubernetes/api/api-transport.ts';
import { createHttp2Transport } from '../../../kubernetes/api/wire/http2-transport.ts';
import type { AbsolutePath } from '../../../mount/host.ts';
import { apiServerContract } from '../../contract/api-server.ts';
import { apiTransportContract, type TransportUnderTest } from '../../contract/api-transport.ts';
import { serveStore } from '../../kubernetes/api/store-server.ts';
import { createRandom } from '../random.ts';
import { type ApiFaults, NO_API_FAULTS } from './api-faults.ts';
import { ApiServer } from './api-server.ts';
import { ObjectStore } from './object-store.ts';
import { createSimTransport } from './sim-transport.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const TIME = {
  nowMs: () => performance.now(),
  after(delayMs: number, fire: () => void) {
    const timer = setTimeout(fire, delayMs);
    return () => clearTimeout(timer);
  },
};
const CLOCK = { nowMs: TIME.nowMs, timer: TIME.after };

function makeServer(faults: ApiFaults): ApiServer {
  return new ApiServer({
    store: new ObjectStore(TIME.nowMs),
    time: TIME,
    random: createRandom(1),
    faults: () => faults,
    forbids: (_, { namespace }) => (namespace === 'secret' ? 'nobody may' : undefined),
  });
}

function under({ store }: ApiServer, transport: ApiTransport, close = async () => {}): TransportUnderTest {
  return {
    transport,
    denied: '/api/v1/namespaces/secret/configmaps',
    async putConfigMap(name, data, labels) {
      const head = { kind: 'ConfigMap', apiVersion: 'v1' };
      const object = { ...head, metadata: { name, namespace: 'default', ...(labels && { labels }) }, data };
      if (store.get(MAPS, name) === undefined) store.create(MAPS, object);
      else store.replace(MAPS, object);
    },
    removeConfigMap: async (name) => void store.remove(MAPS, name),
    close,
  };
}

/** Late, but never wrong: lags are no reason to break a contract. */
for (const watchLagMsMax of [0, 30]) {
  const open = async (): Promise<TransportUnderTest> => {
    const faults = { ...NO_API_FAULTS, watchLagMsMax };
    const server = makeServer(faults);
    const transport = createSimTransport({
      ...{ server, time: TIME, random: createRandom(2), faults: () => faults },
      isAway: () => false,
      isAlive: () => true,
    });
    return under(server, transport);
  };
  apiTransportContract(`the simulated API server, ${watchLagMsMax} ms behind`, open);
  apiServerContract(`the simulated API server, ${watchLagMsMax} ms behind`, open);
}

async function openWire(): Promise<TransportUnderTest> {
  const server = makeServer(NO_API_FAULTS);
  const served = await serveStore(server);
  const directory = mkdtempSync(join(realpathSync(tmpdir()), 'mooring-test-'));
  const tokenFile = join(directory, 'token') as AbsolutePath;
  writeFileSync(tokenFile, 'token\n');
  const access = served.access(tokenFile);
  const transport = createHttp2Transport({ access, clock: CLOCK, userAgent: 'test' });
  return under(server, transport, async () => {
    await served.close();
    rmSync(directory, { recursive: true });
  });
}

apiServerContract('the simulated API server over HTTP/2', openWire);
