/** The directories a CSI volume has on this node, and the kubelet's `vol_data.json` in them. */
import { fail, ok, type Result } from '../../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../../mount/host.ts';
import { sha256Hex } from '../../layout/layout.ts';
import { removeVolumeData, writeVolumeData } from '../../layout/volume-data.ts';
import type { VolumeData } from '../../layout/volume-data-text.ts';

const DIRECTORY_MODE = 0o750;

/**
 * One directory of ours with `vol_data.json` beside the place where the driver mounts: the device directory with its
 * `globalmount`, or a pod's volume directory with its `mount`.
 */
export interface VolumeDirectory {
  readonly path: AbsolutePath;
  readonly mountPoint: AbsolutePath;
  /** The staging path is made by us, the target of a publication by the driver (CSI; A-055, A-061). */
  readonly mountPointMadeBy: 'us' | 'driver';
  readonly data: VolumeData;
}

/** Where a call of the driver takes effect, and what of ours surrounds it. */
export interface DriverPath {
  /** Given to the driver. */
  readonly path: AbsolutePath;
  /** Makes it ready for the driver. A failure has effect `none` when what it made could be removed again. */
  prepare(): Promise<Result<Prepared>>;
  /**
   * Removes what the driver left and what is ours: never more than empty directories, empty files, device nodes and
   * what we wrote. Assumes: the caller has asked the kernel that nothing is mounted there. A failure names what is in
   * the way.
   */
  remove(): Promise<Result<void>>;
}

export interface Prepared {
  /** Before the call a mount, or the driver's device, was there. */
  readonly mountedBefore: boolean;
  /**
   * After a refused call: takes away what `prepare` made. False when the driver changed something all the same, so that
   * the effect is unknown; then all of ours stays.
   */
  undo(): Promise<boolean>;
}

/** `attachmentID` of vol_data.json and name of the VolumeAttachment; no separators, as the kubelet has it. */
export function attachmentId(volumeHandle: string, driver: string, nodeName: string): string {
  return `csi-${sha256Hex(`${volumeHandle}${driver}${nodeName}`)}`;
}

/** The place of a volume with files: of a stage or of a publication. */
export function driverPathIn(host: Host, directory: VolumeDirectory): DriverPath {
  return {
    path: directory.mountPoint,
    prepare: () => prepare(host, directory),
    remove: () => remove(host, directory),
  };
}

async function prepare(host: Host, directory: VolumeDirectory): Promise<Result<Prepared>> {
  const facts = await host.inspect(directory.path);
  if (!facts.ok) return unchanged(facts);
  const fresh = facts.value.kind === 'absent';
  const mountId = fresh ? ok(undefined) : await host.mountIdOf(directory.mountPoint);
  if (!mountId.ok) return unchanged(mountId);
  const filled = await fill(host, directory, mountId.value !== undefined);
  if (!filled.ok) {
    const undone = !fresh || (await remove(host, directory)).ok;
    return undone ? unchanged(filled) : fail({ ...filled.failure, effect: 'unknown' });
  }
  const undo = async (): Promise<boolean> => {
    const now = await host.mountIdOf(directory.mountPoint);
    if (!now.ok || now.value !== mountId.value) return false;
    return !fresh || (await remove(host, directory)).ok;
  };
  return ok({ mountedBefore: mountId.value !== undefined, undo });
}

async function fill(host: Host, directory: VolumeDirectory, isMounted: boolean): Promise<Result<void>> {
  const made = await makeDirectory(host, directory.path);
  if (!made.ok) return made;
  const written = await writeVolumeData(host, directory.path, directory.data);
  // A mounted mount point is the root of somebody's volume: neither its mode nor its existence is ours to set.
  if (!written.ok || isMounted) return written;
  return directory.mountPointMadeBy === 'us'
    ? makeDirectory(host, directory.mountPoint)
    : removeMountPoint(host, directory.mountPoint);
}

/** Another volume of the pod coming down may remove an empty parent between our steps: then once more. */
export async function makeDirectory(host: Host, path: AbsolutePath): Promise<Result<void>> {
  const made = await host.makeDirectory(path, DIRECTORY_MODE);
  return made.ok || made.failure.code !== 'path-missing' ? made : host.makeDirectory(path, DIRECTORY_MODE);
}

async function remove(host: Host, directory: VolumeDirectory): Promise<Result<void>> {
  const steps = [
    () => removeMountPoint(host, directory.mountPoint),
    () => removeVolumeData(host, directory.path),
    () => host.removeEmptyDirectory(directory.path),
  ];
  for (const step of steps) {
    const removed = await step();
    if (!removed.ok) return fail({ blocker: directory.path, ...removed.failure, effect: 'unknown' });
  }
  return ok(undefined);
}

/** Drivers make the target a directory or a file, and remove it, or leave it (DR-09): an empty one is taken away. */
async function removeMountPoint(host: Host, path: AbsolutePath): Promise<Result<void>> {
  const facts = await host.inspect(path);
  if (!facts.ok) return facts;
  const { kind, sizeBytes } = facts.value;
  if (kind === 'absent') return ok(undefined);
  if (kind === 'directory') return host.removeEmptyDirectory(path);
  if (kind === 'file' && sizeBytes === 0) return host.removeFile(path);
  const message = `left behind: a ${kind}, neither an empty file nor a directory`;
  return fail({ code: 'path-wrong-kind', message, effect: 'none', blocker: path });
}

/** A failure after which everything is as it was. */
export function unchanged(failed: { readonly ok: false; readonly failure: Parameters<typeof fail>[0] }) {
  return fail({ ...failed.failure, effect: 'none' });
}
