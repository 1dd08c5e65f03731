/** A block device on its way to the pod, and back: bound, held open, linked (KV-D3, KV-D5). */
import { done, fail, ok, type Result } from '../../mount/failure.ts';
import {
  type AbsolutePath,
  type DeviceNumber,
  type Disk,
  type Host,
  isBelow,
  type MountIdentity,
  parentOf,
} from '../../mount/host.ts';
import type { Mounter } from '../../mount/mounter.ts';
import { nameOfRoot } from '../../mount/text/root-name.ts';
import type { DevicePublicationLayout } from '../layout/place-in-pod.ts';
import { placeDirectory } from '../layout/place-directory.ts';
import { doubtful, inOrder } from '../steps.ts';
import { isReplaced } from './present-device.ts';

/** In which a disk can be pulled out, and the next one plugged in. */
const LOOK_MS_MAX = 10_000;

export interface DevicePublication {
  /**
   * What is at the path is bound to the file at `held`, kept open there, and linked into the pod. Idempotent.
   * `device-changed` when the pod was given another device than there is now, and both exist: then the pod has no link.
   * One that has gone from the machine is replaced by the one that is there now, and both are held until `takeBack`.
   * `device-replaced` when another disk had got the number before it was held (k/k#34437), or may have got it by the
   * time that its driver's word was looked at, and the pod was never given one: then it is not held, and that is said
   * again until its driver has taken it back and `takeBack` has ended it.
   * Every failure has effect `unknown`.
   */
  bringOut(places: DevicePublicationLayout, source: DeviceSource): Promise<Result<MountIdentity>>;
  /**
   * What `bringOut` did, undone in the opposite order, however far it came. The empty file at `held` stays: it tells of
   * the place when the record is lost.
   */
  takeBack(places: DevicePublicationLayout): Promise<Result<void>>;
  /** Was it bound, and neither held nor given to the pod? Its number may be another disk's by now. */
  isDistrusted(places: DevicePublicationLayout): Promise<Result<boolean>>;
}

/** A node of a device, and which disk that was a moment ago. */
export interface DeviceSource extends Disk {
  readonly path: AbsolutePath;
  /**
   * When its driver said that it is there: a driver says so again of the same node, whichever disk has its number by
   * then. Absent: nobody did, it was looked for.
   */
  readonly answeredMs?: number;
}

interface Parts {
  readonly host: Host;
  /** The state root, below which drivers make what they publish. */
  readonly root: AbsolutePath;
  readonly mounter: Mounter;
}

export function createDevicePublication(parts: Parts): DevicePublication {
  const { host, mounter } = parts;
  return {
    async bringOut(places, source) {
      const { published, link } = places;
      const bound = await bind(parts, places, source);
      if (!bound.ok) {
        // The link leads to another device than the pod was given: who is started now must get none.
        if (bound.failure.code === 'device-changed') await removeLink(host, link);
        return doubtful<never>(bound);
      }
      const kept = await keep(parts, places, source, bound.value);
      if (!kept.ok) return doubtful<never>(kept);
      const linked = await setLink(host, link, published);
      return linked.ok ? ok(bound.value.mount) : doubtful<never>(linked);
    },
    takeBack({ held, link }) {
      return inOrder(
        // First: while the loop device has it open, the bind cannot be unmounted.
        () => host.releaseDevice(held),
        () => removeLink(host, link),
        () => mounter.unmount(held),
      );
    },
    async isDistrusted(places) {
      const bound = await boundAt(host, places.held);
      if (!bound.ok || bound.value === undefined) return bound.ok ? ok(false) : bound;
      const kept = await isKept(parts, places, bound.value);
      return kept.ok ? ok(!kept.value) : kept;
    },
  };
}

/**
 * Also for a read-only publication without `ro`: a read-only bind of a device node forbids nothing that goes to the
 * device. The driver (NodePublishVolume.readonly) and what the runtime allows the container decide.
 */
