/** A unary gRPC call to a driver, and what can become of it. */
import type { AbsolutePath } from './absolute-path.ts';

/** A socket file and the inode it had: a new inode is a new server behind the same name. */
export interface SocketIdentity {
  readonly path: AbsolutePath;
  readonly inode: number;
}

/** A unary gRPC method; the generated service definitions have this shape. */
export interface RemoteMethod<Request, Reply> {
  readonly path: string;
  readonly requestSerialize: (request: Request) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Reply;
}

export interface RemoteCall<Request, Reply> {
  readonly socket: SocketIdentity;
  readonly method: RemoteMethod<Request, Reply>;
  readonly request: Request;
  readonly deadlineMs: number;
}

/**
 * `status` is what the server said (0 to 16, or any other number a server invents); `broken` is everything else: no
 * connection, reset, deadline on our side, an answer that does not decode.
 */
export type RemoteReply<Reply> =
  | { readonly kind: 'ok'; readonly reply: Reply }
  | { readonly kind: 'status'; readonly status: number; readonly message: string }
  | {
      readonly kind: 'broken';
      readonly because: 'unreachable' | 'deadline' | 'undecodable';
      readonly message: string;
    };
