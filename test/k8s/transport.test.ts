/** The port to an API server keeps its contract with the real one, over a token from a file and the Node authorizer. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createHttp2Transport } from '../../kubernetes/api/wire/http2-transport.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import { Sensitive } from '../../plugins/secret/sensitive.ts';
import { apiServerContract } from '../contract/api-server.ts';
import { apiTransportContract, type TransportUnderTest } from '../contract/api-transport.ts';
import { clusterObstacle, makeTokenKubeconfigIn, sharedCluster } from './cluster-world.ts';

const skip = clusterObstacle();
const cluster = sharedCluster();
const MAPS = '/api/v1/namespaces/default/configmaps';
const CLOCK = {
  nowMs: () => performance.now(),
  timer(delayMs: number, fire: () => void) {
    const timer = setTimeout(fire, delayMs);
    return () => clearTimeout(timer);
  },
};

async function open(): Promise<TransportUnderTest> {
  const shared = await cluster();
  const { plane, admin } = shared;
  const directory = dirname(plane.adminKubeconfig);
  const path = (await makeTokenKubeconfigIn(directory, shared)) as AbsolutePath;
  const transport = createHttp2Transport({
    access: {
      server: plane.server,
      serverName: undefined,
      authority: { kind: 'bytes', bytes: new Sensitive(readFileSync(join(directory, 'authority.crt'))) },
      identity: { kind: 'token', token: { kind: 'file', path } },
    },
    clock: CLOCK,
    userAgent: 'test',
  });
  return {
    transport,
    denied: '/api/v1/namespaces/default/secrets',
    async putConfigMap(name, data, labels = {}) {
      const object = { metadata: { name, labels }, data };
      const made = await admin.tryRequest('POST', MAPS, object);
      if (made.status !== 201) await admin.request('PUT', `${MAPS}/${name}`, object);
    },
    removeConfigMap: async (name) => void (await admin.tryRequest('DELETE', `${MAPS}/${name}`)),
    close: async () => {},
  };
}

apiTransportContract('the real API server', open, { skip });
apiServerContract('the real API server', open, { skip });