async function bind(
  parts: Parts,
  places: DevicePublicationLayout,
  source: DeviceSource,
): Promise<Result<Bound>> {
  const { host, mounter } = parts;
  const { held } = places;
  const { device } = source;
  const before = await boundBefore(parts, places, source);
  if (!before.ok) return before;
  if (before.value !== undefined) {
    const same = sameDevice({ mount: before.value, isNew: false }, held, device);
    const isGone = same.ok ? ok(false) : await isReplaced(host, before.value.blockDevice, device);
    if (!isGone.ok) return isGone;
    // What is gone stays bound and held below: the pod may have its number still, and nobody else gets that.
    if (!isGone.value) return same;
  }
  const mounted = await host.mount({ fsType: 'bind', source: source.path, target: held, options: [] });
  // The kernel is the judge: a mount that failed or was killed may be there.
  const after = await boundAt(host, held);
  if (!after.ok) return after;
  if (after.value !== undefined) {
    const isNew = before.value === undefined;
    const same = sameDevice({ mount: after.value, isNew }, held, device);
    // The source was taken away or replaced since we looked: no pod was shown what is bound now.
    if (!same.ok && isNew) await mounter.unmountOnly(held, after.value.mountId);
    return same;
  }
  const message = `mount said done, but nothing is mounted at ${held}`;
  return mounted.ok ? fail({ code: 'mount-failed', message, effect: 'unknown', blocker: held }) : mounted;
}

/**
 * What is bound there since an earlier call, and may be the pod's. `device-replaced`: it is nobody's, and its driver is
 * to make it anew; what no driver made goes.
 */
async function boundBefore(
  parts: Parts,
  places: DevicePublicationLayout,
  { path, device, answeredMs }: DeviceSource,
): Promise<Result<MountIdentity | undefined>> {
  const { held } = places;
  const found = await withoutFile(parts, path, held);
  if (!found.ok || found.value === undefined) return found;
  if (answeredMs === undefined && found.value.blockDevice === device) return found;
  const kept = await isKept(parts, places, found.value);
  if (!kept.ok) return kept;
  if (kept.value) return found;
  if (answeredMs === undefined) return unbound(parts, held, found.value.mountId);
  const message = `${held} was bound and not held: its number may be another disk's by now`;
  return fail({ code: 'device-replaced', message, effect: 'unknown', blocker: held });
}

/**
 * What is bound there. A file is no device: we bound it as the driver's own was taken away, nobody has it, and it goes.
 * Somebody else's stays.
 */
async function withoutFile(
  parts: Parts,
  source: AbsolutePath,
  held: AbsolutePath,
): Promise<Result<MountIdentity | undefined>> {
  const { host, root } = parts;
  const bound = await boundAt(host, held);
  if (!bound.ok || bound.value === undefined || bound.value.blockDevice !== undefined) return bound;
  const table = await host.readMountTable(root);
  if (!table.ok) return table;
  const belowRoot = isBelow(source, root) ? source.slice(root.length) : source;
  const top = table.value.at(held).at(-1);
  // It has no name any more when the driver, or we before we asked the driver again, have removed it.
  if (top === undefined || !nameOfRoot(top.root).endsWith(belowRoot)) return bound;
  return unbound(parts, held, top.mountId);
}

/** What was bound, and neither held nor given to the pod, was given up in between. */
async function isKept(
  { host }: Parts,
  { held, link }: DevicePublicationLayout,
  bound: MountIdentity,
): Promise<Result<boolean>> {
  if (bound.blockDevice === undefined || (await isGiven(host, link))) return ok(true);
  const holds = await host.heldPaths(parentOf(held));
  return holds.ok ? ok(holds.value.includes(held)) : holds;
}

/** What is there below it then. */
async function unbound(
  { host, mounter }: Parts,
  held: AbsolutePath,
  mountId: number,
): Promise<Result<MountIdentity | undefined>> {
  const unmounted = await mounter.unmountOnly(held, mountId);
  return unmounted.ok ? await boundAt(host, held) : unmounted;
}

