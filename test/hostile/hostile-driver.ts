/**
 * A CSI driver as they are met: naive ("something is mounted there, so it is done"), and moody. It is busy, loses
 * answers, gives up waiting and works on: what was asked comes minutes later, whatever was asked since. It keeps books
 * of what it must believe is in use.
 */
import { mkdirSync, rmdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  IdentityService,
  NodeService,
  NodeServiceCapability_RPC_Type as NodeCapability,
} from '../../plugins/csi/wire/generated/csi.ts';
import { RegistrationService } from '../../plugins/csi/wire/generated/pluginregistration.ts';
import { type GrpcImplementation, type GrpcServer, GrpcStatus } from '../../plugins/csi/wire/grpc-service.ts';
import { serveGrpc } from '../../plugins/csi/wire/grpc.ts';
import { createRegistrationService } from '../../plugins/loopfile/registration-service.ts';
import { must } from './command.ts';
import type { Disk } from './disk.ts';
import { isMountPoint } from './kernel.ts';

export const DRIVER = 'hostile.mooring.dev';

/**
 * `late`: refused with DEADLINE_EXCEEDED at once, done after `afterMs`. `silent`: not answered before it is done after
 * `afterMs`. `lost`: done, and answered with UNAVAILABLE. `busy`: ABORTED, nothing done.
 */
export type CallMood =
  | { readonly kind: 'good' }
  | { readonly kind: 'busy' }
  | { readonly kind: 'lost' }
  | { readonly kind: 'late' | 'silent'; readonly afterMs: number };

/** A call that takes something down, from when it was asked for; without an end it is still to take effect. */
interface Teardown {
  readonly askedMs: number;
  endedMs: number | undefined;
}

interface Book {
  readonly disk: Disk;
  staged: string | undefined;
  readonly published: Set<string>;
  /** Effects of calls that were given up and are still to come. */
  late: number;
  turn: Promise<unknown>;
}

const ABORTED = 10;
const UNAVAILABLE = 14;
const DEADLINE_EXCEEDED = 4;
const NOT_FOUND = 5;
const INTERNAL = 13;

export class HostileDriver {
  mood: () => CallMood = () => ({ kind: 'good' });
  calls = 0;
  readonly #teardowns: Teardown[] = [];
  #isClosed = false;
  readonly #books = new Map<string, Book>();
  readonly #tell: (line: string) => void;
  #servers: readonly GrpcServer[] = [];

