/**
 * A file system in user space whose moods a test sets: it serves, hangs, fails with an errno, or dies. The process of
 * its own is this file, forked by `mountFuse`; no library and no helper program is needed, only /dev/fuse and root.
 *
 * While it hangs, whoever asks it sleeps in the kernel until the mood changes or the process dies (then: ENOTCONN).
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { openSync, read, writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { programArguments } from '../machine/program.ts';
import {
  attributesReply,
  directoryReply,
  EIO,
  ENOENT,
  ENOSYS,
  entryReply,
  formatReply,
  type FuseNode,
  type FuseRequest,
  initReply,
  openReply,
  OPERATION,
  parseRequest,
  ROOT_NODE,
  statfsReply,
  writeReply,
} from './fuse-protocol.ts';

/**
 * `fail`: every request ends with this errno, or every one of this operation. `isTerse`: a listing does not tell what
 * its entries are, as those of NFS and of many in user space.
 */
export type FuseMood =
  | { readonly kind: 'serve' }
  | { readonly kind: 'hang' }
  | { readonly kind: 'fail'; readonly errno: number; readonly operation?: number; readonly isTerse?: true };

export interface FuseMount {
  readonly pid: number;
  /** Settles when the server has it. */
  set(mood: FuseMood): Promise<void>;
  /** Requests that wait for an answer, at this moment. */
  waiting(): Promise<number>;
  /** SIGKILL: what is asked from now on is ENOTCONN; the mount stays in the table. Settles when it is gone. */
  kill(): Promise<void>;
}

