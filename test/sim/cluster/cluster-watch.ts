/**
 * What a node owes its cluster, judged by the server's own objects and the machine after every event: what stands is
 * acknowledged to be in use, nothing is set up that is not attached, and nothing is taken for lost that was there.
 */
import { CLAIM_PROTECTION, isLeaving } from '../../../kubernetes/fields/protection.ts';
import { parseExactBytes } from '../../../kubernetes/fields/quantity.ts';
import { ROOT } from '../sim-paths.ts';
import { CANARY } from '../trace.ts';
import type { Simulation } from '../simulate.ts';
import { NO_API_FAULTS } from './api-faults.ts';
import { ATTACHMENTS, CLAIMS, claimsOf, isOver, NODES, type WantedVolume } from './cluster-objects.ts';
import { isAttachable } from './cluster-plan.ts';
import { csiVolumeId, type VolumeId } from '../../../plugins/volume.ts';
import type { Backing } from '../backing.ts';
import { at, type Json, metadataOf, nameOf, textsOf, uidOf } from './json-object.ts';
import type { SimCluster } from './sim-cluster.ts';

/** A request may take so long, and what is absent is asked for twice. */
const ANSWER_MS_MAX = 20_000;
/** A change that is watched is known so soon, while nothing goes wrong with the server. */
const HEARD_MS_MAX = 5_000;

export class ClusterWatch {
  readonly #sim: Simulation;
  readonly #cluster: SimCluster;
  /** Since when each attachment was there, attached and not asked to go. */
  readonly #goodSinceMs = new Map<string, number>();
  /** Since when each attachment has said of its volume what it says. */
  readonly #saidSinceMs = new Map<string, number>();
  /** What the node has said last that it uses: a Node that was deleted, or made anew, has heard nothing yet. */
  #lastInUse: readonly string[] = [];
  #lookedOn = '';
  #belief: unknown;
  /** Taken for lost while the attachment was away, and not taken back since: it may not have been readable again. */
  readonly #rightlyLost = new Set<string>();

  constructor(sim: Simulation, cluster: SimCluster) {
    this.#sim = sim;
    this.#cluster = cluster;
    sim.tally.nodes += 1;
    cluster.store.onChange(({ collection, before, after }) => {
      if (collection === CLAIMS && before !== undefined && after !== undefined)
        this.#judgeSize(before, after);
      if (collection === NODES) this.#noteInUse(after);
      if (collection.endsWith('/events')) this.#judgeEvent(after ?? {});
      if (collection !== ATTACHMENTS) return;
      const name = nameOf(after ?? before ?? {});
      if (JSON.stringify(saidBy(before)) !== JSON.stringify(saidBy(after)))
        this.#saidSinceMs.set(name, sim.time.nowMs());
      if (after === undefined || !isGood(after)) this.#goodSinceMs.delete(name);
      else if (!this.#goodSinceMs.has(name)) this.#goodSinceMs.set(name, sim.time.nowMs());
    });
  }

  /** Whoever may look at a pod may read it. */
  #judgeEvent(event: Json): void {
    if (JSON.stringify(event).includes(CANARY)) this.#sim.violate('INV-25', 'a secret is in an event');
    if (at(event, 'involvedObject')['kind'] === 'Pod') this.#sim.tally.events += 1;
  }

