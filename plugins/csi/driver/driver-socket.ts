/** One socket that registers a driver, or is one: what was seen of it, who answers there, and why it does not serve. */
import { type Failure, ok, type Result } from '../../../mount/failure.ts';
import type { AbsolutePath } from '../../../mount/host.ts';
import { type Admission, createAdmission } from './admission.ts';
import { type BlindLook, createBlindLook, isBlind } from './blind-look.ts';
import { createPacedLook, type PacedLook } from './coalesced-task.ts';
import type { DriverInstance, RefusedDriver } from './driver.ts';
import type { DriverElection } from './driver-election.ts';
import { type Admitted, type Announced, type HandshakeParts, shakeHands } from './handshake.ts';
import type { NodeIds } from './node-ids.ts';
import { questionDriver } from './registration.ts';
import { findSocket, type FoundSocket } from './socket-trust.ts';
import { ABSENT } from './trace.ts';
import type { WatchList } from './watch-list.ts';

const LOOK_SPACING_MS = 20;

/** What all sockets of a registry share. */
export interface SocketSurroundings extends HandshakeParts {
  readonly election: Pick<DriverElection, 'settle' | 'serves'>;
  readonly watches: Pick<WatchList<DriverSocket>, 'keep' | 'drop'>;
  readonly nodeIds: NodeIds;
  /** Instances whose socket is known to be another one now. */
  readonly outdated: WeakSet<DriverInstance>;
  /** The next place in the order of registrations. */
  nextOrder(): number;
  /** The socket is gone: from now on it is no candidate any more. */
  remove(socket: DriverSocket): void;
}

/**
 * Guarantees: a replaced socket is a new instance, and from the moment it is seen the old one is not given out; a
 * failed handshake is retried by back-off, and soon after any hint about it. What is answered after `stop` is dropped.
 */
export class DriverSocket {
  readonly path: AbsolutePath;
  /** The configuration names it as a driver's own socket. */
  readonly isStatic: boolean;
  readonly #surroundings: SocketSurroundings;
  readonly #look: PacedLook;
  readonly #blindLook: BlindLook;
  readonly #admission: Admission;
  #isEnded = false;
  /** What the last listing of the registry showed of it; undefined when it could not be listed. */
  #trace: string | undefined;
  #announced: Announced | undefined;
  #instance: DriverInstance | undefined;
  /** Which life of the endpoint's socket the instance was admitted with. */
  #life: string | undefined;
  #order = 0;
  #refusal: { readonly name: string | undefined; readonly failure: Failure } | undefined;
  #note: string | undefined;

