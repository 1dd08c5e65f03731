/** The drivers of this node: found by looking, admitted by handshake, replaced or gone when their sockets are. */
import { type Failure, ok, type Result } from '../../../mount/failure.ts';
import type { AbsolutePath, Cancel, Host, SocketIdentity } from '../../../mount/host.ts';
import type { DriverInstance, DriverRegistry, RefusedDriver } from './driver.ts';
import { type Candidate, createDriverElection } from './driver-election.ts';
import { createPacedLook, type PacedLook } from './coalesced-task.ts';
import { notifyRegistrar, questionDriver, readAnnouncement } from './registration.ts';
import {
  findSocket,
  type FoundSocket,
  isPluginSocket,
  type TrustedLayout,
  trustDirectory,
} from './socket-trust.ts';
import { shown } from '../wire/status.ts';
import { scanRegistry } from './registry-scan.ts';
import { ABSENT } from './trace.ts';
import { createWatchList } from './watch-list.ts';

const REGISTRY_MODE = 0o750;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 10_000;
/** A socket that is replaced while its driver hangs: so many abandoned handshakes may run out beside the new one. */
const HANDSHAKES_PER_SOCKET_MAX = 3;
const NODE_IDS_MAX = 1_024;
const LOOK_SPACING_MS = 20;

export interface DriverRegistryParts {
  readonly host: Host;
  readonly layout: TrustedLayout;
  /** CSI sockets of drivers that do not register. */
  readonly staticSockets: readonly AbsolutePath[];
  /** How often everything is looked at without a hint. */
  readonly resyncMs: number;
}

export interface RunningDriverRegistry extends DriverRegistry {
  /** Settles when the registry directory has been read once; handshakes go on by themselves. */
  start(): Promise<void>;
  /** Ends watches and timers; answers still on their way are dropped. */
  stop(): void;
  /** A call found nobody there: look at once whether the driver was replaced or is gone. */
  suspect(driver: string): void;
}

/** One socket that registers a driver, or is one. */
interface Entry {
  readonly socket: AbsolutePath;
  readonly isStatic: boolean;
  readonly look: PacedLook;
  /** What the last listing of the registry showed of it; undefined when it could not be listed. */
  trace: string | undefined;
  announced: Announced | undefined;
  instance: DriverInstance | undefined;
  /** Of the endpoint when the instance was admitted. */
  life: string | undefined;
  /** Place in the order of registrations; a driver restarted behind its registrar keeps it. */
  order: number;
  attempt: Attempt | undefined;
  handshakes: number;
  refusal: { readonly name: string | undefined; readonly failure: Failure } | undefined;
  note: string | undefined;
}

/** The finished handshake with that life of the registration socket. */
interface Announced {
  readonly life: string;
  readonly name: string;
  readonly endpoint: AbsolutePath;
}

interface Admitted {
  readonly instance: DriverInstance;
  /** Of the endpoint. */
  readonly life: string;
  /** Undefined when only the driver was questioned. */
  readonly announced: Announced | undefined;
}

/** Trying to admit what was seen; `key` names the life of the socket it is about. */
interface Attempt {
  readonly key: string;
  readonly run: () => Promise<Result<Admitted>>;
  running: boolean;
  failures: number;
  endedAtMs: number;
  retry: Cancel | undefined;
}

/**
 * Guarantees: sockets never wait for each other (DR-18); a replaced socket is a new instance, and from the moment
 * it is seen the old one is not given out; a failed handshake is retried by back-off, and soon after any hint
 * about it. Looking is linear: a hint costs one listing, and looks only at what that shows to be another than before.
 */
