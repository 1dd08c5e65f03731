/** gRPC over Unix sockets, both ends; the only importer of @grpc/grpc-js besides generated code. */
import { randomBytes } from 'node:crypto';
import { chmod, lstat, rename, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  type ChannelCredentials,
  ServerCredentials,
  Client,
  type ClientUnaryCall,
  connectivityState,
  credentials,
  Metadata,
  type sendUnaryData,
  Server,
  type ServerUnaryCall,
  status as statusCode,
  type StatusObject,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { assert } from '../../../mount/failure.ts';
import type { RemoteCall, RemoteReply, SocketIdentity } from '../../../mount/remote-call.ts';
import { type GrpcImplementation, type GrpcServer, type GrpcService, GrpcStatus } from './grpc-service.ts';

/** sun_path holds 108 bytes with its NUL (unix(7)); Node 20 binds or dials a longer path cut off, without a word. */
const SOCKET_PATH_BYTES_MAX = 107;
const RECEIVE_BYTES_MAX = 4 * 1024 * 1024;
const CHANNELS_MAX = 512;
/** The server is told a little more than our own deadline, so that ours decides and the answer has one meaning. */
const SERVER_DEADLINE_EXTRA_MS = 100;
/** gRPC over HTTP/2: a timeout has at most eight digits. */
const DEADLINE_MS_MAX = 99_000_000;

const CHANNEL_OPTIONS = {
  // Connection state is otherwise shared per path in the process, back-off and wedged attempts included.
  'grpc.use_local_subchannel_pool': 1,
  // Several servers refuse a socket path as :authority.
  'grpc.default_authority': 'localhost',
  'grpc.initial_reconnect_backoff_ms': 20,
  'grpc.min_reconnect_backoff_ms': 20,
  'grpc.max_reconnect_backoff_ms': 500,
  'grpc.max_receive_message_length': RECEIVE_BYTES_MAX,
  'grpc.enable_retries': 0,
  'grpc.enable_http_proxy': 0,
  'grpc.enable_channelz': 0,
  'grpc.service_config_disable_resolution': 1,
};

export interface GrpcRemote {
  /**
   * Never rejects. `broken/deadline` after `deadlineMs` of monotonic time, whatever the server does;
   * `broken/unreachable` when no byte of an answer came. What is `broken` is told in no word of the server. A status
   * the server sent is `status`, and so is one that cannot be told apart (a stream reset after the headers).
   */
  call<Request, Reply>(call: RemoteCall<Request, Reply>): Promise<RemoteReply<Reply>>;
  /** Cuts every call and connection. */
  close(): void;
}

/** One server behind one path. Retired ones take no new call and close with their last. */
interface Channel {
  readonly inode: number;
  readonly client: Client;
  readonly connections: ReadonlySet<Connection>;
  inFlight: number;
  retired: boolean;
}

interface Connection {
  destroy(): void;
  once(event: 'close', listener: () => void): unknown;
}

/**
 * grpc-js never lets go of a connection whose server does not begin to speak HTTP/2, not even when the client is closed
 * (grpc-node#2785): one file descriptor for each look at a silent driver. So the connections are held here.
 */
function holdingCredentials(connections: Set<Connection>): ChannelCredentials {
  const insecure = credentials.createInsecure();
  const holding: ChannelCredentials = Object.create(insecure);
  holding._createSecureConnector = (...target) => {
    const connector = insecure._createSecureConnector(...target);
    const connect: typeof connector.connect = (socket) => {
      const connection: Connection = socket;
      connections.add(connection);
      connection.once('close', () => connections.delete(connection));
      return connector.connect(socket);
    };
    return { ...connector, connect };
  };
  return holding;
}

/** One channel per socket path and inode: a new inode is a new server, and nothing of the old connection is kept. */
export function createGrpcRemote(): GrpcRemote {
  const channels = new Map<string, Channel>();
  const open = new Set<Channel>();
  let closed = false;

  function shut(channel: Channel): void {
    open.delete(channel);
    channel.client.close();
    for (const connection of [...channel.connections]) connection.destroy();
  }

  function retire(path: string, channel: Channel): void {
    channel.retired = true;
    if (channels.get(path) === channel) channels.delete(path);
    if (channel.inFlight === 0) shut(channel);
  }

  function channelTo(socket: SocketIdentity): Channel {
    const known = channels.get(socket.path);
    if (known?.inode === socket.inode) return known;
    if (known !== undefined) retire(socket.path, known);
    retireIdle();
    const connections = new Set<Connection>();
    const client = new Client(`unix://${socket.path}`, holdingCredentials(connections), CHANNEL_OPTIONS);
    const channel: Channel = { inode: socket.inode, client, connections, inFlight: 0, retired: false };
    channels.set(socket.path, channel);
    open.add(channel);
    return channel;
  }

  function retireIdle(): void {
    for (const [path, channel] of channels) {
      if (channels.size < CHANNELS_MAX) return;
      if (channel.inFlight === 0) retire(path, channel);
    }
  }

  async function call<Request, Reply>(remote: RemoteCall<Request, Reply>): Promise<RemoteReply<Reply>> {
    const bytes = Buffer.byteLength(remote.socket.path);
    if (bytes > SOCKET_PATH_BYTES_MAX) {
      return broken(
        'unreachable',
        `socket path of ${bytes} bytes; the kernel takes ${SOCKET_PATH_BYTES_MAX}`,
      );
    }
    if (closed) return broken('unreachable', 'the agent is stopping');
    const channel = channelTo(remote.socket);
    channel.inFlight += 1;
    const reply = await unary(channel.client, remote);
    channel.inFlight -= 1;
    if (channel.retired) {
      if (channel.inFlight === 0 && open.has(channel)) shut(channel);
    } else if (reply.kind === 'broken' && !isReady(channel.client)) {
      // A channel that cannot connect may be wedged for good (grpc-node#2785); the next call dials afresh.
      retire(remote.socket.path, channel);
    }
    return reply;
  }

  return {
    call,
    close: () => {
      closed = true;
      channels.clear();
      for (const channel of [...open]) shut(channel);
    },
  };
}

function isReady(client: Client): boolean {
  return client.getChannel().getConnectivityState(false) === connectivityState.READY;
}

function broken(because: 'unreachable' | 'deadline' | 'undecodable', message: string) {
  return { kind: 'broken', because, message } as const;
}

function unary<Request, Reply>(
  client: Client,
  remote: RemoteCall<Request, Reply>,
): Promise<RemoteReply<Reply>> {
  const { method, request } = remote;
  const deadlineMs = Math.min(Math.max(Math.ceil(remote.deadlineMs), 0), DEADLINE_MS_MAX);
  return new Promise((resolve) => {
    const metadata = new Metadata();
    metadata.set('grpc-timeout', `${deadlineMs + SERVER_DEADLINE_EXTRA_MS}m`);
    let answer: Buffer | undefined;
    let headersSeen = false;
    // Not grpc-js's own deadline: that one is wall-clock time, and cannot be told from the server's (INV-29).
    const deadline = AbortSignal.timeout(deadlineMs);
    const cut = () => call.cancel();
    // The raw bytes are kept so that "did not decode" is ours to say; grpc-js would make it a status.
    const call: ClientUnaryCall = client.makeUnaryRequest<Request, Buffer>(
      method.path,
      method.requestSerialize,
      (bytes) => bytes,
      request,
      metadata,
      {},
      (_error, bytes) => {
        answer = bytes;
      },
    );
    call.on('metadata', () => {
      headersSeen = true;
    });
    call.on('status', (status: StatusObject) => {
      deadline.removeEventListener('abort', cut);
      const cutByUs = deadline.aborted && status.code === statusCode.CANCELLED;
      if (cutByUs) resolve(broken('deadline', `no answer within ${deadlineMs} ms`));
      else if (status.code === statusCode.OK) resolve(decode(method.responseDeserialize, answer));
      else if (headersSeen || saidByServer(status)) {
        resolve({ kind: 'status', status: status.code, message: status.details });
      } else resolve(broken('unreachable', isDialled(call, client) ? ENDED : status.details));
    });
    deadline.addEventListener('abort', cut);
  });
}

/** Once there is a connection, words may be the server's; without one they are what kept it from being made. */
const ENDED = 'the call ended without an answer';

function isDialled(call: ClientUnaryCall, client: Client): boolean {
  // The target stands for the peer until there is one.
  return call.getPeer() !== client.getChannel().getTarget();
}

/** A trailers-only answer keeps its other headers (content-type at least); a status grpc-js made up has none. */
function saidByServer(status: StatusObject): boolean {
  return Object.keys(status.metadata.getMap()).length > 0;
}

function decode<Reply>(deserialize: (bytes: Buffer) => Reply, bytes: Buffer | undefined): RemoteReply<Reply> {
  if (bytes === undefined) return broken('undecodable', 'the answer says OK and holds no message');
  try {
    return { kind: 'ok', reply: deserialize(bytes) };
  } catch {
    return broken('undecodable', `an answer of ${bytes.length} bytes does not decode`);
  }
}

/**
 * Serves on a Unix socket of mode 0600, replacing a socket file that is already there.
 * Guarantees: the path appears at once, listening and with its mode, because it is bound beside it and renamed.
 * Rejects when the path is longer than 107 bytes, is something else than a socket, or cannot be bound.
 */
export async function serveGrpc<const Definitions extends readonly unknown[]>(
  socketPath: string,
  services: { readonly [Index in keyof Definitions]: GrpcService<Definitions[Index]> },
): Promise<GrpcServer> {
  const bound = join(dirname(socketPath), `.${randomBytes(3).toString('hex')}`);
  if (Math.max(Buffer.byteLength(socketPath), Buffer.byteLength(bound)) > SOCKET_PATH_BYTES_MAX) {
    throw new Error(`socket path longer than ${SOCKET_PATH_BYTES_MAX} bytes: ${socketPath}`);
  }
  const before = await lstatOrNothing(socketPath);
  if (before !== undefined && !before.isSocket()) throw new Error(`not a socket: ${socketPath}`);

  const server = new Server({ 'grpc.max_receive_message_length': RECEIVE_BYTES_MAX });
  for (const { definition, implementation } of services as readonly GrpcService<never>[]) {
    server.addService(definition, answering(implementation));
  }
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${bound}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  await chmod(bound, 0o600);
  const ours = await lstatOrNothing(bound);
  assert(ours !== undefined, 'a bound socket has a file');
  await rename(bound, socketPath);
  return {
    close: async () => {
      const now = await lstatOrNothing(socketPath);
      if (now?.ino === ours.ino) await unlink(socketPath);
      server.forceShutdown();
    },
  };
}

async function lstatOrNothing(path: string) {
  return lstat(path).catch(() => undefined);
}

function answering(
  implementation: GrpcImplementation<Record<string, unknown>>,
): UntypedServiceImplementation {
  const methods: UntypedServiceImplementation = {};
  for (const [name, method] of Object.entries(implementation)) {
    const answer = method as unknown as (request: unknown) => Promise<unknown>;
    methods[name] = (call: ServerUnaryCall<unknown, unknown>, callback: sendUnaryData<unknown>) => {
      answer(call.request).then(
        (reply) => callback(null, reply),
        (error: unknown) =>
          callback({ code: codeOf(error), details: error instanceof Error ? error.message : '' }),
      );
    };
  }
  return methods;
}

function codeOf(error: unknown): number {
  return error instanceof GrpcStatus ? error.code : statusCode.UNKNOWN;
}
