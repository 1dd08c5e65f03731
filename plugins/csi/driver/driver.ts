/** A CSI driver as registered on this node, and where to ask for it. */
import type { FailureCode, Result } from '../../../mount/failure.ts';
import type { AbsolutePath, Cancel } from '../../../mount/host.ts';
import type { SocketIdentity } from '../../../mount/remote-call.ts';

/** One life of one driver: a replaced socket inode is a new instance, and nothing cached of the old one holds. */
export interface DriverInstance {
  /** GetPluginInfo name: domain notation, at most 63 characters. */
  readonly name: string;
  readonly endpoint: SocketIdentity;
  /** The life of the socket's file, by inode and time: the same one that registers again is the same process. */
  readonly life: string;
  /** Undefined for a driver named in the configuration by its CSI socket. */
  readonly registrationSocket: AbsolutePath | undefined;
  readonly vendorVersion: string;
  readonly nodeId: string;
  /** 0: the driver sets no limit. */
  readonly volumesMax: number;
  readonly topology: Readonly<Record<string, string>>;
  /** NodeServiceCapability.RPC.Type numbers; numbers this build does not know are kept. */
  readonly nodeCapabilities: ReadonlySet<number>;
  /** ControllerServiceCapability.RPC.Type numbers; undefined when the endpoint serves no Controller. */
  readonly controllerCapabilities: ReadonlySet<number> | undefined;
  /** Host clock. */
  readonly registeredAtMs: number;
}

/** A driver or socket that was refused, and why; shown in status. */
export interface RefusedDriver {
  readonly socket: AbsolutePath;
  readonly name: string | undefined;
  readonly reason: string;
  /** Undefined: nothing failed, it is a remark. */
  readonly code: FailureCode | undefined;
}

export interface DriverChange {
  readonly kind: 'registered' | 'replaced' | 'gone';
  readonly driver: string;
}

export interface DriverRegistry {
  get(name: string): DriverInstance | undefined;
  list(): readonly DriverInstance[];
  refused(): readonly RefusedDriver[];
  onChange(listener: (change: DriverChange) => void): Cancel;
  /** Asks the driver once more for its limit (NodeGetInfo); `volumesMax` of an instance stays as it registered. */
  askVolumesMax(name: string): Promise<Result<number>>;
}