  constructor(surroundings: SocketSurroundings, path: AbsolutePath, isStatic: boolean) {
    this.#surroundings = surroundings;
    this.path = path;
    this.isStatic = isStatic;
    this.#look = createPacedLook(surroundings.host, LOOK_SPACING_MS, () => this.#lookOnce());
    this.#blindLook = createBlindLook(surroundings.host, () => this.look());
    this.#admission = createAdmission(surroundings.host, {
      admit: (admitted) => this.#admit(admitted),
      turnAway: (failure) => {
        this.#withdraw();
        this.#refusal = { name: this.#announced?.name, failure };
      },
    });
  }

  /** The driver that answered there last, as long as it was not withdrawn. */
  get instance(): DriverInstance | undefined {
    return this.#instance;
  }

  /** Later registrations are higher; a driver restarted behind its registrar keeps its place. */
  get order(): number {
    return this.#order;
  }

  /** It is a driver, or was one the last time it answered. */
  get isKnown(): boolean {
    return this.#instance !== undefined || this.#announced !== undefined;
  }

  look(): void {
    void this.#look.ask();
  }

  /** Looks at once; a hint forgets the back-off. */
  hurry(): void {
    this.#admission.hurry();
    void this.#look.ask();
  }

  /** Whether the listing shows another socket than the last one; undefined: the directory could not be listed. */
  isChangedIn(listing: ReadonlyMap<AbsolutePath, string> | undefined): boolean {
    const before = this.#trace;
    // What is not listed any more is told by its own lstat.
    this.#trace = listing === undefined ? undefined : (listing.get(this.path) ?? ABSENT);
    return this.#trace === undefined || this.#trace !== before;
  }

  /** The socket is not there any more. */
  forget(): void {
    this.#surroundings.remove(this);
    this.stop();
    this.#surroundings.watches.drop(this);
    this.#withdraw();
  }

  /** Ends looks and timers; answers still on their way are dropped. */
  stop(): void {
    this.#isEnded = true;
    this.#look.stop();
    this.#blindLook.end();
    this.#admission.end();
  }

  /** Why it does not serve, or what else is to be told of it. */
  refusals(): RefusedDriver[] {
    const { path: socket } = this;
    const name = this.#refusal?.name ?? this.#instance?.name;
    const drained =
      this.#instance === undefined || this.#surroundings.election.serves(this.#instance.name, this)
        ? undefined
        : 'another, newer registration of this driver serves';
    const reason = this.#refusal?.failure.message ?? drained ?? this.#note;
    return reason === undefined ? [] : [{ socket, name, reason, code: this.#refusal?.failure.code }];
  }

  async #lookOnce(): Promise<void> {
    const { host, layout } = this.#surroundings;
    const seen = await findSocket(host, this.path, layout.root);
    if (this.#isEnded) return;
    if (!seen.ok && seen.failure.code === 'path-missing' && !this.isStatic) return this.forget();
    if (!seen.ok) return this.#doubt(undefined, seen.failure);
    if (this.isStatic) return this.#lookAtEndpoint(seen, undefined);
    const announced = this.#announced;
    if (announced?.life !== seen.value.life) {
      this.#blindLook.end();
      return this.#begin(`registration ${seen.value.life}`, () => this.#shakeHands(seen.value));
    }
    const endpoint = await findSocket(host, announced.endpoint, layout.root);
    if (!this.#isEnded && this.#announced === announced) this.#lookAtEndpoint(endpoint, announced.name);
  }

  #shakeHands(seen: FoundSocket): Promise<Result<Admitted>> {
    return shakeHands(this.#surroundings, seen, (endpoint) => {
      if (!this.#isEnded) this.#surroundings.watches.keep(this, endpoint);
    });
  }

  /** The registrar need not be asked again when only its driver was restarted: name and endpoint are the same. */
  #lookAtEndpoint(seen: Result<FoundSocket>, name: string | undefined): void {
    if (!seen.ok) {
      this.#doubt(name, seen.failure);
      return;
    }
    this.#blindLook.end();
    const { identity, life } = seen.value;
    if (this.#instance !== undefined && this.#life === life) return;
    const registrationSocket = this.isStatic ? undefined : this.path;
    this.#begin(`endpoint ${life}`, async () => {
      const { questioner } = this.#surroundings;
      const instance = await questionDriver(questioner, identity, { name, registrationSocket, life });
      return instance.ok ? ok({ instance: instance.value, life, announced: undefined }) : instance;
    });
  }

  #begin(key: string, run: () => Promise<Result<Admitted>>): void {
    if (this.#instance !== undefined) this.#surroundings.outdated.add(this.#instance);
    this.#admission.begin(key, run);
  }

  #admit({ instance, life, announced }: Admitted): void {
    const { nodeIds, watches, election, nextOrder } = this.#surroundings;
    const { name, nodeId } = instance;
    const previousName = this.#instance?.name;
    this.#note = nodeIds.learn(name, nodeId) ?? this.#note;
    if (this.#order === 0 || announced !== undefined) this.#order = nextOrder();
    this.#announced = announced ?? this.#announced;
    this.#refusal = undefined;
    this.#instance = instance;
    this.#life = life;
    watches.keep(this, instance.endpoint.path);
    if (previousName !== undefined && previousName !== name) election.settle(previousName);
    election.settle(name);
    // What was replaced while we asked was not watched yet.
    void this.#look.ask();
  }

  #withdraw(): void {
    const name = this.#instance?.name;
    this.#instance = undefined;
    if (name !== undefined) this.#surroundings.election.settle(name);
  }

  /** Who serves goes on: each of its calls proves the socket itself. */
  #doubt(name: string | undefined, failure: Failure): void {
    if (!isBlind(failure.code)) {
      this.#blindLook.end();
      this.#refuse(name, failure);
      return;
    }
    if (this.#instance === undefined) this.#refusal = { name, failure };
    this.#blindLook.again();
  }

  #refuse(name: string | undefined, failure: Failure): void {
    this.#admission.end();
    this.#withdraw();
    this.#refusal = { name, failure };
  }
}
