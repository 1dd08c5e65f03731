/** The administrator of a test's cluster: node's own HTTPS client, so that the product's is not judged by itself. */
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface AdminAnswer {
  /** 0: no answer. */
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface AdminClient {
  /** MERGE and STRATEGIC are PATCH. Throws with the server's words unless the status is 2xx. */
  request(method: AdminMethod, path: string, body?: unknown): Promise<Readonly<Record<string, unknown>>>;
  tryRequest(method: AdminMethod, path: string, body?: unknown): Promise<AdminAnswer>;
  /** Tells of the objects that are there and of every change, until `end` or the server ends it. */
  watch(path: string, tell: (change: AdminChange) => void): AdminWatch;
}

export interface AdminChange {
  /** ADDED, MODIFIED, DELETED. */
  readonly type: string;
  readonly object: Readonly<Record<string, unknown>>;
}

export interface AdminWatch {
  end(): void;
  /** Settles when the server has begun to answer; rejects when it does not. */
  readonly begun: Promise<void>;
}

export type AdminMethod = 'GET' | 'POST' | 'PUT' | 'DELETE' | 'MERGE' | 'STRATEGIC';

const TIMEOUT_MS = 60_000;
const PATCH_TYPES: Readonly<Record<string, string>> = {
  MERGE: 'application/merge-patch+json',
  STRATEGIC: 'application/strategic-merge-patch+json',
};

/** With the certificates that `directory` holds. */
export function createAdminClient(server: string, directory: string, identityName = 'admin'): AdminClient {
  const read = (name: string): Buffer => readFileSync(join(directory, name));
  const identity = {
    ca: read('authority.crt'),
    cert: read(`${identityName}.crt`),
    key: read(`${identityName}.key`),
  };

  const tryRequest: AdminClient['tryRequest'] = (method, path, body) =>
    new Promise((resolve) => {
      const patch = PATCH_TYPES[method];
      const text = body === undefined ? '' : JSON.stringify(body);
      const options = {
        ...identity,
        method: patch === undefined ? method : 'PATCH',
        // Node.js sends no length with DELETE by itself, and then the body counts for nothing.
        headers: { 'content-type': patch ?? 'application/json', 'content-length': Buffer.byteLength(text) },
        timeout: TIMEOUT_MS,
      };
      const asked = request(`${server}${path}`, options, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('error', () => resolve({ status: 0, body: {} }));
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, body: parsed(Buffer.concat(chunks).toString('utf8')) }),
        );
      });
      asked.on('error', () => resolve({ status: 0, body: {} }));
      asked.on('timeout', () => asked.destroy());
      asked.end(text);
    });

  return {
    tryRequest,
    watch: (path, tell) => watchFrom({ server, identity, path, tell }),
    async request(method, path, body) {
      const answer = await tryRequest(method, path, body);
      if (answer.status >= 200 && answer.status < 300) return answer.body;
      throw new Error(`${method} ${path}: ${answer.status} ${String(answer.body['message'] ?? '')}`);
    },
  };
}

interface Watching {
  readonly server: string;
  readonly identity: object;
  readonly path: string;
  readonly tell: (change: AdminChange) => void;
}

/** The server ends the watch of who reads too slowly: it is begun again where it was. */
function watchFrom({ server, identity, path, tell }: Watching): AdminWatch {
  let asked: ReturnType<typeof request> | undefined;
  let isEnded = false;
  let version: string | undefined;
  const open = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const from = version === undefined ? '' : `&resourceVersion=${version}`;
      asked = request(`${server}${path}?watch=true${from}`, identity);
      asked.on('error', reject);
      asked.on('response', (answer) => {
        if (answer.statusCode !== 200) return reject(new Error(`watch ${path}: ${answer.statusCode}`));
        const lines = createInterface({ input: answer });
        // It ends with an error when it is ended from here, which the lines tell as well.
        for (const one of [answer, lines]) one.on('error', () => undefined);
        lines.on('line', (line) => {
          const change = parsed(line) as unknown as AdminChange;
          if (change.type === undefined) return;
          const { metadata } = change.object as { readonly metadata?: { readonly resourceVersion?: string } };
          version = metadata?.resourceVersion ?? version;
          tell(change);
        });
        lines.on('close', () => {
          if (!isEnded) open().catch(() => undefined);
        });
        resolve();
      });
      asked.end();
    });
  const begun = open();
  // Whoever wants to know waits for it.
  begun.catch(() => undefined);
  return {
    begun,
    end() {
      isEnded = true;
      asked?.destroy();
    },
  };
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
