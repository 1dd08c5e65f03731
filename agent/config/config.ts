/** What an agent is configured with, and what reading a configuration can say. */
import type { AbsolutePath } from '../../mount/host.ts';
import type { ListenAddress } from '../../mount/process/listen-address.ts';
import type { LogLevel } from '../../mount/process/log.ts';
import type { RecordForm } from '../../reconciler/journal/record-forms.ts';

export interface StaticDriver {
  /** The CSI socket itself, for a driver that does not register below `plugins_registry`. */
  readonly socket: AbsolutePath;
  readonly parallelPublish: boolean;
}

export interface DriverOptions {
  /** Publish one volume for several pods at once; falls back to one at a time on ABORTED (D-17). */
  readonly parallelPublish: boolean;
  /** Undefined: `operationsPerDriverMax`. */
  readonly operationsMax: number | undefined;
  /** In quarantine, `force` and `fence` of CSI pull 477 are sent, which no release has: drivers may drop data (B-5). */
  readonly forceFields: boolean;
}

export interface Config {
  readonly root: AbsolutePath;
  readonly socket: AbsolutePath;
  readonly manifests: AbsolutePath;
  readonly nodeName: string;
  readonly staticDrivers: readonly StaticDriver[];
  /** Each driver is found by its name; one that is not listed has the defaults. */
  readonly drivers: ReadonlyMap<string, DriverOptions>;
  readonly csiDeadlineMs: number;
  readonly lateEffectMs: number;
  readonly pathDeadlineMs: number;
  readonly operationsPerDriverMax: number;
  readonly resyncMs: number;
  readonly settleMs: number;
  /** 0: a pod whose manifest vanished while no agent ran is taken down at once. */
  readonly vanishedHoldMs: number;
  /** 0: drivers are never asked how full and how healthy a volume is. */
  readonly statisticsIntervalMs: number;
  readonly republishIntervalMs: number;
  readonly backOff: { readonly firstMs: number; readonly maxMs: number };
  readonly log: { readonly format: LogFormat; readonly level: LogLevel };
  readonly allowPrivateMountNamespace: boolean;
  /** Root neither can write through a mount point of ours on which nothing is mounted (DL-15). */
  readonly immutableMountPoints: boolean;
  /** `auto`: SELinux contexts are used where the machine has SELinux enabled. */
  readonly seLinux: 'auto' | 'off';
  /** Undefined: metrics are on the socket only. */
  readonly metricsListen: ListenAddress | undefined;
  /** A hostPath volume at or below one of these is refused. */
  readonly hostPathDenied: readonly AbsolutePath[];
  /** How records lie on the disk; what is there in the other form is taken over at the start. */
  readonly recordStore: RecordForm;
  readonly watchdog: boolean;
  /** Undefined: nobody issues service account tokens here. */
  readonly tokenSigningKey: AbsolutePath | undefined;
  /** The `iss` of the tokens, and their audience where none is asked for. */
  readonly tokenIssuer: string;
  /** How the API server of a cluster is reached; undefined: this machine is no node of a cluster. */
  readonly kubeconfig: AbsolutePath | undefined;
}

export type LogFormat = 'auto' | 'json' | 'human';

/** What the command line says; it wins over the file. */
export interface ConfigFlags {
  readonly root?: string | undefined;
  readonly socket?: string | undefined;
  readonly manifests?: string | undefined;
  readonly nodeName?: string | undefined;
  readonly kubeconfig?: string | undefined;
  readonly logFormat?: string | undefined;
  readonly logLevel?: string | undefined;
  readonly allowPrivateMountNamespace?: boolean | undefined;
  readonly immutableMountPoints?: boolean | undefined;
}

export interface ConfigProblem {
  /** Dotted as in the file, or the flag: `back_off.first_ms`, `static_drivers[0].socket`, `--root`. */
  readonly key: string;
  /** The value as found, as JSON, at most 80 bytes; undefined when the problem is the key itself. */
  readonly value: string | undefined;
  /** What would be right. */
  readonly message: string;
}

/** It is no Failure: a bad configuration has many problems at once, and nothing in the agent decides on them. */
export type ConfigReading =
  | { readonly ok: true; readonly value: Config; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };
