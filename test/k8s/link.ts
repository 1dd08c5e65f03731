/**
 * The way of one node to the API server: a port of the loopback. While it is cut nothing arrives any more in either
 * direction and nobody is told so, as behind a switch that has failed; what was on its way arrives when it is whole.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Link {
  /** The node's own, with this way in it. */
  readonly kubeconfig: string;
  cut(isCut: boolean): void;
  /** How many connections were asked for while it was cut. */
  knocks(): number;
  close(): Promise<void>;
}

interface Pair {
  readonly near: Socket;
  far: Socket | undefined;
}

/** `kubeconfig` is JSON, as the control plane of the tests writes it; the answer's lies beside it. */
export async function createLink(kubeconfig: string): Promise<Link> {
  const config = JSON.parse(readFileSync(kubeconfig, 'utf8')) as {
    readonly clusters: readonly [{ readonly cluster: { server: string } }];
  };
  const { cluster } = config.clusters[0];
  const { hostname, port } = new URL(cluster.server);
  const pairs = new Set<Pair>();
  let isCut = false;
  let knocks = 0;

  function join(pair: Pair): void {
    pair.far ??= reach(pair);
    pair.near.pipe(pair.far).pipe(pair.near);
  }

  function part({ near, far }: Pair): void {
    for (const end of [near, far]) end?.unpipe().pause();
  }

  function reach(pair: Pair): Socket {
    const far = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    far.on('error', () => end(pair)).on('close', () => end(pair));
    return far;
  }

  function end(pair: Pair): void {
    pairs.delete(pair);
    pair.near.destroy();
    pair.far?.destroy();
  }

  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (near) => {
    const pair: Pair = { near, far: undefined };
    pairs.add(pair);
    near.on('error', () => end(pair)).on('close', () => end(pair));
    if (isCut) knocks += 1;
    else join(pair);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cluster.server = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const file = `${kubeconfig}.linked`;
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  return {
    kubeconfig: file,
    knocks: () => knocks,
    cut(next) {
      isCut = next;
      for (const pair of pairs)
        if (isCut) part(pair);
        else join(pair);
    },
    async close() {
      for (const pair of [...pairs]) end(pair);
      server.close();
      await once(server, 'close');
    },
  };
}
