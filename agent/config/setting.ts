/** The settings of the agent: key, default, range and meaning of each, for the parser, `--help` and docs alike. */

export const DEFAULT_ROOT = '/var/lib/mooring';
export const DEFAULT_SOCKET = '/run/mooring/agent.sock';
export const DEFAULT_MANIFESTS = '/etc/mooring/manifests';
/** No address: nobody is asked there. */
export const DEFAULT_TOKEN_ISSUER = 'urn:mooring';
export const DEFAULT_CONFIG_FILE = '/etc/mooring/config.yaml';

/** sun_path of unix(7) less its NUL; Node 20 silently binds a cut path beyond it. */
export const SOCKET_PATH_BYTES_MAX = 107;

/** Which whole numbers a setting may have. */
export interface Range {
  readonly default: number;
  readonly min: number;
  readonly max: number;
  /** 0 is allowed, too, and means never. */
  readonly orNever?: true;
}

/** The whole numbers, by dotted key. */
export const NUMBERS = {
  csi_deadline_ms: { default: 120_000, min: 1_000, max: 3_600_000 },
  late_effect_ms: { default: 600_000, min: 1_000, max: 86_400_000 },
  path_deadline_ms: { default: 30_000, min: 1_000, max: 600_000 },
  operations_per_driver_max: { default: 16, min: 1, max: 256 },
  resync_ms: { default: 60_000, min: 1_000, max: 3_600_000 },
  settle_ms: { default: 300, min: 0, max: 60_000 },
  vanished_hold_ms: { default: 300_000, min: 1_000, max: 86_400_000, orNever: true },
  statistics_interval_ms: { default: 60_000, min: 1_000, max: 3_600_000, orNever: true },
  republish_interval_ms: { default: 90_000, min: 10_000, max: 3_600_000 },
  'back_off.first_ms': { default: 500, min: 10, max: 60_000 },
  'back_off.max_ms': { default: 120_000, min: 100, max: 3_600_000 },
} as const satisfies Record<string, Range>;

export interface Setting {
  readonly key: string;
  /** As it would stand in the file. */
  readonly default: string;
  readonly range: string;
  readonly meaning: string;
  readonly flag: string | undefined;
}

/** One row per key of the file, for `--help` and docs; a test keeps it equal to what `parseConfig` accepts. */
export const SETTINGS: readonly Setting[] = [
  row('root', DEFAULT_ROOT, 'absolute path', 'state: volumes, plug-ins, records', '--root'),
  row(
    'socket',
    DEFAULT_SOCKET,
    `absolute path, at most ${SOCKET_PATH_BYTES_MAX} bytes`,
    'API of the agent',
    '--socket',
  ),
  row(
    'manifests',
    DEFAULT_MANIFESTS,
    'absolute path',
    'directory of Kubernetes YAML: its files *.yaml, *.yml and *.json',
    '--manifests',
  ),
  row('node_name', 'the host name', '1 to 253 of a-z 0-9 - .', 'name of this node', '--node-name'),
  row(
    'static_drivers',
    '[]',
    'list of {socket, parallel_publish}',
    'CSI sockets that do not register themselves',
  ),
  row(
    'drivers',
    '{}',
    'name: {parallel_publish, operations_max, force_fields}',
    'options per CSI driver; force_fields: send fields of an unreleased CSI in quarantine, where data may be lost',
  ),
  numberRow('csi_deadline_ms', 'longest CSI call'),
  numberRow('late_effect_ms', 'how long after its deadline a CSI call may still take effect'),
  numberRow('path_deadline_ms', 'longest mount, unmount or file call before it is killed'),
  numberRow('operations_per_driver_max', 'operations of one driver at a time'),
  numberRow('resync_ms', 'how often everything is compared again, events or not'),
  numberRow('settle_ms', 'how long a change or disappearance of a manifest must last before it counts'),
  numberRow(
    'vanished_hold_ms',
    'how long a pod is kept whose manifest vanished while no agent ran, in case that is a mistake; 0: not at all',
  ),
  numberRow(
    'statistics_interval_ms',
    'how often each volume is asked how full and how healthy it is; 0: never',
  ),
  numberRow(
    'republish_interval_ms',
    'how often volumes of drivers with requiresRepublish are published again',
  ),
  numberRow('back_off.first_ms', 'wait after a first failure; doubles each time'),
  numberRow('back_off.max_ms', 'longest wait between two tries'),
  row('log.format', 'auto', 'auto, json, human', 'auto: human on a terminal, else json', '--log-format'),
  row('log.level', 'info', 'debug, info, warn, error', 'least important line that is written', '--log-level'),
  row(
    'allow_private_mount_namespace',
    'false',
    'true, false',
    'start where pods may not see the mounts (tests, demos)',
    '--allow-private-mount-namespace',
  ),
  row(
    'immutable_mount_points',
    'false',
    'true, false',
    'make bare mount points immutable, so that root neither writes through them (docs/OPERATING.md)',
    '--immutable-mount-points',
  ),
  row(
    'selinux',
    'auto',
    'auto, off',
    'auto: mount with SELinux contexts where the machine has SELinux enabled',
  ),
  row(
    'metrics_listen',
    'off',
    'off, or host:port',
    'also serve GET /metrics over TCP, without a password; it is always on the socket',
  ),
  row('host_path_denied', '[]', 'list of absolute paths', 'hostPath volumes at or below these are refused'),
  row(
    'token_signing_key',
    'off',
    'off, or absolute path',
    'private key (PEM: EC prime256v1 or RSA) that service account tokens are issued with; GET /openid/v1/jwks',
  ),
  row('token_issuer', DEFAULT_TOKEN_ISSUER, '1 to 256 printable characters', 'who issues them: their iss'),
  row(
    'kubeconfig',
    'off',
    'off, or absolute path',
    'how to reach the API server of a cluster: pods that are bound to this node are set up, too',
    '--kubeconfig',
  ),
  row(
    'record_store',
    'journal',
    'files, journal',
    'how records lie on the disk: a file for each volume, or one journal for all (docs/OPERATING.md)',
  ),
  row('watchdog', 'true', 'true, false', "answer systemd's watchdog when it asks; false: turn it off"),
];

function row(key: string, byDefault: string, range: string, meaning: string, flag?: string): Setting {
  return { key, default: byDefault, range, meaning, flag };
}

function numberRow(key: keyof typeof NUMBERS, meaning: string): Setting {
  return row(key, String(NUMBERS[key].default), rangeText(NUMBERS[key]), meaning);
}

/** `1000 to 3600000`. */
function rangeText({ min, max, orNever }: Range): string {
  return `${orNever === true ? '0, or ' : ''}${min} to ${max}`;
}
