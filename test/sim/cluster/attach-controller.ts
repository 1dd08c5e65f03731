/**
 * The attach/detach controller of a cluster and the attacher of its drivers, for one node, as they are in Kubernetes
 * 1.36: it sees pods and Node some time after they changed, takes a volume that it has attached for mounted until the
 * Node changes, and before a detach takes it off the Node's list and asks the Node itself once more.
 */
import type { Random } from '../random.ts';
import type { Trace } from '../trace.ts';
import type { VirtualTime } from '../virtual-time.ts';
import { InOrder } from './in-order.ts';
import { at, type Json, metadataOf, nameOf, textsOf } from './json-object.ts';
import type { ObjectStore } from './object-store.ts';
import { ATTACHMENTS, NODES, type WantedVolume, type ClusterObjectsView } from './cluster-objects.ts';

export interface AttachControllerParts {
  readonly store: ObjectStore;
  readonly time: Pick<VirtualTime, 'nowMs' | 'after'>;
  readonly random: Random;
  readonly trace: Trace;
  readonly nodeName: string;
  readonly view: ClusterObjectsView;
  readonly lagMsMax: () => number;
  readonly attachMsMax: () => number;
  /** The storage attaches it; the answer: what a driver is told of it. */
  readonly attach: (volume: WantedVolume) => Readonly<Record<string, string>>;
  readonly detach: (volume: WantedVolume) => void;
  /** The node is taken for dead: what no pod wants is detached whether or not the node has it in use. */
  readonly isForced: () => boolean;
  /** It is about to be detached, and the Node has not said that it is not in use. */
  readonly onBlindDetach: (volume: WantedVolume) => void;
}

/** What the controller knows of one volume. */
interface Managed {
  readonly volume: WantedVolume;
  state: 'attaching' | 'attached' | 'detaching';
  /** As far as the Node has said since. */
  mounted: boolean;
}

const FINALIZER = 'external-attacher/sim';
const RETRY_MS_MAX = 2_000;
const STEP_MS_MAX = 200;
const SWEEP_MS = 5_000;
/** The controller compares what it has with the objects. */
const VERIFY_MS = 60_000;

export class AttachController {
  readonly #parts: AttachControllerParts;
  readonly #heard: InOrder;
  readonly #managed = new Map<string, Managed>();
  /** By unique name, as far as it has heard. */
  #wanted: ReadonlyMap<string, WantedVolume> = new Map();
  #isToLook = false;

  constructor(parts: AttachControllerParts) {
    this.#parts = parts;
    this.#heard = new InOrder(parts.time);
    parts.store.onChange(({ collection, before, after }) => {
      if (collection === NODES) this.#hearNode(after, before === undefined);
      else if (collection.endsWith('/pods')) this.#hearPods();
    });
    this.#sweep();
    this.#verifyLater();
  }

  /** Nothing is late any more. */
  catchUp(): void {
    this.#heard.flush();
  }

  /** It is about to take it from the node, whatever the attachment still says. */
  isDetaching(unique: string): boolean {
    return this.#managed.get(unique)?.state === 'detaching';
  }

  /** It has forgotten everything, and learns it again from the objects. */
  restart(): void {
    this.#parts.trace.add('the attach/detach controller starts again');
    this.#managed.clear();
    for (const [, object] of this.#parts.store.list(ATTACHMENTS)) {
      const volume = this.#parts.view.volumeOfAttachment(object);
      if (volume === undefined) continue;
      const isAttached = at(object, 'status')['attached'] === true;
      const isGoing = metadataOf(object)['deletionTimestamp'] !== undefined;
      const state = isGoing ? 'detaching' : isAttached ? 'attached' : 'attaching';
      const managed: Managed = { volume, state, mounted: true };
      this.#managed.set(volume.unique, managed);
      if (state === 'detaching') this.#awaitGone(managed);
      if (state === 'attaching') this.#awaitAttached(managed);
    }
    this.#writeListed([]);
    const { time, random } = this.#parts;
    time.after(random.between(100, RETRY_MS_MAX), () => {
      for (const { volume, state } of this.#managed.values())
        if (state === 'attached') this.#list(volume, true);
    });
    this.#soon();
  }

  /** Nothing is in use by a Node that is gone; one that is new is told what is attached to it. */
  #hearNode(node: Json | undefined, isNew: boolean): void {
    const inUse = new Set(textsOf(at(node, 'status')['volumesInUse']));
    this.#hear(() => {
      for (const [unique, managed] of this.#managed) managed.mounted = inUse.has(unique);
      const attached = [...this.#managed.values()].filter(({ state }) => state === 'attached');
      if (isNew && attached.length > 0) this.#writeListed(attached.map(({ volume }) => volume.unique));
    });
  }