/** Mounted at `target` when it settles. Whoever mounts it unmounts it; the server ends with its mount, and with us. */
export async function mountFuse(target: string, source = 'fuse-of-a-test'): Promise<FuseMount> {
  const argv = [
    '--pdeathsig',
    'KILL',
    process.execPath,
    ...programArguments('test/hostile/fuse-server.ts'),
    target,
    source,
  ];
  const child = spawn('setpriv', argv, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const exited = once(child, 'exit');
  const first = await Promise.race([once(child, 'message'), exited]);
  if (first[0] !== 'mounted') throw new Error(`fuse server at ${target}: ${JSON.stringify(first)}`);
  // A test that failed is not kept from ending by it.
  child.unref();
  return {
    pid: child.pid ?? -1,
    set: async (mood) => void (await ask(child, mood)),
    waiting: async () => Number(await ask(child, { kind: 'waiting' })),
    async kill() {
      child.ref();
      child.kill('SIGKILL');
      await exited;
    },
  };
}

async function ask(child: ChildProcess, question: FuseMood | { readonly kind: 'waiting' }): Promise<unknown> {
  const answer = once(child, 'message');
  child.send(question);
  const [value] = await answer;
  return value;
}

const REQUEST_BYTES_MAX = 1_048_576;
const NO_ANSWER: ReadonlySet<number> = new Set([
  OPERATION.FORGET,
  OPERATION.BATCH_FORGET,
  OPERATION.INTERRUPT,
]);

class FuseServer {
  mood: FuseMood = { kind: 'serve' };
  readonly #descriptor: number;
  readonly #files = new Map<string, { readonly node: bigint; content: Buffer }>();
  readonly #waiting: FuseRequest[] = [];
  #nextNode = ROOT_NODE + 1n;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  change(mood: FuseMood): void {
    this.mood = mood;
    if (mood.kind !== 'hang') for (const request of this.#waiting.splice(0)) this.#answer(request);
  }

  listen(): void {
    const buffer = Buffer.alloc(REQUEST_BYTES_MAX);
    read(this.#descriptor, buffer, 0, buffer.length, null, (error, bytes) => {
      // The mount is gone.
      if (error?.code === 'ENODEV') process.exit(0);
      if (error === null) this.#take(parseRequest(Buffer.from(buffer.subarray(0, bytes))));
      this.listen();
    });
  }

  #take(request: FuseRequest): void {
    if (NO_ANSWER.has(request.operation)) return;
    const isGreeting = request.operation === OPERATION.INIT || request.operation === OPERATION.DESTROY;
    if (this.mood.kind === 'hang' && !isGreeting) this.#waiting.push(request);
    else this.#answer(request);
  }

  #answer(request: FuseRequest): void {
    const result = this.#refusal(request) ?? this.#serve(request);
    const reply =
      typeof result === 'number'
        ? formatReply(request.unique, result)
        : formatReply(request.unique, 0, result);
    try {
      writeSync(this.#descriptor, reply);
    } catch {
      // ENOENT: who asked was killed meanwhile.
    }
  }

  #refusal({ operation }: FuseRequest): number | undefined {
    const { mood } = this;
    if (mood.kind !== 'fail' || operation === OPERATION.INIT) return undefined;
    return operation === (mood.operation ?? operation) ? mood.errno : undefined;
  }

  /** The body of the answer, or an errno. */
  #serve({ operation, node, body }: FuseRequest): Buffer | number {
    switch (operation) {
      case OPERATION.INIT:
        return initReply();
      case OPERATION.GETATTR:
        return this.#with(node, attributesReply);
      case OPERATION.LOOKUP:
        return this.#lookUp(nameIn(body, 0));
      case OPERATION.SETATTR:
        return this.#resize(node, body);
      case OPERATION.CREATE:
        return this.#create(nameIn(body, 16));
      case OPERATION.UNLINK:
        return this.#files.delete(nameIn(body, 0)) ? Buffer.alloc(0) : ENOENT;
      case OPERATION.READ:
        return this.#read(node, Number(body.readBigUInt64LE(8)), body.readUInt32LE(16));
      case OPERATION.WRITE:
        return this.#write(
          node,
          Number(body.readBigUInt64LE(8)),
          body.subarray(40, 40 + body.readUInt32LE(16)),
        );
      case OPERATION.STATFS:
        return statfsReply();
      case OPERATION.OPEN:
      case OPERATION.OPENDIR:
        return openReply();
      case OPERATION.READDIR:
        return directoryReply(this.#entries(), body.readBigUInt64LE(8), this.#isTerse);
      case OPERATION.RELEASE:
      case OPERATION.RELEASEDIR:
      case OPERATION.FLUSH:
      case OPERATION.FSYNC:
      case OPERATION.FSYNCDIR:
      case OPERATION.DESTROY:
        return Buffer.alloc(0);
      default:
        return ENOSYS;
    }
  }

  get #isTerse(): boolean {
    return this.mood.kind === 'fail' && this.mood.isTerse === true;
  }

  #entries(): (readonly [string, FuseNode])[] {
    return [...this.#files].map(([name, file]) => [name, shown(file)] as const);
  }

  #fileOf(node: bigint) {
    return [...this.#files.values()].find((file) => file.node === node);
  }

  #with(node: bigint, reply: (node: FuseNode) => Buffer): Buffer | number {
    if (node === ROOT_NODE) return reply({ node, isDirectory: true, sizeBytes: 4_096 });
    const file = this.#fileOf(node);
    return file === undefined ? ENOENT : reply(shown(file));
  }

  #lookUp(name: string): Buffer | number {
    const file = this.#files.get(name);
    return file === undefined ? ENOENT : entryReply(shown(file));
  }

  #create(name: string): Buffer {
    const file = { node: this.#nextNode, content: Buffer.alloc(0) };
    this.#nextNode += 1n;
    this.#files.set(name, file);
    return Buffer.concat([entryReply(shown(file)), openReply()]);
  }

  #resize(node: bigint, body: Buffer): Buffer | number {
    const SIZE = 8;
    const file = this.#fileOf(node);
    if (file !== undefined && (body.readUInt32LE(0) & SIZE) !== 0)
      file.content = file.content.subarray(0, Number(body.readBigUInt64LE(16)));
    return this.#with(node, attributesReply);
  }

  #read(node: bigint, offset: number, bytes: number): Buffer | number {
    return this.#fileOf(node)?.content.subarray(offset, offset + bytes) ?? EIO;
  }

  #write(node: bigint, offset: number, data: Buffer): Buffer | number {
    const file = this.#fileOf(node);
    if (file === undefined) return EIO;
    const grown = Buffer.alloc(Math.max(file.content.length, offset + data.length));
    file.content.copy(grown);
    data.copy(grown, offset);
    file.content = grown;
    return writeReply(data.length);
  }
}

function shown(file: { readonly node: bigint; readonly content: Buffer }): FuseNode {
  return { node: file.node, isDirectory: false, sizeBytes: file.content.length };
}

function nameIn(body: Buffer, offset: number): string {
  return body.toString('utf8', offset, body.indexOf(0, offset));
}

/** The process of the server: it mounts itself, and ends when it is unmounted or its parent goes. */
function serve(target: string, source: string): void {
  const descriptor = openSync('/dev/fuse', 'r+');
  const server = new FuseServer(descriptor);
  const options = 'fd=3,rootmode=40000,user_id=0,group_id=0,allow_other';
  // -i: mount(2) itself, no helper of libfuse. The descriptor is looked up in the process that mounts.
  const mounted = spawnSync('mount', ['-i', '-t', 'fuse', '-o', options, '--', source, target], {
    stdio: ['ignore', 'inherit', 'inherit', descriptor],
  });
  if (mounted.status !== 0) process.exit(1);
  server.listen();
  process.on('message', (question: FuseMood | { kind: 'waiting' }) => {
    if (question.kind !== 'waiting') server.change(question);
    process.send?.(question.kind === 'waiting' ? server.waiting : 'changed');
  });
  process.send?.('mounted');
}

const [target, source] = process.argv.slice(2);
if (process.argv[1] === fileURLToPath(import.meta.url) && target !== undefined)
  serve(target, source ?? 'fuse');
