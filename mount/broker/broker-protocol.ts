/** What the agent and its broker children say to each other over node's IPC channel (serialization `advanced`). */
import type { Effect, Result } from '../failure.ts';
import type { OwnershipPart, OwnershipPartReport } from './file/ownership-part.ts';
import type {
  AbsolutePath,
  DeviceNumber,
  DirectoryIdentity,
  DirectoryUse,
  DirectoryReading,
  FileEntry,
  FileSystemProbe,
  MountLookup,
  MountPlace,
  PathFacts,
} from '../host.ts';
import type { PlaceHolders } from '../holder/place-holder.ts';
import type { PlacesAsked } from './holder/place-holders.ts';
import type { DeviceNode, NodeIdentity } from './device/path-device.ts';
import type { DeviceUsers } from './device/path-device-users.ts';
import type { IscsiRecord, QuestionOwner } from './device/iscsi-record.ts';
import type { ToolProcess } from './tool-process.ts';
import type { Disk, IscsiSession } from '../block-devices.ts';
import type { BoundPart, PartBind } from '../part-bind.ts';
import type { WriteOptions } from '../temporary-file.ts';
import type { ToolReport, ToolRequest } from '../tool.ts';
import type { AnyTransition } from '../transition.ts';
import type { Usage, UsageRequest } from '../usage.ts';

/**
 * `path`: one synchronous call at a time, killed when overdue. `tool`: several tools at a time. `parser`: one text at a
 * time, killed when it costs more than it may.
 */
export type BrokerKind = 'path' | 'tool' | 'parser';

/** A word on the command line of a broker: mount points that it makes are protected (file/mount-point.ts). */
export const IMMUTABLE_MOUNT_POINTS = 'immutable-mount-points';

/** The text of an ES module for each kind of broker, which node reads from its standard input. */
export type BrokerPrograms = Readonly<Record<BrokerKind, string>>;

/** The path calls: their arguments and what they answer. The sentences about them are those of `Host`. */
export interface PathCalls {
  inspect: { args: { path: AbsolutePath }; result: Result<PathFacts> };
  inspectWay: { args: { path: AbsolutePath }; result: Result<readonly PathFacts[]> };
  makeDirectory: {
    args: { path: AbsolutePath; mode: number; use?: DirectoryUse };
    result: Result<void>;
  };
  removeEmptyDirectory: { args: { path: AbsolutePath }; result: Result<void> };
  removeTree: { args: { path: AbsolutePath }; result: Result<void> };
  listDirectory: { args: { path: AbsolutePath; entriesMax: number }; result: Result<readonly string[]> };
  identifyDirectory: { args: { path: AbsolutePath }; result: Result<DirectoryIdentity> };
  readDirectoryFiles: {
    args: { path: AbsolutePath; stampAgeMs: number } & DirectoryReading;
    result: Result<readonly FileEntry[]>;
  };
  readFile: { args: { path: AbsolutePath; bytesMax: number }; result: Result<Uint8Array> };
  writeFile: {
    args: { path: AbsolutePath; content: Uint8Array; options: WriteOptions };
    result: Result<void>;
  };
  overwriteFile: {
    args: { path: AbsolutePath; at: number; content: Uint8Array; within: number | undefined };
    result: Result<void>;
  };
  synchronise: { args: { path: AbsolutePath }; result: Result<void> };
  removeFile: { args: { path: AbsolutePath }; result: Result<void> };
  rename: { args: { from: AbsolutePath; to: AbsolutePath }; result: Result<void> };
  makeLink: { args: { path: AbsolutePath; text: string }; result: Result<void> };
  readLink: { args: { path: AbsolutePath }; result: Result<string> };
  mountIdOf: { args: { path: AbsolutePath }; result: Result<number | undefined> };
  mountPlaceOf: { args: { path: AbsolutePath }; result: Result<MountPlace> };
  lookUpMount: { args: { path: AbsolutePath }; result: Result<MountLookup> };
  bindPart: { args: PartBind; result: Result<BoundPart> };
  probeFileSystem: { args: { path: AbsolutePath }; result: Result<FileSystemProbe> };
  measureUsage: { args: UsageRequest; result: Result<Usage> };
  findHolders: { args: { target: AbsolutePath }; result: Result<readonly string[]> };
  findPlaceHolders: { args: PlacesAsked; result: Result<PlaceHolders> };
  deviceNodeOf: { args: { path: AbsolutePath }; result: Result<DeviceNode | undefined> };
  identifyDisk: { args: { path: AbsolutePath }; result: Result<Disk | undefined> };
  findLoopsOf: { args: { path: AbsolutePath; mark: string | undefined }; result: Result<readonly string[]> };
  findHeldPaths: { args: { within: AbsolutePath }; result: Result<readonly AbsolutePath[]> };
  findDeviceByNode: { args: NodeIdentity; result: Result<DeviceNumber | undefined> };
  proveBlank: { args: { path: AbsolutePath }; result: Result<void> };
  isDeviceChangeable: { args: { path: AbsolutePath }; result: Result<boolean> };
  scanForDeviceUsers: { args: { device: DeviceNumber }; result: Result<DeviceUsers> };
  readIscsiSessions: { args: { path: AbsolutePath }; result: Result<readonly IscsiSession[]> };
  writeIscsiRecord: { args: IscsiRecord; result: Result<void> };
  ownerOfQuestion: { args: Omit<IscsiRecord, 'settings'>; result: Result<QuestionOwner> };
  /** Gives a sign of life after each step. */
  transition: { args: TransitionCall; result: Result<unknown> };
  /** Gives signs of life: it may take any time. */
  changeOwnershipPart: { args: OwnershipPart; result: Result<OwnershipPartReport> };
}