/** Held; until then its number could be given to another disk, to which the node led from then on (k/k#34437). */
async function keep(
  { host, mounter }: Parts,
  { held, link }: DevicePublicationLayout,
  { device, sequence, answeredMs }: DeviceSource,
  { isNew, mount }: Bound,
): Promise<Result<void>> {
  const refuse = (code: 'device-changed' | 'device-replaced' | 'deadline-passed', because: string) =>
    fail({ code, message: `device ${device} ${because}`, effect: 'unknown', blocker: held });
  if (isNew && answeredMs !== undefined && host.nowMs() - answeredMs > LOOK_MS_MAX) {
    const code = (await isGiven(host, link)) ? 'deadline-passed' : 'device-replaced';
    return refuse(code, `was looked at late: after ${LOOK_MS_MAX / 1_000} s it may be another disk`);
  }
  const hold = await host.holdDevice(held);
  if (!hold.ok) {
    // No pod was shown it, and the next one may be another: a driver says OK over a node of before a reboot, too.
    // What is held after all is busy and stays.
    if (isNew) await mounter.unmountOnly(held, mount.mountId);
    return hold;
  }
  const now = await host.identifyDisk(held);
  if (now.ok && now.value?.device === device && now.value.sequence === sequence) return done;
  const because = 'is another disk now than when it was looked at';
  if (!isNew || (await isGiven(host, link))) {
    // One of the holds at this path may keep what the pod has open: they stay.
    if (!now.ok) return now;
    await removeLink(host, link);
    return refuse('device-changed', because);
  }
  await host.releaseDevice(held);
  return now.ok ? refuse('device-replaced', because) : now;
}

/** May a pod have been given what the link leads to? */
async function isGiven(host: Host, link: AbsolutePath): Promise<boolean> {
  const text = await host.readLink(link);
  return text.ok || text.failure.code !== 'path-missing';
}

async function boundAt(host: Host, held: AbsolutePath): Promise<Result<MountIdentity | undefined>> {
  const mount = await host.lookUpMount(held);
  if (!mount.ok) return mount;
  if (!mount.value.mounted) return ok(undefined);
  const { mountId, device } = mount.value;
  const blockDevice = await host.deviceOf(held);
  if (!blockDevice.ok) return blockDevice;
  return ok({
    mountId,
    device,
    ...(blockDevice.value === undefined ? {} : { blockDevice: blockDevice.value }),
  });
}

interface Bound {
  readonly mount: MountIdentity;
  /** Nothing was bound there before. */
  readonly isNew: boolean;
}

function sameDevice(bound: Bound, held: AbsolutePath, device: DeviceNumber): Result<Bound> {
  const { blockDevice } = bound.mount;
  if (blockDevice === device) return ok(bound);
  const theirs = blockDevice ?? 'no device';
  const message = `the volume is device ${device} now, but the pod has ${theirs} at ${held}`;
  return fail({ code: 'device-changed', message, effect: 'unknown', blocker: held });
}

/** As the kubelet: absolute. One that leads elsewhere is of another life of this place. */
async function setLink(host: Host, link: AbsolutePath, text: AbsolutePath): Promise<Result<void>> {
  const now = await host.readLink(link);
  if (now.ok && now.value === text) return done;
  if (!now.ok && now.failure.code !== 'path-missing') return now;
  if (now.ok) {
    const removed = await host.removeFile(link);
    if (!removed.ok) return removed;
  }
  const made = await makeLink(host, link, text);
  // Another volume of the pod coming down may remove an empty parent between our steps: then once more.
  return made.ok || made.failure.code !== 'path-missing' ? made : makeLink(host, link, text);
}

async function makeLink(host: Host, link: AbsolutePath, text: AbsolutePath): Promise<Result<void>> {
  const made = await host.perform(placeDirectory, { path: parentOf(link) });
  return made.ok ? host.makeLink(link, text) : made;
}

async function removeLink(host: Host, link: AbsolutePath): Promise<Result<void>> {
  const facts = await host.inspect(link);
  if (!facts.ok) return facts;
  if (facts.value.kind === 'absent') return done;
  if (facts.value.kind === 'symlink') return host.removeFile(link);
  const message = `a ${facts.value.kind} where the link to the device was: ${link}`;
  return fail({ code: 'path-wrong-kind', message, effect: 'none', blocker: link });
}
