/** What is asked of the API server, and how long nothing was heard of what is watched. */
import type { Clock } from '../../mount/host.ts';
import type { ApiRequest, ApiTransport } from '../../kubernetes/api/api-transport.ts';
import { count, family, say, textOf } from './family.ts';
import { createHistogram, STORAGE_BOUNDS } from './histogram.ts';

export interface ApiTally {
  /** The same transport, counted from now on. */
  counted(transport: ApiTransport): ApiTransport;
  /** They are in the text format of Prometheus. */
  text(): string;
}

interface OpenWatch {
  readonly resource: string;
  heardMs: number;
}

const VERBS: Readonly<Record<ApiRequest['method'], string>> = {
  GET: 'get',
  POST: 'create',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** Where the list of volumes in use is written. */
const IN_USE = { verb: 'patch', resource: 'nodes/status' };

/** Labels are what this program asks for, by the names of Kubernetes: no object's name is among them. */
export function createApiTally(clock: Pick<Clock, 'nowMs'>): ApiTally {
  const requests = family(
    'mooring_api_requests_total',
    'Requests to the API server, with what became of them.',
    'counter',
  );
  const reports = createHistogram({
    name: 'mooring_in_use_report_seconds',
    help: 'What a write of the list of volumes in use took until it was answered, in seconds.',
    bounds: STORAGE_BOUNDS,
  });
  const watches = new Set<OpenWatch>();

  function agesText(): string {
    const ages = family(
      'mooring_api_watch_age_seconds',
      'For how long the quietest watch of a resource has had no line.',
    );
    const quietest = [...watches].sort((a, b) => a.heardMs - b.heardMs);
    for (const { resource, heardMs } of quietest) say(ages, (clock.nowMs() - heardMs) / 1_000, { resource });
    return textOf(ages);
  }

  return {
    counted: (transport) => ({
      server: transport.server,
      request(request) {
        const sinceMs = clock.nowMs();
        const asked = askedBy(request);
        const answer = transport.request(request);
        void answer.then((result) => {
          count(requests, { ...asked, code: result.ok ? 'ok' : result.failure.code });
          if (asked.verb === IN_USE.verb && asked.resource === IN_USE.resource)
            reports.observe({}, (clock.nowMs() - sinceMs) / 1_000);
        });
        return answer;
      },
      watch(request, listener) {
        const open: OpenWatch = { resource: resourceOf(request.path).resource, heardMs: clock.nowMs() };
        const tell = (code: string): void =>
          count(requests, { verb: 'watch', resource: open.resource, code });
        watches.add(open);
        const cancel = transport.watch(request, {
          opened: () => listener.opened(),
          line(value) {
            open.heardMs = clock.nowMs();
            listener.line(value);
          },
          ended(failure) {
            watches.delete(open);
            tell(failure?.code ?? 'ok');
            listener.ended(failure);
          },
        });
        return () => {
          if (watches.delete(open)) tell('ok');
          cancel();
        };
      },
      close: () => transport.close(),
    }),
    text: () => [textOf(requests), agesText(), reports.text()].join(''),
  };
}

function askedBy({ method, path }: ApiRequest): { readonly verb: string; readonly resource: string } {
  const { resource, isNamed } = resourceOf(path);
  return { verb: method === 'GET' && !isNamed ? 'list' : VERBS[method], resource };
}

/** `/api/v1/namespaces/shop/pods/web` is one of `pods`, `/api/v1/nodes/n/status` is `nodes/status`. */
function resourceOf(path: string): { readonly resource: string; readonly isNamed: boolean } {
  const [where = ''] = path.split('?', 1);
  const parts = where.split('/').filter((part) => part !== '');
  const rest = parts.slice(parts[0] === 'api' ? 2 : 3);
  const [resource = '', name, sub] = rest[0] === 'namespaces' && rest.length > 2 ? rest.slice(2) : rest;
  return { resource: sub === undefined ? resource : `${resource}/${sub}`, isNamed: name !== undefined };
}
