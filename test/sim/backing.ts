/** The storage behind a simulated driver, and what of it this node has. */
import type { DeviceNumber } from '../../mount/host.ts';
import type { FileSystem } from './file-tree.ts';

/** One volume at the storage's end. */
export interface Backing {
  readonly handle: string;
  readonly fileSystem: FileSystem;
  /** What it is set up as, or was last. */
  block: boolean;
  /** Made by the publication of an inline volume, gone with it. */
  readonly ephemeral: boolean;
  /** The number of a block volume's device while it is on this machine. */
  device: DeviceNumber | undefined;
  /** What ControllerPublish made for this node, under each id that the node was called by; empty while not attached. */
  readonly attachments: Map<string, string>;
  /** The attachment by which what stands was set up, or stood last. */
  setUpBy: string | undefined;
  /** By place: the node id of the attachment by which something was set up there. */
  readonly setUpUnder: Map<string, string>;
  /** Staging paths of a driver that stages without a mount, and of devices. */
  readonly stagedAt: Set<string>;
  /** Staging paths for which the driver has a loop device, until each is unstaged. */
  readonly loops: Set<string>;
  /** The driver has said once that it was staged, and had done nothing. */
  stageLied: boolean;
  /** What the driver holds for its publications, through reboots, until each is unpublished. */
  readonly resources: Set<string>;
  /** What the storage has. */
  storageBytes: bigint;
  /** What the node sees of it; a fresh stage, or a fresh publish or device without one, sees all. */
  nodeBytes: bigint;
  /** The device by which it saw that; undefined where it has none. */
  seenBy: string | undefined;
  /** More than this the node can never make of it. */
  readonly limitBytes: bigint;
}

/** By the one that was made last. */
export function deviceOf({ attachments }: Pick<Backing, 'attachments'>): string | undefined {
  return [...attachments.values()].at(-1);
}

export function nodeIdOf({ attachments }: Pick<Backing, 'attachments'>, device?: string): string | undefined {
  return [...attachments].find(([, one]) => one === device)?.[0];
}

export interface BackingOptions {
  readonly block: boolean;
  readonly ephemeral: boolean;
  readonly bytes: bigint;
  readonly limitBytes: bigint;
}

export const GIB = 1_073_741_824n;

export const PLAIN_BACKING: BackingOptions = {
  block: false,
  ephemeral: false,
  bytes: GIB,
  limitBytes: 1_000n * GIB,
};

/** Drivers make the volume of a publication with this in its context; its handle has no meaning to them. */
export const EPHEMERAL_KEY = 'csi.storage.k8s.io/ephemeral';
