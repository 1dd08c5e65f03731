/**
 * What becomes of the Node object: somebody deletes it, and after a while whoever runs the node makes it anew, with
 * another uid and nothing of what others wrote into it; or the node is taken for dead for a while, and then the
 * controller detaches what no pod wants without asking who has it in use.
 */
import type { Random } from '../random.ts';
import type { Trace } from '../trace.ts';
import type { VirtualTime } from '../virtual-time.ts';
import { CSI_NODES, NODES, PODS, type ClusterObjectsView } from './cluster-objects.ts';
import { metadataOf, nameOf } from './json-object.ts';
import type { ObjectStore } from './object-store.ts';

export interface NodeTroublesParts {
  readonly store: ObjectStore;
  readonly view: ClusterObjectsView;
  readonly time: Pick<VirtualTime, 'after'>;
  readonly random: Random;
  readonly trace: Trace;
  readonly nodeName: string;
  readonly stormy: () => boolean;
  /** Mean time between two deletions of the Node; 0: none. */
  readonly deletedEveryMs: number;
  /** Mean time between two moments when it is taken for dead; 0: none. */
  readonly deadEveryMs: number;
}

/** Below the time after which the collector of pods takes those of a Node that is not there. */
const ABSENT_MS_MAX = 30_000;
const DEAD_MS_MAX = 40_000;
/** The collector of pods looks so often. */
const COLLECT_MS_MAX = 20_000;

export class NodeTroubles {
  readonly #parts: NodeTroublesParts;
  #isTakenForDead = false;

  constructor(parts: NodeTroublesParts) {
    this.#parts = parts;
    this.make();
    this.#plan(parts.deletedEveryMs, () => this.#delete());
    this.#plan(parts.deadEveryMs, () => this.#takeForDead());
  }

  /** Volumes that no pod wants are detached from it, whoever has them in use. */
  get isTakenForDead(): boolean {
    return this.#isTakenForDead;
  }

  /** Unless it is there. */
  make(): void {
    const { store, nodeName } = this.#parts;
    if (store.get(NODES, nodeName) !== undefined) return;
    const head = { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName, labels: {} } };
    store.create(NODES, { ...head, spec: {}, status: { conditions: [] } });
  }

  heal(): void {
    this.#isTakenForDead = false;
    this.make();
  }

  #plan(everyMs: number, happen: () => void): void {
    const { time, random, stormy } = this.#parts;
    if (everyMs === 0) return;
    time.after(Math.ceil(-Math.log(1 - random.next()) * everyMs), () => {
      if (!stormy()) return;
      happen();
      this.#plan(everyMs, happen);
    });
  }

  #delete(): void {
    const { store, nodeName, random, time, trace } = this.#parts;
    if (!store.remove(NODES, nodeName)) return;
    trace.add('somebody deletes the Node');
    time.after(random.between(1, ABSENT_MS_MAX), () => this.make());
    // What belongs to it is collected some time later, if nobody has made another one by then.
    time.after(random.between(1, ABSENT_MS_MAX), () => {
      const [csiNode] = store.list(CSI_NODES).map(([, one]) => one);
      const { ownerReferences } = metadataOf(csiNode ?? {});
      const node = store.get(NODES, nodeName);
      const isOwned = JSON.stringify(ownerReferences ?? []).includes(
        `"${String(metadataOf(node ?? {})['uid'])}"`,
      );
      if (csiNode !== undefined && !isOwned) store.remove(CSI_NODES, nameOf(csiNode));
    });
  }

  #takeForDead(): void {
    const { random, time, trace } = this.#parts;
    if (this.#isTakenForDead) return;
    trace.add('the node is taken for dead');
    this.#isTakenForDead = true;
    time.after(random.between(500, DEAD_MS_MAX), () => {
      this.#isTakenForDead = false;
    });
    time.after(random.between(1, COLLECT_MS_MAX), () => {
      if (this.#isTakenForDead) this.#collectPods();
    });
  }

  /** Those that somebody has said goodbye to, without asking for their containers. */
  #collectPods(): void {
    const { store, view } = this.#parts;
    for (const pod of view.podsHere())
      if (metadataOf(pod)['deletionTimestamp'] !== undefined) store.remove(PODS, nameOf(pod));
  }
}
