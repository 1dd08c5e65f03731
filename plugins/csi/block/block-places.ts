/**
 * The places of a block volume outside the driver: where the kubelet has them (KV-D3), but taken
 * down with rmdir and unlink only, where the kubelet deletes recursively (KV-H14).
 */
import { printable } from '../../../mount/text/printable.ts';
import { temporaryPath } from '../../../mount/temporary-file.ts';
import { done, fail, ok, type Result } from '../../../mount/failure.ts';
import { type AbsolutePath, below, type DeviceNumber, type Host, parentOf } from '../../../mount/host.ts';
import { removeEmptyBlockDirectories } from '../../layout/block-directory.ts';
import type { Layout } from '../../layout/layout.ts';
import { removeEmptyPodDirectories } from '../../layout/pod-directory.ts';
import { doubtful } from '../../steps.ts';
import { isReservedVolumeName } from '../../layout/stage-owner.ts';
import { readVolumeData } from '../../layout/volume-data.ts';
import type { VolumeData } from '../../layout/volume-data-text.ts';
import type { CsiVolumeSpec, PublicationSpec } from '../../volume.ts';
import { createCallLanes } from '../call/volume-call-queue.ts';
import {
  attachmentId,
  type DriverPath,
  placeDirectory,
  placeVolumeData,
  type Prepared,
  type TakenAway,
  unchanged,
} from '../call/volume-directory.ts';

/** The kubelet's, of the file a device is bound to. */
const HELD_FILE_MODE = 0o640;
/** More than a driver leaves behind by mistake. */
const LEFTOVERS_MAX = 64;

export interface BlockPlaces {
  staging(spec: CsiVolumeSpec): DriverPath;
  /** Prepared, it has an empty file at `held`: that is what keeps the directories while the driver is called. */
  publication(spec: CsiVolumeSpec, publication: PublicationSpec): DriverPath;
}

/**
 * Guarantees: making and tidying the directories that publications of one volume share never overlap, so none takes
 * away what another has just made.
 */
