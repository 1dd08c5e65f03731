/** Writes what the cluster is told of this node's drivers: labels and ids on the Node, then the CSINode's entries. */
import type { ApiFailure } from '../../kubernetes/api/api-failure.ts';
import type { ApiObjectEnvelope } from '../../kubernetes/api/api-object.ts';
import type { ApiTransport } from '../../kubernetes/api/api-transport.ts';
import { csiNodePath, csiNodesPath, nodePath } from '../../kubernetes/api/resource-path.ts';
import { createObject, deleteObject, patchObject, readOne } from '../../kubernetes/api/write-object.ts';
import type { Clock } from '../../mount/host.ts';
import type { NodeObject } from '../source/cluster/node-object.ts';
import {
  type AnnouncedDriver,
  type DriverEntry,
  driverEntries,
  entriesIn,
  NODE_IDS,
  nodeMarks,
  ownerUidOf,
} from './driver-announcement.ts';
import { RefusedDrivers } from './refused-drivers.ts';

export interface DriverWriterParts {
  readonly transport: ApiTransport;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly node: NodeObject;
  readonly nodeName: string;
  /** People should know of it; undefined: of nothing. `about`: one driver by its name, or what concerns them all. */
  readonly tell: (about: string, message: string | undefined) => void;
  /** What the CSINode says before it is changed. */
  readonly onEntries: (entries: readonly DriverEntry[]) => void;
}

type Drivers = readonly AnnouncedDriver[];
type Names = ReadonlySet<string>;

interface Unwritten {
  readonly failure: ApiFailure;
  /** The server does not take what is said of these drivers, or of one of them. */
  readonly isRefused: boolean;
}

const NOBODY: Names = new Set();
/** An entry that is to be another under its old name takes two, and a look; one more where its count is refused. */
const ROUNDS_MAX = 4;
const OTHER_THAN_GIVEN: ApiFailure = {
  code: 'failed',
  message: 'it keeps another CSINode than it was given',
  effect: 'none',
};

/** Guarantees: what the server refuses of one driver keeps no other back; a kubelet writes of each alone. */
export class DriverWriter {
  readonly #parts: DriverWriterParts;
  readonly #refusals: RefusedDrivers;

  constructor(parts: DriverWriterParts) {
    this.#parts = parts;
    this.#refusals = new RefusedDrivers(parts.clock);
  }

  /** Until the next of these that was refused is to be tried again, by one more `write`; undefined: none was. */
  untilDueMs(here: readonly Pick<AnnouncedDriver, 'name'>[]): number | undefined {
    return this.#refusals.untilDueMs(here);
  }

