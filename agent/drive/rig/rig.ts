/** All that stays the same while one driver is driven: who it is, how to reach it, how to kill it. */
import {
  ControllerServiceCapability_RPC_Type as Controller,
  NodeServiceCapability_RPC_Type as Node,
  type VolumeCapability,
  VolumeCapability_AccessMode_Mode as Mode,
} from '../../../plugins/csi/wire/generated/csi.ts';
import type { DriveOptions, StringMap } from './drive-options.ts';
import type { Answer, DriverClient } from './driver-client.ts';
import type { DriverProcess } from './driver-child.ts';
import { DOUBTS } from '../oracle/oracle-history.ts';

/** What the driver said of itself at the beginning. */
export interface DriverFacts {
  readonly name: string;
  readonly vendorVersion: string;
  readonly services: ReadonlySet<number>;
  /** PluginCapability.VolumeExpansion. */
  readonly expansion: ReadonlySet<number>;
  readonly node: ReadonlySet<number>;
  /** False, too, where CONTROLLER_SERVICE is said and the controller has another socket. */
  readonly servesController: boolean;
  /** Empty without a controller at this socket. */
  readonly controller: ReadonlySet<number>;
  readonly nodeId: string;
  readonly topology: StringMap | undefined;
}

export interface Rig {
  readonly client: DriverClient;
  readonly options: DriveOptions;
  readonly facts: DriverFacts;
  /** The CSI socket. */
  readonly endpoint: string;
  /** Everything that is staged or published is below it. */
  readonly directory: string;
  /** Undefined: the driver was not started by us. */
  readonly driver: DriverProcess | undefined;
  /** Waits until the driver answers and says it is ready; a sentence when it does not in time. */
  readonly untilReady: () => Promise<string | undefined>;
  /** Uniform in [0, 1), from the seed. */
  readonly random: () => number;
  /** Files behind the loop devices that were seen under volumes. */
  readonly backingFiles: Set<string>;
  /** What was left after a duty although the driver had said OK. */
  readonly leftovers: string[];
  /** Unique for this run: part of the names of created volumes. */
  readonly runId: string;
}

export function stagesOf({ facts }: Rig): boolean {
  return facts.node.has(Node.STAGE_UNSTAGE_VOLUME);
}

export function attachesOf({ facts }: Rig): boolean {
  return facts.controller.has(Controller.PUBLISH_UNPUBLISH_VOLUME);
}

/** Volumes are made, not given: the driver can, and no handle was named. */
export function createsOf({ facts, options }: Rig): boolean {
  return options.volumeHandles.length === 0 && facts.controller.has(Controller.CREATE_DELETE_VOLUME);
}

export type AccessKind = 'mount' | 'block';

export function capabilityOf(rig: Rig, kind: AccessKind, mode: Mode = defaultMode(rig)): VolumeCapability {
  const accessMode = { mode };
  if (kind === 'block') return { accessType: { $case: 'block', value: {} }, accessMode };
  const value = { fsType: rig.options.fsType, mountFlags: [], volumeMountGroup: '' };
  return { accessType: { $case: 'mount', value }, accessMode };
}

export function defaultMode({ options }: Rig): Mode {
  return options.accessMode ?? Mode.SINGLE_NODE_WRITER;
}

/** Answers after which the same call may be sent again (spec, "Timeouts"; ABORTED). */
export function isDoubt(answer: Answer<unknown>): boolean {
  return !answer.ok && (answer.code === undefined || DOUBTS.has(answer.code));
}