export function createBlockPlaces(host: Host, layout: Layout, nodeName: string): BlockPlaces {
  const lanes = createCallLanes();

  function alone<T>(specName: string, act: () => Promise<T>): Promise<T> {
    return lanes.run(specName, 'alone', act);
  }

  const tidy = (specName: string): Promise<Result<void>> =>
    removeEmptyBlockDirectories(host, layout, specName);

  /** The places go by the name of the PersistentVolume: another volume that had that name may not be down yet. */
  async function refuseForeign(spec: CsiVolumeSpec): Promise<Result<void>> {
    if (isReservedVolumeName(spec.specName)) {
      const message = `a block volume cannot be named "${spec.specName}": its places would be those of all volumes`;
      return fail({ code: 'spec-invalid', message, effect: 'none' });
    }
    const owner = await ownerOf(spec.specName);
    if (!owner.ok || owner.value === undefined || owner.value === handleOf(spec))
      return owner.ok ? done : owner;
    const tidied = await tidy(spec.specName);
    const now = tidied.ok ? await ownerOf(spec.specName) : tidied;
    if (!now.ok || now.value === undefined) return now.ok ? done : now;
    const message = `the places of "${spec.specName}" still belong to another volume of that name`;
    return fail({ code: 'mount-foreign', message, effect: 'none', blocker: printable(now.value, 512) });
  }

  /** Driver and handle that vol_data.json names; undefined when it says nothing. */
  async function ownerOf(specName: string): Promise<Result<string | undefined>> {
    const data = await readVolumeData(host, layout.blockVolume(specName).data);
    return data.ok ? ok(data.value && handleOf(data.value)) : data;
  }

  function writeData(spec: CsiVolumeSpec): Promise<Result<void>> {
    const path = layout.blockVolume(spec.specName).data;
    return host.perform(placeVolumeData, { path, data: dataOf(spec, nodeName) });
  }

  /** Runs the steps; a failure has effect `none` when all that was made could be taken away again. */
  async function orUndo(
    steps: readonly (() => Promise<Result<void>>)[],
    undo: () => Promise<Result<void>>,
  ): Promise<Result<void>> {
    for (const step of steps) {
      const result = await step();
      if (result.ok) continue;
      return (await undo()).ok ? unchanged(result) : fail({ ...result.failure, effect: 'unknown' });
    }
    return done;
  }

  function staging(spec: CsiVolumeSpec): DriverPath {
    const path = layout.stagingPath(spec);
    const removeAll = async (): Promise<Result<void>> => {
      const removed = await removeStaging(host, path);
      return removed.ok ? tidy(spec.specName) : removed;
    };
    return {
      path,
      prepare: () =>
        alone(spec.specName, async () => {
          const before = await lookAt(host, path);
          if (!before.ok) return unchanged(before);
          const undo = async () => (before.value.exists ? done : removeAll());
          const filled = await orUndo(
            [
              () => refuseForeign(spec),
              // Where it is, no vol_data.json is taken away. A mounted one is somebody's volume: its mode is not ours.
              async () =>
                before.value.mountId === undefined ? host.perform(placeDirectory, { path }) : done,
              () => writeData(spec),
            ],
            undo,
          );
          return filled.ok ? ok(prepared(spec.specName, path, before.value, undo)) : filled;
        }),
      takeAway: () => alone(spec.specName, () => takeAway(host, path, removeAll)),
    };
  }

  function publication(spec: CsiVolumeSpec, place: PublicationSpec): DriverPath {
    const { published, held } = layout.blockPublication(place);
    const removeAll = async (): Promise<Result<void>> => {
      for (const step of [() => removeLeft(host, published), () => removeHeldFile(host, held)]) {
        const removed = await step();
        if (!removed.ok) return removed;
      }
      return tidy(spec.specName);
    };
    return {
      path: published,
      prepare: () =>
        alone(spec.specName, async () => {
          const held0 = await host.inspect(held);
          if (!held0.ok) return unchanged(held0);
          const before = await lookAt(host, published);
          if (!before.ok) return unchanged(before);
          const kept = await isKept(host, held, before.value);
          if (!kept.ok) return unchanged(kept);
          const fresh = held0.value.kind === 'absent';
          const undo = async () => (fresh ? removeAll() : done);
          const filled = await orUndo(
            [
              () => refuseForeign(spec),
              () => host.perform(placeDirectory, { path: parentOf(held) }),
              async () =>
                fresh
                  ? host.writeFile(held, new Uint8Array(), { mode: HELD_FILE_MODE, durable: false })
                  : done,
              () => writeData(spec),
              () => host.perform(placeDirectory, { path: parentOf(published) }),
              // All but what a pod has would stand in the driver's way, or be taken for what it makes now.
              async () => (kept.value ? done : removeLeft(host, published)),
            ],
            undo,
          );
          const left = kept.value ? before.value : NOTHING_THERE;
          return filled.ok ? ok(prepared(spec.specName, published, left, undo)) : filled;
        }),
      async takeAway() {
        const taken = await alone(spec.specName, () => takeAway(host, published, removeAll));
        if (!taken.ok || taken.value.isMounted) return taken;
        // Not in the volume's turn: its next pod has nothing to do with what is left of this one.
        const removed = named(published, await removeEmptyPodDirectories(host, layout, place.pod.uid));
        return removed.ok ? taken : removed;
      },
    };
  }

  function prepared(
    specName: string,
    path: AbsolutePath,
    before: Seen,
    undo: () => Promise<Result<void>>,
  ): Prepared {
    return {
      mountedBefore: before.mountId !== undefined || before.device !== undefined,
      undo: () =>
        alone(specName, async () => {
          const now = await lookAt(host, path);
          if (!now.ok || now.value.mountId !== before.mountId || now.value.device !== before.device)
            return false;
          return (await undo()).ok;
        }),
    };
  }

  return { staging, publication };
}

interface Seen {
  readonly exists: boolean;
  readonly mountId: number | undefined;
  readonly device: DeviceNumber | undefined;
}

const NOTHING_THERE: Seen = { exists: false, mountId: undefined, device: undefined };

