/** The API server as one who plans has it: nothing in the cluster is changed. */
import type { ApiTransport } from '../../kubernetes/api/api-transport.ts';

/** TokenRequest: it makes something for whoever asks, and keeps nothing. */
const TOKEN = /\/serviceaccounts\/[^/]+\/token$/;

/** All but reading, and asking for a token, is `denied` without being sent. */
export function readOnlyTransport(transport: ApiTransport): ApiTransport {
  return {
    server: transport.server,
    async request(request) {
      const { method, path } = request;
      if (method === 'GET' || (method === 'POST' && TOKEN.test(path))) return transport.request(request);
      const message = 'a plan changes nothing in the cluster';
      return { ok: false, failure: { code: 'denied', message, effect: 'none' } };
    },
    watch: (request, listener) => transport.watch(request, listener),
    close: () => transport.close(),
  };
}