  constructor(disks: readonly Disk[], tell: (line: string) => void) {
    for (const disk of disks)
      this.#books.set(disk.handle, {
        disk,
        staged: undefined,
        published: new Set(),
        late: 0,
        turn: Promise.resolve(),
      });
    this.#tell = tell;
  }

  async serve(root: string): Promise<void> {
    const socket = join(root, 'plugins', DRIVER, 'csi.sock');
    const registry = join(root, 'plugins_registry');
    for (const directory of [dirname(socket), registry])
      mkdirSync(directory, { recursive: true, mode: 0o750 });
    this.#servers = [
      await serveGrpc(socket, [
        { definition: IdentityService, implementation: IDENTITY },
        { definition: NodeService, implementation: this.#node() },
      ]),
      await serveGrpc(join(registry, `${DRIVER}-reg.sock`), [
        {
          definition: RegistrationService,
          implementation: createRegistrationService(DRIVER, socket, () => undefined),
        },
      ]),
    ];
  }

  /** Nothing that is still to come does. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const server of this.#servers) await server.close();
  }

  /** What it must believe is in use: empty when everything was given back. */
  remains(): readonly string[] {
    return [...this.#books.values()].flatMap(({ disk, staged, published, late }) => [
      ...[...published].map((target) => `${disk.handle} published at ${target}`),
      ...(staged === undefined ? [] : [`${disk.handle} staged at ${staged}`]),
      ...(disk.loop === undefined ? [] : [`${disk.handle} holds ${disk.loop}`]),
      ...(late === 0 ? [] : [`${late} late effects of ${disk.handle} are still to come`]),
    ]);
  }

  lateEffects(): number {
    return [...this.#books.values()].reduce((sum, { late }) => sum + late, 0);
  }

  /** Did it, after the one moment, take something down for which it was asked before the other? */
  tookDown(afterMs: number, askedBeforeMs: number): boolean {
    return this.#teardowns.some(
      ({ askedMs, endedMs }) => askedMs < askedBeforeMs && (endedMs === undefined || endedMs >= afterMs),
    );
  }

  #node(): GrpcImplementation<typeof NodeService> {
    const stage = { type: { $case: 'rpc', value: { type: NodeCapability.STAGE_UNSTAGE_VOLUME } } } as const;
    return {
      nodeGetInfo: async () => ({ nodeId: 'hostile', maxVolumesPerNode: 0n, accessibleTopology: undefined }),
      nodeGetCapabilities: async () => ({ capabilities: [stage] }),
      nodeStageVolume: ({ volumeId, stagingTargetPath }) =>
        this.#answer('stage', volumeId, stagingTargetPath, (book) => this.#stage(book, stagingTargetPath)),
      nodeUnstageVolume: ({ volumeId, stagingTargetPath }) =>
        this.#answer('unstage', volumeId, stagingTargetPath, (book) =>
          this.#unstage(book, stagingTargetPath),
        ),
      nodePublishVolume: ({ volumeId, stagingTargetPath, targetPath }) =>
        this.#answer('publish', volumeId, targetPath, (book) =>
          this.#publish(book, stagingTargetPath, targetPath),
        ),
      nodeUnpublishVolume: ({ volumeId, targetPath }) =>
        this.#answer('unpublish', volumeId, targetPath, (book) => this.#unpublish(book, targetPath)),
    };
  }

  async #answer(
    what: string,
    handle: string,
    path: string,
    act: (book: Book) => Promise<void>,
  ): Promise<Record<string, never>> {
    this.calls += 1;
    const book = this.#books.get(handle);
    if (book === undefined) throw new GrpcStatus(NOT_FOUND, `no volume ${handle}`);
    const mood = this.mood();
    this.#tell(`driver: ${what} ${handle} ${path.slice(-60)}: ${mood.kind}`);
    const teardown: Teardown = { askedMs: performance.now(), endedMs: undefined };
    // One after the other, as drivers lock their volumes; what comes late takes its turn late.
    const inTurn = (): Promise<void> => {
      if (what.startsWith('un')) this.#teardowns.push(teardown);
      const done = book.turn.then(() => act(book));
      book.turn = done.catch(() => undefined).finally(() => (teardown.endedMs = performance.now()));
      return done;
    };
    switch (mood.kind) {
      case 'busy':
        throw new GrpcStatus(ABORTED, 'an operation on this volume is in progress');
      case 'lost':
        await inTurn();
        throw new GrpcStatus(UNAVAILABLE, 'the answer got lost');
      case 'late':
        void this.#later(book, `${what} ${handle}`, mood.afterMs, inTurn);
        throw new GrpcStatus(DEADLINE_EXCEEDED, 'the storage did not answer in time');
      case 'silent':
        await this.#later(book, `${what} ${handle}`, mood.afterMs, inTurn);
        return {};
      case 'good':
        try {
          await inTurn();
        } catch (error) {
          throw new GrpcStatus(INTERNAL, error instanceof Error ? error.message : String(error));
        }
        return {};
    }
  }

  async #later(book: Book, what: string, afterMs: number, act: () => Promise<void>): Promise<void> {
    book.late += 1;
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    if (this.#isClosed) return;
    try {
      await act();
      this.#tell(`driver: late, ${what} takes effect`);
    } catch (error) {
      this.#tell(`driver: late, ${what} fails: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      book.late -= 1;
    }
  }

  async #stage(book: Book, path: string): Promise<void> {
    if (!isMountPoint(path)) {
      mkdirSync(path, { recursive: true, mode: 0o750 });
      await book.disk.mount(path);
    }
    book.staged = path;
  }

  async #unstage(book: Book, path: string): Promise<void> {
    if (isMountPoint(path)) await must(['umount', '--', path]);
    if (book.published.size === 0) await book.disk.release();
    book.staged = undefined;
  }

  async #publish(book: Book, staging: string, target: string): Promise<void> {
    if (!isMountPoint(target)) {
      // A late one finds its stage undone, and does it again.
      await this.#stage(book, staging);
      mkdirSync(target, { recursive: true, mode: 0o750 });
      await must(['mount', '--bind', '--', staging, target]);
    }
    book.published.add(target);
  }

  async #unpublish(book: Book, target: string): Promise<void> {
    if (isMountPoint(target)) await must(['umount', '--', target]);
    try {
      rmdirSync(target);
    } catch {
      // Not there, or not empty: nobody's data goes.
    }
    book.published.delete(target);
    // Its stage was undone before, by a call that came late.
    if (book.staged === undefined && book.published.size === 0) await book.disk.release();
  }
}

const IDENTITY: GrpcImplementation<typeof IdentityService> = {
  getPluginInfo: async () => ({ name: DRIVER, vendorVersion: '1.0.0', manifest: {} }),
  getPluginCapabilities: async () => ({ capabilities: [] }),
  probe: async () => ({ ready: true }),
};