  /** KEP-1790: what the claim says that a volume has is what this node has of it. */
  #judgeSize(before: Json, after: Json): void {
    const told = capacityOf(after);
    const { volumeName } = at(after, 'spec');
    const disk = this.#sim.world.storage.disks.find(({ specName }) => specName === volumeName);
    const backing = disk && this.#sim.world.storage.backingOf(disk);
    if (disk === undefined || backing === undefined || told <= capacityOf(before)) return;
    const nature = this.#sim.world.storage.driverOf(disk.driver)?.nature;
    if (nature?.expands === 'no') return;
    this.#sim.tally.grown += 1;
    if (told > backing.nodeBytes)
      this.#sim.violate(
        'KEP-1790',
        `${disk.claimName} is told to have ${told} bytes of ${backing.nodeBytes}`,
      );
  }

  /** After every event. */
  look(): void {
    const { kernel } = this.#sim;
    const state = `${this.#cluster.store.version} ${kernel.mountChanges} ${kernel.devices.changes}`;
    if (state !== this.#lookedOn) this.#lookAtMachine();
    this.#lookedOn = state;
    this.#lookAtWish();
  }

  /** INV-4: a living agent asks for it to be staged or published. */
  judgeClimb(call: string, handle: string): void {
    const found = this.#attachable().find(({ backing }) => backing.handle === handle);
    if (found === undefined) return;
    const { unique, driver, backing } = found;
    if (call === 'NodeStageVolume') this.#sim.tally.attached += 1;
    if (!this.#inUse().has(unique))
      this.#sim.violate('INV-4', `${call} of ${handle}, and the server does not have it in use`);
    const nature = this.#sim.world.storage.driverOf(driver)?.nature;
    if (nature?.attaches === true && backing.attachments.size === 0 && !this.#isDisturbed(unique))
      this.#sim.violate('INV-4', `${call} of ${handle}, which is not attached to this node`);
  }

  /** D-116: a pod that comes does not get what was set up by what its attachment said long ago. */
  judgePublish(volume: VolumeId, context: Readonly<Record<string, string>> | undefined): void {
    const { plan, time } = this.#sim;
    if (plan.cluster.reach !== 'watch' || plan.cluster.troubleEveryMs > 0) return;
    if (plan.cluster.faults !== NO_API_FAULTS || context === undefined) return;
    for (const [, attachment] of this.#cluster.store.list(ATTACHMENTS)) {
      if (this.#cluster.view.volumeOfAttachment(attachment)?.unique !== volume) continue;
      const said = saidBy(attachment);
      const sinceMs = this.#saidSinceMs.get(nameOf(attachment)) ?? time.nowMs();
      const isOther = JSON.stringify(said) !== JSON.stringify(context);
      if (said !== undefined && isOther && time.nowMs() - sinceMs > HEARD_MS_MAX)
        this.#sim.violate('D-116', `${volume} is published by ${JSON.stringify(context)}`);
    }
  }

  /** The storage takes it from this node. */
  detach({ driver, handle, unique }: WantedVolume, isByHand: boolean): void {
    const { world, trace } = this.#sim;
    const backing = world.storage.driverOf(driver)?.backing(handle);
    trace.add(`an attacher detaches ${handle}`);
    this.#sim.tally.detached += 1;
    if (backing !== undefined && !isByHand && this.#stands(backing))
      this.#sim.violate('INV-5', `${handle} is detached while ${unique} is mounted here`);
    world.storage.driverOf(driver)?.detach(handle);
  }

  /** INV-5: what stands on the machine is on the server's list. */
  #lookAtMachine(): void {
    const inUse = this.#inUse();
    for (const { unique, backing } of this.#attachable()) {
      const stands = this.#stands(backing);
      if (stands && !inUse.has(unique))
        this.#sim.violate('INV-5', `${backing.handle} stands here, and the server does not have it in use`);
      if (!stands && this.#isForgiven(unique)) this.#cluster.disturbed.delete(unique);
    }
    this.#lookAtClaims();
  }

  /** S3-5: what a pod has stays claimed for as long as the pod is there. */
  #lookAtClaims(): void {
    const { store, view } = this.#cluster;
    for (const pod of view.podsHere().filter((one) => !isOver(one)))
      for (const name of claimsOf(pod)) {
        const claim = store.get(CLAIMS, name);
        if (claim !== undefined && !isLeaving(claim, CLAIM_PROTECTION)) continue;
        if (this.#hasPlace(uidOf(pod), name))
          this.#sim.violate('S3-5', `${nameOf(pod)} has the volume of claim ${name}, which is gone`);
      }
  }

  #hasPlace(uid: string, claimName: string): boolean {
    const { storage } = this.#sim.world;
    const fileSystems = storage.disks
      .filter((disk) => disk.claimName === claimName)
      .map((disk) => storage.backingOf(disk)?.fileSystem);
    return this.#sim.kernel
      .mounts()
      .some(
        ({ fileSystem, target }) =>
          target.startsWith(`${ROOT}/pods/${uid}/`) && fileSystems.includes(fileSystem),
      );
  }

  /** FN-01: only what was really taken away is lost. */
  #lookAtWish(): void {
    const desired = this.#sim.earlyView()?.reconciler.desired();
    if (desired === undefined || desired === this.#belief) return;
    this.#belief = desired;
    for (const id of this.#rightlyLost)
      if (!desired.lostAttachments.has(id as VolumeId)) this.#rightlyLost.delete(id);
    for (const id of desired.lostAttachments.keys()) {
      if (this.#goodSince(id) === undefined) this.#rightlyLost.add(id);
      if (!this.#isDisturbed(id) && !this.#rightlyLost.has(id) && this.#wasThere(id))
        this.#sim.violate('lost', `${id} is taken for lost, and its attachment was there all the time`);
    }
  }

  /** For longer than any answer is on its way. */
  #wasThere(unique: string): boolean {
    return this.#sim.time.nowMs() - (this.#goodSince(unique) ?? Number.POSITIVE_INFINITY) > ANSWER_MS_MAX;
  }

  #goodSince(unique: string): number | undefined {
    const wanted = this.#cluster.view.wantedVolumes().get(unique);
    return wanted && this.#goodSinceMs.get(wanted.attachment);
  }

  #isDisturbed(unique: string): boolean {
    return this.#cluster.disturbed.has(unique);
  }

  /** It is attached anew, and the agent knows of nothing that was before. */
  #isForgiven(unique: string): boolean {
    const reconciler = this.#sim.view()?.reconciler;
    const attachment = this.#goodAttachment(unique);
    if (reconciler === undefined || attachment === undefined) return false;
    if (this.#cluster.isDetaching(unique)) return false;
    const known = reconciler.actual().get(unique as VolumeId);
    const isIdle =
      known === undefined || (known.quarantine === undefined && known.attached.kind !== 'unsure');
    const isOfBefore =
      known?.attachmentUid !== undefined && known.attachmentUid !== metadataOf(attachment)['uid'];
    return isIdle && !isOfBefore && !reconciler.desired().lostAttachments.has(unique as VolumeId);
  }

  #goodAttachment(unique: string): Json | undefined {
    const wanted = this.#cluster.view.wantedVolumes().get(unique);
    const object = wanted && this.#cluster.store.get(ATTACHMENTS, wanted.attachment);
    return object !== undefined && isGood(object) ? object : undefined;
  }

  #inUse(): ReadonlySet<string> {
    return new Set(this.#lastInUse);
  }

  #noteInUse(node: Json | undefined): void {
    const { volumesInUse } = at(node, 'status');
    if (volumesInUse !== undefined) this.#lastInUse = textsOf(volumesInUse);
  }

  #stands(backing: Backing): boolean {
    const { kernel } = this.#sim;
    if (backing.loops.size > 0) return true;
    return kernel
      .mounts()
      .some(({ fileSystem, target }) => fileSystem === backing.fileSystem && target.startsWith(`${ROOT}/`));
  }

  #attachable(): readonly { readonly unique: string; readonly driver: string; readonly backing: Backing }[] {
    const { storage } = this.#sim.world;
    return storage.disks.flatMap((disk) => {
      const { driver, handle } = disk;
      const backing = storage.backingOf(disk);
      if (backing === undefined || !isAttachable(this.#sim.plan, driver)) return [];
      return [{ unique: csiVolumeId(driver, handle), driver, backing }];
    });
  }
}

function isGood(attachment: Json): boolean {
  const isGoing = metadataOf(attachment)['deletionTimestamp'] !== undefined;
  return at(attachment, 'status')['attached'] === true && !isGoing;
}

function capacityOf(claim: Json): bigint {
  const { storage = 0 } = at(claim, 'status', 'capacity');
  return BigInt(parseExactBytes(String(storage)) ?? 0);
}

/** Undefined: it is not attached. */
function saidBy(attachment: Json | undefined): unknown {
  const { attached, attachmentMetadata } = at(attachment, 'status');
  return attached === true ? attachmentMetadata : undefined;
}
