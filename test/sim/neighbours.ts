/** Servers behind sockets: a socket's inode is the server's identity, so a replaced socket is a new server. */
import type { AbsolutePath } from '../../mount/host.ts';
import type { RemoteCall, RemoteReply } from '../../mount/remote-call.ts';
import { ControllerService, IdentityService, NodeService } from '../../plugins/csi/wire/generated/csi.ts';
import { RegistrationService } from '../../plugins/csi/wire/generated/pluginregistration.ts';
import type { SimKernel } from './sim-kernel.ts';

export type Answer =
  | { readonly kind: 'ok'; readonly reply: unknown }
  | { readonly kind: 'status'; readonly status: number; readonly message: string }
  | { readonly kind: 'broken'; readonly message: string };

export interface Neighbour {
  /**
   * `waiting` tells whether the caller still listens. `answer` may be called late, or never; it says whether the
   * caller heard it.
   */
  serve(method: string, request: unknown, waiting: () => boolean, answer: (answer: Answer) => boolean): void;
}

interface WireMethod {
  readonly path: string;
  readonly requestDeserialize: (bytes: Buffer) => unknown;
  readonly responseSerialize: (reply: never) => Buffer;
}

const METHODS: ReadonlyMap<string, WireMethod> = new Map(
  [IdentityService, NodeService, ControllerService, RegistrationService]
    .flatMap((service) => Object.values(service) as WireMethod[])
    .map((method) => [method.path, method]),
);

const UNIMPLEMENTED = 12;

export class Neighbours {
  readonly #kernel: SimKernel;
  /** Requests and replies go through their bytes, as on a real socket; slower, so only in some seeds. */
  readonly #wire: boolean;
  readonly #servers = new Map<number, Neighbour>();

  constructor(kernel: SimKernel, wire: boolean) {
    this.#kernel = kernel;
    this.#wire = wire;
  }

  listen(path: AbsolutePath, neighbour: Neighbour): number {
    const socket = this.#kernel.makeSocket(path);
    if (typeof socket === 'string') throw new Error(`broken invariant: no socket at ${path}: ${socket}`);
    this.#servers.set(socket.number, neighbour);
    return socket.number;
  }

  close(inode: number): void {
    this.#servers.delete(inode);
  }

  serve<Request, Reply>(
    call: RemoteCall<Request, Reply>,
    waiting: () => boolean,
    settle: (reply: RemoteReply<Reply>) => boolean,
  ): void {
    const refused = (message: string): boolean => settle({ kind: 'broken', because: 'unreachable', message });
    const socket = this.#kernel.inspect(call.socket.path);
    if (typeof socket === 'string' || socket.kind !== 'socket') return void refused('no such socket');
    if (socket.inode !== call.socket.inode) return void refused('the socket was replaced');
    const server = this.#servers.get(socket.inode);
    if (server === undefined) return void refused('connection refused');
    const method = METHODS.get(call.method.path);
    if (method === undefined)
      return void settle({ kind: 'status', status: UNIMPLEMENTED, message: 'unknown method' });
    const request = this.#wire
      ? method.requestDeserialize(call.method.requestSerialize(call.request))
      : call.request;
    server.serve(method.path, request, waiting, (answer) => {
      if (answer.kind === 'status') return settle(answer);
      if (answer.kind === 'broken') return refused(answer.message);
      const reply = this.#wire
        ? call.method.responseDeserialize(method.responseSerialize(answer.reply as never))
        : (answer.reply as Reply);
      return settle({ kind: 'ok', reply });
    });
  }
}
