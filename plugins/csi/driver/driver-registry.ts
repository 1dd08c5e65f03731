/** The drivers of this node: found by looking, admitted by handshake, replaced or gone when their sockets are. */
import { type Failure, fail, type Result } from '../../../mount/failure.ts';
import type { AbsolutePath, Cancel, Host } from '../../../mount/host.ts';
import { type BlindLook, createBlindLook, isBlind } from './blind-look.ts';
import { createPacedLook, type PacedLook } from './coalesced-task.ts';
import type { DriverChange, DriverInstance, DriverRegistry, RefusedDriver } from './driver.ts';
import { type Candidate, createDriverElection, type DriverElection } from './driver-election.ts';
import { DriverSocket, type SocketSurroundings } from './driver-socket.ts';
import { createNodeIds } from './node-ids.ts';
import { askVolumesMax, type Questioner } from './registration.ts';
import { isLookedAt, scanRegistry } from './registry-scan.ts';
import { type TrustedLayout, trustDirectory } from './socket-trust.ts';
import { createWatchList, type WatchList } from './watch-list.ts';

const REGISTRY_MODE = 0o750;
const LOOK_SPACING_MS = 20;

export interface DriverRegistryParts {
  readonly host: Host;
  readonly layout: TrustedLayout;
  /** CSI sockets of drivers that do not register. */
  readonly staticSockets: readonly AbsolutePath[];
  /** How often everything is looked at without a hint. */
  readonly resyncMs: number;
  readonly hidden?: Questioner['hidden'];
}

export interface RunningDriverRegistry extends DriverRegistry {
  /** Settles when the registry directory has been read once; handshakes go on by themselves. */
  start(): Promise<void>;
  /** Ends watches and timers; answers still on their way are dropped. */
  stop(): void;
  /** A call found nobody there: look at once whether the driver was replaced or is gone. */
  suspect(driver: string): void;
  /** All that are looked at, in no order; `serves`: a driver was admitted there. */
  sockets(): readonly { readonly path: AbsolutePath; readonly serves: boolean }[];
}

/**
 * Guarantees: sockets never wait for each other (DR-18); what DriverSocket promises of each. Looking is linear: a hint
 * costs one listing, and looks only at what that shows to be another than before.
 */
export function createDriverRegistry(parts: DriverRegistryParts): RunningDriverRegistry {
  return new LookingRegistry(parts);
}

class LookingRegistry implements RunningDriverRegistry {
  readonly #parts: DriverRegistryParts;
  readonly #questioner: Questioner;
  readonly #sockets = new Map<AbsolutePath, DriverSocket>();
  readonly #outdated = new WeakSet<DriverInstance>();
  readonly #election: DriverElection;
  readonly #watches: WatchList<DriverSocket>;
  readonly #surroundings: SocketSurroundings;
  readonly #scan: PacedLook;
  readonly #blindScan: BlindLook;
  /** Whether the next scan looks at what seems to be as it was, too. */
  #isThorough = true;
  #isStopped = false;
  #directoryRefusal: Pick<Failure, 'message' | 'code'> | undefined;
  #cancelWatch: Cancel | undefined;
  #cancelResync: Cancel | undefined;

  constructor(parts: DriverRegistryParts) {
    const { host, layout, hidden = () => ({ secrets: [] }) } = parts;
    this.#parts = parts;
    this.#questioner = { call: (call) => host.call(call), nowMs: () => host.nowMs(), hidden };
    this.#election = createDriverElection(host, (name) => this.#candidates(name));
    this.#watches = createWatchList(host, (socket) => socket.hurry());
    this.#scan = createPacedLook(host, LOOK_SPACING_MS, () => this.#scanOnce());
    this.#blindScan = createBlindLook(host, () => void this.#scan.ask());
    let orders = 0;
    this.#surroundings = {
      ...{ host, layout, questioner: this.#questioner },
      election: this.#election,
      watches: this.#watches,
      nodeIds: createNodeIds(),
      outdated: this.#outdated,
      nextOrder: () => ++orders,
      remove: ({ path }) => this.#sockets.delete(path),
    };
  }

