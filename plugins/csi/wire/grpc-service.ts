/** A gRPC service as plain async functions, and the status that one of them answers with. */

/** Thrown by a method of a served implementation to answer with that status. */
export class GrpcStatus extends Error {
  /** 0 to 16 by the book; any number is sent as it is. */
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** A unary method as the generated service definitions have it. */
interface ServedMethod<Request, Reply> {
  readonly path: string;
  readonly requestStream: false;
  readonly responseStream: false;
  readonly requestSerialize: (request: Request) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => Request;
  readonly responseSerialize: (reply: Reply) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Reply;
}

/** The unary methods of a service as plain async functions; what is left out answers UNIMPLEMENTED. */
export type GrpcImplementation<Definition> = {
  readonly [Name in keyof Definition]?: Definition[Name] extends ServedMethod<infer Request, infer Reply>
    ? (request: Request) => Promise<Reply>
    : never;
};

export interface GrpcService<Definition> {
  /** A generated service definition (`NodeService`, `RegistrationService`, …). */
  readonly definition: Definition;
  readonly implementation: GrpcImplementation<Definition>;
}

export interface GrpcServer {
  /** Stops listening, cuts every connection, removes the socket file if it is still ours. */
  close(): Promise<void>;
}
