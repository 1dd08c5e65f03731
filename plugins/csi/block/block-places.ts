/**
 * The places of a block volume outside the driver: where the kubelet has them (KV-D3), but taken
 * down with rmdir and unlink only, where the kubelet deletes recursively (KV-H14).
 */
import { done, fail, ok, type Result } from '../../../mount/failure.ts';
import { type AbsolutePath, below, type Host, parentOf } from '../../../mount/host.ts';
import { makeHeldFile, removeHeldFile, removeLeft } from '../../device/held-file.ts';
import type { Layout } from '../../layout/layout.ts';
import { placeDirectory } from '../../layout/place-directory.ts';
import { removeEmptyPodDirectories } from '../../layout/pod-directory.ts';
import { doubtful } from '../../steps.ts';
import type { CsiVolumeSpec, PublicationSpec } from '../../volume.ts';
import { type DriverPath, type TakenAway, unchanged } from '../call/volume-directory.ts';
import { lookAt, NOTHING_THERE, type Seen, SharedDirectories } from './shared-directories.ts';

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
  const shared = new SharedDirectories(host, layout, nodeName);
  return {
    staging: (spec) => stagingPlace(shared, spec),
    publication: (spec, place) => publicationPlace(shared, spec, place),
  };
}

function stagingPlace(shared: SharedDirectories, spec: CsiVolumeSpec): DriverPath {
  const { host, layout } = shared;
  const path = layout.stagingPath(spec);
  const removeAll = async (): Promise<Result<void>> => {
    const removed = await removeStaging(host, path);
    return removed.ok ? shared.tidy(spec.specName) : removed;
  };
  return {
    path,
    prepare: () =>
      shared.alone(spec.specName, async () => {
        const before = await lookAt(host, path);
        if (!before.ok) return unchanged(before);
        const undo = async () => (before.value.exists ? done : removeAll());
        const filled = await orUndo(
          [
            () => shared.refuseForeign(spec),
            // Where it is, no vol_data.json is taken away. A mounted one is somebody's volume: its mode is not ours.
            async () => (before.value.mountId === undefined ? host.perform(placeDirectory, { path }) : done),
            () => shared.writeData(spec),
          ],
          undo,
        );
        return filled.ok ? ok(shared.prepared(spec.specName, path, before.value, undo)) : filled;
      }),
    takeAway: () => shared.alone(spec.specName, () => takeAway(host, path, removeAll)),
  };
}

function publicationPlace(
  shared: SharedDirectories,
  spec: CsiVolumeSpec,
  place: PublicationSpec,
): DriverPath {
  const { host, layout } = shared;
  const { published, held } = layout.blockPublication(place);
  const removeAll = async (): Promise<Result<void>> => {
    for (const step of [() => removeLeft(host, published), () => removeHeldFile(host, held)]) {
      const removed = await step();
      if (!removed.ok) return removed;
    }
    return shared.tidy(spec.specName);
  };
  return {
    path: published,
    prepare: () =>
      shared.alone(spec.specName, async () => {
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
            () => shared.refuseForeign(spec),
            () => host.perform(placeDirectory, { path: parentOf(held) }),
            async () => (fresh ? makeHeldFile(host, held) : done),
            () => shared.writeData(spec),
            () => host.perform(placeDirectory, { path: parentOf(published) }),
            // All but what a pod has would stand in the driver's way, or be taken for what it makes now.
            async () => (kept.value ? done : removeLeft(host, published)),
          ],
          undo,
        );
        const left = kept.value ? before.value : NOTHING_THERE;
        return filled.ok ? ok(shared.prepared(spec.specName, published, left, undo)) : filled;
      }),
    async takeAway() {
      const taken = await shared.alone(spec.specName, () => takeAway(host, published, removeAll));
      if (!taken.ok || taken.value.isMounted) return taken;
      // This is not done in the volume's turn: its next pod has nothing to do with what is left of this one.
      const removed = named(published, await removeEmptyPodDirectories(host, layout, place.pod.uid));
      return removed.ok ? taken : removed;
    },
  };
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

/**
 * Is it mounted, or the node of a device that is held for the pod? A node that nobody holds is of a boot before this
 * one, or no pod was ever shown it, and its number may be another disk's by now.
 */
async function isKept(host: Host, held: AbsolutePath, { mountId, device }: Seen): Promise<Result<boolean>> {
  if (mountId !== undefined || device === undefined) return ok(mountId !== undefined);
  const bound = await host.deviceOf(held);
  return bound.ok ? ok(bound.value === device) : bound;
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

function named(path: AbsolutePath, removed: Result<void>): Result<void> {
  return removed.ok ? removed : fail({ blocker: path, ...removed.failure, effect: 'unknown' });
}