  async start(): Promise<void> {
    const { host, layout, staticSockets } = this.#parts;
    const made = await host.makeDirectory(layout.registry, REGISTRY_MODE);
    if (this.#isStopped) return;
    for (const path of staticSockets) this.#watches.keep(this.#add(path, true), path);
    this.#cancelWatch = host.watch(layout.registry, () => void this.#scan.ask(), isLookedAt);
    this.#resync();
    await this.#scan.ask();
    if (!made.ok) this.#directoryRefusal ??= made.failure;
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelWatch?.();
    this.#cancelResync?.();
    this.#watches.stop();
    this.#election.stop();
    this.#scan.stop();
    this.#blindScan.end();
    for (const socket of this.#sockets.values()) socket.stop();
  }

  get(name: string): DriverInstance | undefined {
    const instance = this.#election.get(name);
    return instance === undefined || this.#outdated.has(instance) ? undefined : instance;
  }

  list(): readonly DriverInstance[] {
    return this.#election.list().filter((instance) => !this.#outdated.has(instance));
  }

  refused(): readonly RefusedDriver[] {
    const { message: reason = '', code } = this.#directoryRefusal ?? {};
    const directory = { socket: this.#parts.layout.registry, name: undefined, reason, code };
    return [
      ...(this.#directoryRefusal === undefined ? [] : [directory]),
      ...[...this.#sockets.values()].flatMap((socket) => socket.refusals()),
    ];
  }

  onChange(listener: (change: DriverChange) => void): Cancel {
    return this.#election.onChange(listener);
  }

  async askVolumesMax(name: string): Promise<Result<number>> {
    const instance = this.get(name);
    if (instance !== undefined) return askVolumesMax(this.#questioner, instance);
    return fail({ code: 'driver-not-registered', message: `${name} is not registered`, effect: 'none' });
  }

  suspect(driver: string): void {
    for (const socket of this.#sockets.values()) if (socket.instance?.name === driver) socket.hurry();
  }

  sockets(): readonly { readonly path: AbsolutePath; readonly serves: boolean }[] {
    return [...this.#sockets.values()].map(({ path, instance }) => ({
      path,
      serves: instance !== undefined,
    }));
  }

  #candidates(name: string): readonly Candidate[] {
    return [...this.#sockets.values()].flatMap((socket) => {
      const { instance, order } = socket;
      return instance?.name === name ? [{ owner: socket, instance, order }] : [];
    });
  }

  #add(path: AbsolutePath, isStatic: boolean): DriverSocket {
    const socket = new DriverSocket(this.#surroundings, path, isStatic);
    this.#sockets.set(path, socket);
    return socket;
  }

  /** Which sockets are there, and are they the ones we know? */
  async #scanOnce(): Promise<void> {
    const { host, layout } = this.#parts;
    const looksAtAll = this.#isThorough;
    this.#isThorough = false;
    const trusted = await trustDirectory(host, layout.registry, layout.root);
    const isKnown = (path: AbsolutePath): boolean => this.#sockets.get(path)?.isKnown === true;
    const scanned = trusted.ok ? await scanRegistry(host, layout.registry, isKnown) : trusted;
    if (this.#isStopped) return;
    const refusal = scanned.ok ? scanned.value.refusal : undefined;
    const told = refusal === undefined ? undefined : ({ message: refusal, code: 'too-large' } as const);
    this.#directoryRefusal = scanned.ok ? told : scanned.failure;
    if (!scanned.ok && isBlind(scanned.failure.code)) this.#blindScan.again();
    else this.#blindScan.end();
    this.#takeOver(scanned.ok ? scanned.value.sockets : undefined, refusal !== undefined, looksAtAll);
  }

  /** Looks are for what the listing shows to be another: hundreds of sockets are not looked at for the sake of one. */
  #takeOver(
    listed: ReadonlyMap<AbsolutePath, string> | undefined,
    isCut: boolean,
    looksAtAll: boolean,
  ): void {
    for (const path of listed?.keys() ?? []) if (!this.#sockets.has(path)) this.#add(path, false);
    for (const socket of isCut ? [...this.#sockets.values()] : [])
      if (!socket.isStatic && listed?.has(socket.path) !== true) socket.forget();
    for (const socket of this.#sockets.values()) {
      if (!socket.isStatic && socket.isChangedIn(listed)) socket.hurry();
      else if (looksAtAll) socket.look();
    }
  }

  #resync(): void {
    this.#cancelResync = this.#parts.host.timer(this.#parts.resyncMs, () => {
      this.#isThorough = true;
      void this.#scan.ask();
      this.#resync();
    });
  }
}