/** A transition by its name, which the broker knows it by. */
export interface TransitionCall extends Pick<AnyTransition, 'name' | 'changesTheWorld' | 'removesTrees'> {
  readonly path: AbsolutePath;
  readonly input: unknown;
}

export type PathCallKind = keyof PathCalls;

export type PathCall = {
  [Kind in PathCallKind]: { kind: Kind; args: PathCalls[Kind]['args'] };
}[PathCallKind];

const CHANGES_THE_WORLD = {
  inspect: false,
  inspectWay: false,
  makeDirectory: true,
  removeEmptyDirectory: true,
  removeTree: true,
  listDirectory: false,
  identifyDirectory: false,
  readDirectoryFiles: false,
  readFile: false,
  writeFile: true,
  overwriteFile: true,
  synchronise: false,
  removeFile: true,
  rename: true,
  makeLink: true,
  readLink: false,
  mountIdOf: false,
  mountPlaceOf: false,
  lookUpMount: false,
  bindPart: true,
  probeFileSystem: false,
  measureUsage: false,
  findHolders: false,
  findPlaceHolders: false,
  deviceNodeOf: false,
  identifyDisk: false,
  findLoopsOf: false,
  findHeldPaths: false,
  findDeviceByNode: false,
  proveBlank: false,
  isDeviceChangeable: false,
  scanForDeviceUsers: false,
  readIscsiSessions: false,
  writeIscsiRecord: true,
  ownerOfQuestion: false,
  changeOwnershipPart: true,
} as const satisfies Record<Exclude<PathCallKind, 'transition'>, boolean>;

/** A lost reading call has changed nothing; every other one may have. */
export function effectOfLost(call: PathCall): Effect {
  const isChange = call.kind === 'transition' ? call.args.changesTheWorld : CHANGES_THE_WORLD[call.kind];
  return isChange ? 'unknown' : 'none';
}

export type ToBroker =
  | { readonly kind: 'path'; readonly id: number; readonly call: PathCall }
  | { readonly kind: 'tool'; readonly id: number; readonly request: ToolRequest }
  | { readonly kind: 'parse'; readonly id: number; readonly request: unknown }
  /** The next part of the answer. */
  | { readonly kind: 'more'; readonly id: number };

export type FromBroker =
  /** Sent once, when it listens; a broker that dies before has begun nothing. */
  | { readonly kind: 'ready' }
  /** The call goes on, and has seen so many entries: its deadline begins anew. Or a tool has yet to begin. */
  | { readonly kind: 'sign'; readonly id: number; readonly seen: number }
  /** The tool runs. */
  | { readonly kind: 'begun'; readonly id: number; readonly tool: ToolProcess }
  | { readonly kind: 'settled'; readonly id: number; readonly result: Result<unknown> }
  /** A part of the answer of a parser, which comes in parts so that none takes the agent long to decode. */
  | { readonly kind: 'part'; readonly id: number; readonly part: unknown; readonly last: boolean };

/** Any text as an answer in parts, each of them small; never throws. Made on a floor above. */
export type Parse = (request: unknown) => readonly [unknown, ...unknown[]];

/** What a `tool` broker answers. */
export type ToolAnswer = Result<ToolReport>;

/** Descriptors of a broker beyond the standard ones and the IPC channel. */
export const BROKER_DESCRIPTOR = {
  /** A pipe to the agent; every tool holds it too, so its end says that the broker and all its tools have ended. */
  lifeline: 4,
  /** The agent's helpers lock, or /dev/null: a lock is held as long as anyone has a copy. */
  helpersLock: 5,
} as const;