export function createDriverRegistry(parts: DriverRegistryParts): RunningDriverRegistry {
  const { host, layout } = parts;
  const entries = new Map<AbsolutePath, Entry>();
  const nodeIds = new Map<string, string>();
  /** Instances whose socket is known to be another one now. */
  const outdated = new WeakSet<DriverInstance>();
  const election = createDriverElection(host, candidates);
  const watches = createWatchList<Entry>(host, hurry);
  let directoryRefusal: Pick<Failure, 'message' | 'code'> | undefined;
  const scan = createPacedLook(host, LOOK_SPACING_MS, scanOnce);
  /** Whether the next scan looks at what seems to be as it was, too. */
  let isThorough = true;
  let orders = 0;
  let cancelWatch: Cancel | undefined;
  let cancelResync: Cancel | undefined;
  let stopped = false;

  function candidates(name: string): readonly Candidate[] {
    return [...entries.values()].flatMap((entry) =>
      entry.instance?.name === name ? [{ owner: entry, instance: entry.instance, order: entry.order }] : [],
    );
  }

  function addEntry(socket: AbsolutePath, isStatic: boolean): Entry {
    const entry: Entry = {
      socket,
      isStatic,
      look: createPacedLook(host, LOOK_SPACING_MS, () => lookOnce(entry)),
      trace: undefined,
      announced: undefined,
      instance: undefined,
      life: undefined,
      order: 0,
      attempt: undefined,
      handshakes: 0,
      refusal: undefined,
      note: undefined,
    };
    entries.set(socket, entry);
    return entry;
  }

  // Looking: which sockets are there, and are they the ones we know?

  async function scanOnce(): Promise<void> {
    const looksAtAll = isThorough;
    isThorough = false;
    const trusted = await trustDirectory(host, layout.registry, layout.root);
    const isKnown = (socket: AbsolutePath): boolean => isDriver(entries.get(socket));
    const scanned = trusted.ok ? await scanRegistry(host, layout.registry, isKnown) : trusted;
    if (stopped) return;
    const refusal = scanned.ok ? scanned.value.refusal : undefined;
    const told = refusal === undefined ? undefined : ({ message: refusal, code: 'too-large' } as const);
    directoryRefusal = scanned.ok ? told : scanned.failure;
    const sockets = scanned.ok ? scanned.value.sockets : undefined;
    for (const socket of sockets?.keys() ?? []) if (!entries.has(socket)) addEntry(socket, false);
    const hasLeft = refusal !== undefined;
    for (const entry of hasLeft ? [...entries.values()] : [])
      if (!entry.isStatic && sockets?.has(entry.socket) !== true) forget(entry);
    for (const entry of entries.values()) {
      if (!entry.isStatic && isChanged(entry, sockets)) hurry(entry);
      else if (looksAtAll) void entry.look.ask();
    }
  }

  /** Looks are for what the listing shows to be another: hundreds of sockets are not looked at for the sake of one. */
  function isChanged(entry: Entry, sockets: ReadonlyMap<AbsolutePath, string> | undefined): boolean {
    const before = entry.trace;
    // What is not listed any more is told by its own lstat.
    entry.trace = sockets === undefined ? undefined : (sockets.get(entry.socket) ?? ABSENT);
    return entry.trace === undefined || entry.trace !== before;
  }

  /** A hint forgets the back-off. */
  function hurry(entry: Entry): void {
    const { attempt } = entry;
    if (attempt !== undefined) attempt.failures = 0;
    if (attempt?.retry !== undefined) schedule(entry, attempt);
    void entry.look.ask();
  }

  async function lookOnce(entry: Entry): Promise<void> {
    const seen = await findSocket(host, entry.socket, layout.root);
    if (stopped || entries.get(entry.socket) !== entry) return;
    if (!seen.ok && seen.failure.code === 'path-missing' && !entry.isStatic) return forget(entry);
    if (!seen.ok) return refuse(entry, undefined, seen.failure);
    if (entry.isStatic) return lookAtEndpoint(entry, seen, undefined);
    const { announced } = entry;
    if (announced?.life !== seen.value.life) {
      return begin(entry, `registration ${seen.value.life}`, () => handshake(entry, seen.value));
    }
    const endpoint = await findSocket(host, announced.endpoint, layout.root);
    if (!stopped && entry.announced === announced) lookAtEndpoint(entry, endpoint, announced.name);
  }

  /** The registrar need not be asked again when only its driver was restarted: name and endpoint are the same. */
  function lookAtEndpoint(entry: Entry, seen: Result<FoundSocket>, name: string | undefined): void {
    if (!seen.ok) {
      refuse(entry, name, seen.failure);
      return;
    }
    const { identity, life } = seen.value;
    if (entry.instance !== undefined && entry.life === life) return;
    const registrationSocket = entry.isStatic ? undefined : entry.socket;
    begin(entry, `endpoint ${life}`, async () => {
      const instance = await questionDriver(host, identity, { name, registrationSocket });
      return instance.ok ? ok({ instance: instance.value, life, announced: undefined }) : instance;
    });
  }

  // Admitting.

  function begin(entry: Entry, key: string, run: Attempt['run']): void {
    if (entry.attempt?.key === key) return;
    entry.attempt?.retry?.();
    if (entry.instance !== undefined) outdated.add(entry.instance);
    const endedAtMs = Number.NEGATIVE_INFINITY;
    entry.attempt = { key, run, running: false, failures: 0, endedAtMs, retry: undefined };
    void carryOut(entry, entry.attempt);
  }

  async function carryOut(entry: Entry, attempt: Attempt): Promise<void> {
    if (entry.handshakes < HANDSHAKES_PER_SOCKET_MAX) {
      attempt.running = true;
      entry.handshakes += 1;
      const admitted = await attempt.run();
      entry.handshakes -= 1;
      attempt.running = false;
      if (stopped || entry.attempt !== attempt) return;
      if (admitted.ok) return admit(entry, admitted.value);
      withdraw(entry);
      entry.refusal = { name: entry.announced?.name, failure: admitted.failure };
    }
    attempt.failures += 1;
    attempt.endedAtMs = host.nowMs();
    schedule(entry, attempt);
  }

  /** Counted from the end of the last try, so that a storm of hints makes some ten tries a second at most. */
  function schedule(entry: Entry, attempt: Attempt): void {
    attempt.retry?.();
    const doublings = Math.min(Math.max(attempt.failures - 1, 0), 16);
    const waitMs = Math.min(RETRY_MS_MIN * 2 ** doublings, RETRY_MS_MAX) * (0.8 + 0.4 * host.random());
    attempt.retry = host.timer(Math.max(0, attempt.endedAtMs + waitMs - host.nowMs()), () => {
      attempt.retry = undefined;
      if (!stopped && entry.attempt === attempt) void carryOut(entry, attempt);
    });
  }

  async function handshake(entry: Entry, { identity: socket, life }: FoundSocket): Promise<Result<Admitted>> {
    const announcement = await readAnnouncement(host, socket);
    // As in the kubelet, one that gave no answer is told nothing; one whose answer cannot be used is.
    if (!announcement.ok && announcement.failure.code !== 'driver-answer-invalid') return announcement;
    if (!announcement.ok) return tellRegistrar(socket, announcement);
    const { name, endpoint: path } = announcement.value;
    const placed = isPluginSocket(layout, path);
    if (!placed.ok) return tellRegistrar(socket, placed);
    if (entries.get(entry.socket) === entry) watches.keep(entry, path);
    const endpoint = await findSocket(host, path, layout.root);
    if (!endpoint.ok) return tellRegistrar(socket, endpoint);
    const instance = await questionDriver(host, endpoint.value.identity, {
      name,
      registrationSocket: entry.socket,
    });
    if (!instance.ok) return tellRegistrar(socket, instance);
    // First the registrar, then we: a verdict it never got would leave it waiting beside a driver in use (DR-14).
    const told = await notifyRegistrar(host, socket, undefined);
    if (!told.ok) return told;
    return ok({
      instance: instance.value,
      life: endpoint.value.life,
      announced: { life, name, endpoint: path },
    });
  }

  /** It ends itself and comes back with a new socket; so it is not told of a driver that only needs more time. */
  async function tellRegistrar(socket: SocketIdentity, refused: Refused): Promise<Refused> {
    if (refused.failure.code !== 'driver-busy') await notifyRegistrar(host, socket, refused.failure);
    return refused;
  }

  function admit(entry: Entry, { instance, life, announced }: Admitted): void {
    const { name, nodeId } = instance;
    const previousName = entry.instance?.name;
    const previousId = nodeIds.get(name);
    entry.note =
      previousId === undefined || previousId === nodeId
        ? entry.note
        : `node id changed from "${shown(previousId)}" to "${shown(nodeId)}"`;
    remember(name, nodeId);
    if (entry.order === 0 || announced !== undefined) entry.order = ++orders;
    entry.announced = announced ?? entry.announced;
    entry.attempt = undefined;
    entry.refusal = undefined;
    entry.instance = instance;
    entry.life = life;
    watches.keep(entry, instance.endpoint.path);
    if (previousName !== undefined && previousName !== name) election.settle(previousName);
    election.settle(name);
    // What was replaced while we asked was not watched yet.
    void entry.look.ask();
  }

  function remember(name: string, nodeId: string): void {
    nodeIds.delete(name);
    nodeIds.set(name, nodeId);
    const [oldest] = nodeIds.keys();
    if (nodeIds.size > NODE_IDS_MAX && oldest !== undefined) nodeIds.delete(oldest);
  }

  // Taking back.

  function withdraw(entry: Entry): void {
    const name = entry.instance?.name;
    entry.instance = undefined;
    if (name !== undefined) election.settle(name);
  }

  function refuse(entry: Entry, name: string | undefined, failure: Failure): void {
    entry.attempt?.retry?.();
    entry.attempt = undefined;
    withdraw(entry);
    entry.refusal = { name, failure };
  }

  function forget(entry: Entry): void {
    entries.delete(entry.socket);
    entry.look.stop();
    entry.attempt?.retry?.();
    entry.attempt = undefined;
    watches.drop(entry);
    withdraw(entry);
  }

  function refusalOf(entry: Entry): RefusedDriver[] {
    const { socket, instance, refusal, note } = entry;
    const name = refusal?.name ?? instance?.name;
    const drained =
      instance === undefined || election.serves(instance.name, entry)
        ? undefined
        : 'another, newer registration of this driver serves';
    const reason = refusal?.failure.message ?? drained ?? note;
    return reason === undefined ? [] : [{ socket, name, reason, code: refusal?.failure.code }];
  }

  function resync(): void {
    cancelResync = host.timer(parts.resyncMs, () => {
      isThorough = true;
      void scan.ask();
      resync();
    });
  }

  return {
    async start() {
      const made = await host.makeDirectory(layout.registry, REGISTRY_MODE);
      if (stopped) return;
      for (const socket of parts.staticSockets) {
        watches.keep(addEntry(socket, true), socket);
      }
      cancelWatch = host.watch(layout.registry, () => void scan.ask());
      resync();
      await scan.ask();
      if (!made.ok) directoryRefusal ??= made.failure;
    },
    stop() {
      stopped = true;
      cancelWatch?.();
      cancelResync?.();
      watches.stop();
      election.stop();
      scan.stop();
      for (const entry of entries.values()) {
        entry.look.stop();
        entry.attempt?.retry?.();
      }
    },
    get: (name) => {
      const instance = election.get(name);
      return instance === undefined || outdated.has(instance) ? undefined : instance;
    },
    list: () => election.list().filter((instance) => !outdated.has(instance)),
    refused: () => {
      const { message: reason = '', code } = directoryRefusal ?? {};
      const directory = { socket: layout.registry, name: undefined, reason, code };
      return [
        ...(directoryRefusal === undefined ? [] : [directory]),
        ...[...entries.values()].flatMap(refusalOf),
      ];
    },
    onChange: election.onChange,
    suspect: (driver) => {
      for (const entry of entries.values()) if (entry.instance?.name === driver) hurry(entry);
    },
  };
}

type Refused = { readonly ok: false; readonly failure: Failure };

/** It is one, or was the last time it answered. */
function isDriver(entry: Entry | undefined): boolean {
  return entry?.instance !== undefined || entry?.announced !== undefined;
}