async function lookAt(host: Host, path: AbsolutePath): Promise<Result<Seen>> {
  const facts = await host.inspect(path);
  if (!facts.ok) return facts;
  if (facts.value.kind === 'absent') return ok(NOTHING_THERE);
  const mountId = await host.mountIdOf(path);
  if (!mountId.ok) return mountId;
  const device = await host.deviceOf(path);
  return device.ok ? ok({ exists: true, mountId: mountId.value, device: device.value }) : device;
}

/**
 * Is it mounted, or the node of a device that is held for the pod? A node that nobody holds is of a boot before this
 * one, or no pod was ever shown it, and its number may be another disk's by now.
 */
async function isKept(host: Host, held: AbsolutePath, { mountId, device }: Seen): Promise<Result<boolean>> {
  if (mountId !== undefined || device === undefined) return ok(mountId !== undefined);
  const bound = await host.deviceOf(held);
  return bound.ok ? ok(bound.value === device) : bound;
}

/** The file our bind lies on, with what a crash inside Host.writeFile leaves. Only an empty one is ours. */
export async function removeHeldFile(host: Host, held: AbsolutePath): Promise<Result<void>> {
  const removed = await removeLeft(host, held);
  if (!removed.ok) return removed;
  return host.removeFile(temporaryPath(held));
}

/**
 * What a driver leaves where a device was: nothing, an empty file it had bound the device to, the node it made, or a
 * directory. Nothing of that holds data; anything else is named and stays.
 */
export async function removeLeft(host: Host, path: AbsolutePath): Promise<Result<void>> {
  const facts = await host.inspect(path);
  if (!facts.ok) return facts;
  const { kind, sizeBytes } = facts.value;
  if (kind === 'absent') return done;
  if (kind === 'directory') return host.removeEmptyDirectory(path);
  if ((kind === 'file' && sizeBytes === 0) || kind === 'block') {
    const mountId = await host.mountIdOf(path);
    if (!mountId.ok) return mountId;
    if (mountId.value === undefined) return host.removeFile(path);
    return fail({ code: 'mount-busy', message: `${path} is still mounted`, effect: 'none', blocker: path });
  }
  const message = `left behind: a ${kind} at ${path}, neither an empty file nor a device`;
  return fail({ code: 'path-wrong-kind', message, effect: 'none', blocker: path });
}

/** Drivers bind the device to a file in the staging directory, and not all take that file away again. */
async function removeStaging(host: Host, staging: AbsolutePath): Promise<Result<void>> {
  const names = await host.listDirectory(staging, LEFTOVERS_MAX);
  if (!names.ok) return names.failure.code === 'path-missing' ? done : names;
  for (const name of names.value) {
    const path = below(staging, name);
    const facts = await host.inspect(path);
    if (!facts.ok) return facts;
    // A directory in it, empty or not, was never needed to bind a device: rmdir of the parent says so.
    const removed = facts.value.kind === 'directory' ? done : await removeLeft(host, path);
    if (!removed.ok) return removed;
  }
  const removed = await host.removeEmptyDirectory(staging);
  if (removed.ok || removed.failure.code !== 'directory-not-empty') return removed;
  const message = `left behind in ${staging}: ${names.value.slice(0, 8).join(', ')}`;
  return fail({ ...removed.failure, message, blocker: staging });
}

async function takeAway(
  host: Host,
  path: AbsolutePath,
  removeAll: () => Promise<Result<void>>,
): Promise<Result<TakenAway>> {
  const mountId = await host.mountIdOf(path);
  if (!mountId.ok) return doubtful<never>(mountId);
  if (mountId.value !== undefined) return ok({ isMounted: true });
  const removed = named(path, await removeAll());
  return removed.ok ? ok({ isMounted: false }) : removed;
}

function dataOf({ specName, volumeHandle, driver }: CsiVolumeSpec, nodeName: string): VolumeData {
  const attachment = attachmentId(volumeHandle, driver, nodeName);
  return { driver, volumeHandle, specName, nodeName, attachmentId: attachment };
}

function named(path: AbsolutePath, removed: Result<void>): Result<void> {
  return removed.ok ? removed : fail({ blocker: path, ...removed.failure, effect: 'unknown' });
}

function handleOf({ driver, volumeHandle }: Pick<CsiVolumeSpec, 'driver' | 'volumeHandle'>): string {
  return `${driver}^${volumeHandle}`;
}