  #hearPods(): void {
    const wanted = this.#parts.view.wantedVolumes();
    this.#hear(() => {
      this.#wanted = wanted;
    });
  }

  #hear(learn: () => void): void {
    this.#heard.send(
      () => {
        learn();
        this.#soon();
      },
      this.#parts.random.between(0, this.#parts.lagMsMax()),
    );
  }

  #soon(): void {
    if (this.#isToLook) return;
    this.#isToLook = true;
    this.#parts.time.after(this.#parts.random.between(1, 100), () => {
      this.#isToLook = false;
      this.#look();
    });
  }

  #sweep(): void {
    this.#parts.time.after(SWEEP_MS, () => {
      this.#hearPods();
      this.#sweep();
    });
  }

  #look(): void {
    for (const managed of [...this.#managed.values()]) {
      const { volume, state, mounted } = managed;
      const isFree = !mounted || this.#parts.isForced();
      if (state === 'attached' && isFree && !this.#wanted.has(volume.unique)) this.#beginDetach(managed);
    }
    for (const volume of this.#wanted.values())
      if (!this.#managed.has(volume.unique)) this.#beginAttach(volume);
  }

  #beginAttach(volume: WantedVolume): void {
    const { store, time, random } = this.#parts;
    const managed: Managed = { volume, state: 'attaching', mounted: true };
    this.#managed.set(volume.unique, managed);
    time.after(random.between(1, 200), () => {
      if (this.#managed.get(volume.unique) !== managed) return;
      if (store.get(ATTACHMENTS, volume.attachment) === undefined) this.#makeAttachment(volume);
      this.#awaitAttached(managed);
    });
  }

  #makeAttachment({ attachment, driver, specName }: WantedVolume): void {
    const { store, nodeName } = this.#parts;
    store.create(ATTACHMENTS, {
      ...{ apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment' },
      metadata: { name: attachment, finalizers: [FINALIZER] },
      spec: { attacher: driver, nodeName, source: { persistentVolumeName: specName } },
      status: { attached: false },
    });
    this.attacherComes(attachment);
  }

  /** The attacher does what the object says, whoever made it or asked for its deletion. */
  attacherComes(attachment: string): void {
    const { store, time, random, view, attach, detach, attachMsMax } = this.#parts;
    time.after(random.between(1, Math.max(1, attachMsMax())), () => {
      const object = store.get(ATTACHMENTS, attachment);
      const volume = object === undefined ? undefined : view.volumeOfAttachment(object);
      if (object === undefined || volume === undefined) return;
      if (metadataOf(object)['deletionTimestamp'] !== undefined) {
        detach(volume);
        const metadata = { ...metadataOf(object), finalizers: [] };
        store.replace(ATTACHMENTS, { ...object, metadata });
      } else if (at(object, 'status')['attached'] !== true)
        store.replace(ATTACHMENTS, {
          ...object,
          status: { attached: true, attachmentMetadata: attach(volume) },
        });
    });
  }

  #awaitAttached(managed: Managed): void {
    const { store, time, random } = this.#parts;
    const { volume } = managed;
    time.after(random.between(1, 500), () => {
      if (this.#managed.get(volume.unique) !== managed) return;
      const object = store.get(ATTACHMENTS, volume.attachment);
      const isGoing = object !== undefined && metadataOf(object)['deletionTimestamp'] !== undefined;
      if (object === undefined) {
        this.#managed.delete(volume.unique);
        return this.#soon();
      }
      if (isGoing || at(object, 'status')['attached'] !== true) return this.#awaitAttached(managed);
      managed.state = 'attached';
      this.#list(volume, true);
      this.#soon();
    });
  }

  #beginDetach(managed: Managed): void {
    const { volume } = managed;
    managed.state = 'detaching';
    this.#next(managed, () => {
      this.#list(volume, false);
      this.#next(managed, () => {
        const isForced = this.#parts.isForced();
        if (this.#isInUse(volume) && !isForced) return this.#giveUpDetach(managed);
        if (isForced || !this.#isReported()) this.#parts.onBlindDetach(volume);
        // Its requests wait for one another: by the time of this one the node may have the volume in use.
        this.#next(managed, () => this.#deleteAttachment(managed));
      });
    });
  }

  /** The next request of an operation, unless all was forgotten. */
  #next(managed: Managed, act: () => void): void {
    const { time, random, lagMsMax } = this.#parts;
    time.after(random.between(1, Math.max(STEP_MS_MAX, lagMsMax())), () => {
      if (this.#managed.get(managed.volume.unique) === managed) act();
    });
  }

  /** The Node itself is asked, not what was heard of it. */
  #isInUse({ unique }: WantedVolume): boolean {
    const node = this.#parts.store.get(NODES, this.#parts.nodeName);
    return textsOf(at(node, 'status')['volumesInUse']).includes(unique);
  }

  /** Has whoever runs the node said anything of what is in use since the Node was made? */
  #isReported(): boolean {
    const node = this.#parts.store.get(NODES, this.#parts.nodeName);
    return at(node, 'status')['volumesInUse'] !== undefined;
  }

  #giveUpDetach(managed: Managed): void {
    const { time, random, trace } = this.#parts;
    const { volume } = managed;
    trace.add(`the controller does not detach ${volume.unique}: it is in use`);
    managed.state = 'attached';
    managed.mounted = true;
    this.#list(volume, true);
    time.after(random.between(500, RETRY_MS_MAX), () => this.#soon());
  }

  #deleteAttachment(managed: Managed): void {
    this.#parts.store.remove(ATTACHMENTS, managed.volume.attachment);
    this.attacherComes(managed.volume.attachment);
    this.#awaitGone(managed);
  }

  #awaitGone(managed: Managed): void {
    const { store, time, random } = this.#parts;
    const { volume } = managed;
    time.after(random.between(1, 500), () => {
      if (this.#managed.get(volume.unique) !== managed) return;
      if (store.get(ATTACHMENTS, volume.attachment) !== undefined) return this.#awaitGone(managed);
      this.#managed.delete(volume.unique);
      this.#soon();
    });
  }

  /** What it believes attached, and is not, is attached anew, or forgotten when its object has gone. */
  #verifyLater(): void {
    this.#parts.time.after(VERIFY_MS, () => {
      for (const managed of this.#managed.values()) this.#verify(managed);
      this.#soon();
      this.#verifyLater();
    });
  }

  #verify(managed: Managed): void {
    const { volume, state } = managed;
    const object = this.#parts.store.get(ATTACHMENTS, volume.attachment);
    if (state !== 'attached' || at(object, 'status')['attached'] === true) return;
    this.#list(volume, false);
    if (object === undefined) return void this.#managed.delete(volume.unique);
    managed.state = 'attaching';
    this.attacherComes(volume.attachment);
    this.#awaitAttached(managed);
  }

  #list({ unique }: WantedVolume, isListed: boolean): void {
    const node = this.#parts.store.get(NODES, this.#parts.nodeName);
    const listed = listedIn(node).filter((name) => name !== unique);
    this.#writeListed(isListed ? [...listed, unique] : listed);
  }

  #writeListed(names: readonly string[]): void {
    const { store, nodeName } = this.#parts;
    const node = store.get(NODES, nodeName);
    if (node === undefined) return;
    const volumesAttached = names.map((name) => ({ name, devicePath: '' }));
    store.replace(NODES, { ...node, status: { ...at(node, 'status'), volumesAttached } });
  }
}

export function listedIn(node: Json | undefined): readonly string[] {
  const { volumesAttached } = at(node, 'status');
  return Array.isArray(volumesAttached) ? volumesAttached.map((one) => nameOf({ metadata: one })) : [];
}