  /**
   * `gone` are taken away. The answer: what keeps all of it from being written. Of whom the server takes nothing alone
   * is told, and is no failure.
   */
  async write(node: ApiObjectEnvelope, here: Drivers, gone: Names): Promise<ApiFailure | undefined> {
    const due = this.#refusals.due(node.uid, here);
    // As with the kubelet: whoever reads of a driver in the CSINode finds its labels on the Node, before and after.
    const unmarked = await this.#each(due, NOBODY, (some) => this.#mark(node, some, NOBODY));
    if (unmarked !== undefined) return unmarked;
    const marked = due.filter((driver) => !this.#refusals.isWaiting(driver));
    const unannounced = await this.#each(marked, gone, (some, leaving) =>
      this.#announce(node, some, leaving),
    );
    if (unannounced !== undefined) return unannounced;
    for (const driver of marked) if (!this.#refusals.isWaiting(driver)) this.#taken(driver);
    return gone.size === 0 ? undefined : (await this.#mark(node, [], gone))?.failure;
  }

  /** All of them together, and one by one where the server refuses that; who was refused before is tried alone. */
  async #each(
    drivers: Drivers,
    gone: Names,
    write: (some: Drivers, gone: Names) => Promise<Unwritten | undefined>,
  ): Promise<ApiFailure | undefined> {
    const suspects = drivers.filter((driver) => this.#refusals.isSuspect(driver));
    const others = drivers.filter((driver) => !this.#refusals.isSuspect(driver));
    const together = await write(others, gone);
    if (together !== undefined && (!together.isRefused || others.length === 0)) return together.failure;
    for (const driver of together === undefined ? suspects : drivers) {
      const alone = await write([driver], NOBODY);
      if (alone?.isRefused === false) return alone.failure;
      if (alone !== undefined) this.#refuse(driver, alone.failure);
    }
    return together === undefined || gone.size === 0 ? undefined : (await write([], gone))?.failure;
  }

  #refuse(driver: AnnouncedDriver, failure: ApiFailure): void {
    this.#refusals.refused(driver, failure);
    this.#parts.tell(driver.name, `driver ${driver.name}: the API server says: ${failure.message}`);
  }

  #taken(driver: AnnouncedDriver): void {
    this.#refusals.taken(driver);
    this.#parts.tell(driver.name, undefined);
  }

  async #mark(seen: ApiObjectEnvelope, some: Drivers, gone: Names): Promise<Unwritten | undefined> {
    const { transport, node, nodeName, tell } = this.#parts;
    const before = node.current() ?? seen;
    const { nodeIds, labels, collisions } = nodeMarks(before.value, some, gone);
    for (const { name } of some) {
      const text = collisions.get(name)?.join('; ');
      tell(`labels of ${name}`, text && `topology value collision: ${text}`);
    }
    if (nodeIds === undefined && Object.keys(labels).length === 0) return undefined;
    const patched = await patchObject(transport, {
      path: nodePath(nodeName),
      before,
      labels,
      ...(nodeIds === undefined ? {} : { annotations: { [NODE_IDS]: nodeIds } }),
      change: {},
    });
    if (!patched.ok) return unwritten(patched.failure);
    node.learn(patched.value);
    return undefined;
  }

  async #announce(node: ApiObjectEnvelope, some: Drivers, gone: Names): Promise<Unwritten | undefined> {
    const { transport, nodeName, onEntries } = this.#parts;
    const path = csiNodePath(nodeName);
    let isCountFixed = false;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const read = await readOne(transport, path);
      if (!read.ok && read.failure.code !== 'absent') return { failure: read.failure, isRefused: false };
      if (!read.ok || ownerUidOf(read.value.value) !== node.uid)
        return this.#makeAnew(node, some, read.ok ? read.value : undefined);
      const entries = entriesIn(read.value.value);
      onEntries(entries);
      const drivers = driverEntries(entries, some, gone, isCountFixed);
      if (drivers === undefined) return undefined;
      const change = { spec: { drivers } };
      const patched = await patchObject(transport, { path, before: read.value, change });
      if (patched.ok) continue;
      // Before Kubernetes 1.35 an entry's count is refused like any other change of it.
      const isCountOther = driverEntries(entries, some, gone, true)?.length !== drivers.length;
      if (patched.failure.code !== 'invalid' || isCountFixed || !isCountOther)
        return unwritten(patched.failure);
      isCountFixed = true;
    }
    return { failure: OTHER_THAN_GIVEN, isRefused: false };
  }

  /** `before`: of another Node. */
  async #makeAnew(
    node: ApiObjectEnvelope,
    some: Drivers,
    before: ApiObjectEnvelope | undefined,
  ): Promise<Unwritten | undefined> {
    const { transport, nodeName, tell } = this.#parts;
    if (some.length === 0) return undefined;
    if (before !== undefined) {
      tell('all', `CSINode ${nodeName} belongs to another Node than the one of today, and is made anew`);
      const deleted = await deleteObject(transport, csiNodePath(nodeName), before.uid);
      if (!deleted.ok && deleted.failure.code !== 'absent')
        return { failure: deleted.failure, isRefused: false };
    }
    const created = await createObject(transport, csiNodesPath(), {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSINode',
      metadata: {
        name: nodeName,
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: nodeName, uid: node.uid }],
      },
      spec: { drivers: driverEntries([], some, NOBODY) ?? [] },
    });
    return created.ok ? undefined : unwritten(created.failure);
  }
}

function unwritten(failure: ApiFailure): Unwritten {
  return { failure, isRefused: failure.code === 'denied' || failure.code === 'invalid' };
}
