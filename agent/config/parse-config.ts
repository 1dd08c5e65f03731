/** From the text of the configuration file and the flags to a configuration, or to all that is wrong with it. */
import * as v from 'valibot';
import { warningsAbout } from './config-warning.ts';
import type { Config, ConfigFlags, ConfigProblem, ConfigReading } from './config.ts';
import { contradictions } from './contradictions.ts';
import {
  DEFAULT_MANIFESTS,
  DEFAULT_ROOT,
  DEFAULT_SOCKET,
  DEFAULT_TOKEN_ISSUER,
  NUMBERS,
  type Range,
  SETTINGS,
  SOCKET_PATH_BYTES_MAX,
} from './setting.ts';
import { shown } from './shown-value.ts';
import { type AbsolutePath, parseAbsolutePath } from '../../mount/host.ts';
import { parseListenAddress } from '../../mount/process/listen-address.ts';
import { nearest } from '../../mount/text/nearest.ts';
import { isMapping } from '../../kubernetes/fields/plain-value.ts';
import { printable } from '../../mount/text/printable.ts';
import { isDriverName } from '../../plugins/volume.ts';

function absolutePath(): v.GenericSchema<unknown, AbsolutePath> {
  const message = 'must be an absolute path without "." or "..", without double or trailing slash';
  const isPath = (text: string): text is AbsolutePath => parseAbsolutePath(text) !== undefined;
  return v.pipe(v.string(message), v.guard(isPath, message));
}

function socketPath(): v.GenericSchema<unknown, AbsolutePath> {
  const message = `must be at most ${SOCKET_PATH_BYTES_MAX} bytes long, the kernel's limit for a socket path`;
  return v.pipe(
    absolutePath(),
    v.check((path) => Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX, message),
  );
}

// `nullish`: a key with nothing behind it is how YAML writes "not set".
function flag(byDefault: boolean) {
  return v.nullish(v.boolean('must be true or false'), byDefault);
}

function wholeNumber(key: keyof typeof NUMBERS) {
  const range: Range = NUMBERS[key];
  const unit = key.endsWith('_ms') ? ' (milliseconds)' : '';
  const never = range.orNever === true ? '0 (never), or ' : '';
  const message = `must be ${never}a whole number from ${range.min} to ${range.max}${unit}`;
  const isRight = (value: number): boolean => {
    if (!Number.isInteger(value)) return false;
    return (value >= range.min && value <= range.max) || (range.orNever === true && value === 0);
  };
  return v.nullish(v.pipe(v.number(message), v.check(isRight, message)), range.default);
}

/** `off`, or the address of this machine to listen on. */
function listenAddress() {
  const message = 'must be off, or address:port as in 127.0.0.1:9112 or [::1]:9112';
  const isRight = (text: string): boolean => text === 'off' || parseListenAddress(text) !== undefined;
  return v.nullish(v.pipe(v.string(message), v.check(isRight, message)), 'off');
}

/** `off`, or where the file is. */
function pathOrOff(what: string) {
  const message = `must be off, or the absolute path of ${what}`;
  const isRight = (text: string): text is AbsolutePath | 'off' =>
    text === 'off' || parseAbsolutePath(text) !== undefined;
  return v.nullish(v.pipe(v.string(message), v.guard(isRight, message)), 'off');
}

function oneOf<const T extends string>(options: readonly T[]) {
  return v.picklist(options, `must be one of ${options.join(', ')}`);
}

function list<T extends v.GenericSchema>(item: T) {
  const message = `must have at most ${LIST_ENTRIES_MAX} entries`;
  const bound = v.maxLength<v.InferOutput<T>[], number, string>(LIST_ENTRIES_MAX, message);
  return v.nullish(v.pipe(v.array(item, 'must be a list'), bound), []);
}

const LIST_ENTRIES_MAX = 256;
const MAPPING = 'must be a mapping (key: value)';
/** DNS-1123 subdomain, as Kubernetes wants of a Node's name, and not yet in lower case. */
const NODE_NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/i;

/** Unknown keys are errors, all of them: `strictObject` would report only the first. */
function section<T extends v.ObjectEntries>(entries: T) {
  // Without a prototype, so that `toString` is an unknown key like any other.
  const bare: T = Object.assign(Object.create(null), entries);
  return v.pipe(
    v.custom<Record<string, unknown>>(isMapping, MAPPING),
    v.objectWithRest(bare, v.never(), MAPPING),
  );
}

function keysOf(schema: {
  readonly pipe: readonly [unknown, { readonly entries: object }];
}): readonly string[] {
  return Object.keys(schema.pipe[1].entries);
}

const STATIC_DRIVER = section({ socket: socketPath(), parallel_publish: flag(false) });

const DRIVER_OPTIONS = section({
  parallel_publish: flag(false),
  operations_max: v.nullish(wholeNumber('operations_per_driver_max').wrapped),
  force_fields: flag(false),
});

const BACK_OFF = section({
  first_ms: wholeNumber('back_off.first_ms'),
  max_ms: wholeNumber('back_off.max_ms'),
});

const LOG = section({
  format: v.nullish(oneOf(['auto', 'json', 'human']), 'auto'),
  level: v.nullish(oneOf(['debug', 'info', 'warn', 'error']), 'info'),
});

function fileSchema(hostName: string) {
  const driverName = v.pipe(v.string(), v.check(isDriverName, DRIVER_NAME_MESSAGE));
  const drivers = v.record(driverName, DRIVER_OPTIONS, MAPPING);
  return section({
    root: v.nullish(absolutePath(), DEFAULT_ROOT),
    socket: v.nullish(socketPath(), DEFAULT_SOCKET),
    manifests: v.nullish(absolutePath(), DEFAULT_MANIFESTS),
    node_name: v.nullish(
      // As the kubelet makes it of its --hostname-override, and of the host name.
      v.pipe(v.string(NODE_NAME_MESSAGE), v.regex(NODE_NAME, NODE_NAME_MESSAGE), v.toLowerCase()),
      hostName,
    ),
    static_drivers: list(STATIC_DRIVER),
    drivers: v.nullish(v.pipe(v.custom<Record<string, unknown>>(isMapping, MAPPING), drivers), {}),
    csi_deadline_ms: wholeNumber('csi_deadline_ms'),
    late_effect_ms: wholeNumber('late_effect_ms'),
    path_deadline_ms: wholeNumber('path_deadline_ms'),
    operations_per_driver_max: wholeNumber('operations_per_driver_max'),
    resync_ms: wholeNumber('resync_ms'),
    settle_ms: wholeNumber('settle_ms'),
    vanished_hold_ms: wholeNumber('vanished_hold_ms'),
    statistics_interval_ms: wholeNumber('statistics_interval_ms'),
    republish_interval_ms: wholeNumber('republish_interval_ms'),
    back_off: v.nullish(BACK_OFF, {}),
    log: v.nullish(LOG, {}),
    allow_private_mount_namespace: flag(false),
    immutable_mount_points: flag(false),
    selinux: v.nullish(oneOf(['auto', 'off']), 'auto'),
    metrics_listen: listenAddress(),
    host_path_denied: list(absolutePath()),
    token_signing_key: pathOrOff('a private key in PEM'),
    token_issuer: v.nullish(
      v.pipe(v.string(ISSUER_MESSAGE), v.regex(ISSUER, ISSUER_MESSAGE)),
      DEFAULT_TOKEN_ISSUER,
    ),
    kubeconfig: pathOrOff('a kubeconfig'),
    record_store: v.nullish(oneOf(['files', 'journal']), 'journal'),
    watchdog: flag(true),
  });
}

const ISSUER = /^[\x21-\x7e]{1,256}$/;
const ISSUER_MESSAGE =
  'must be 1 to 256 printable ASCII characters without spaces, such as https://node-1.example.com';

const NODE_NAME_MESSAGE =
  'must be a DNS name: 1 to 253 of a-z, 0-9, "-" and ".", beginning and ending with a letter or digit';

const DRIVER_NAME_MESSAGE =
  'must be a CSI driver name as the driver reports it: 1 to 63 letters, digits, "-" and "."';

type File = v.InferOutput<ReturnType<typeof fileSchema>>;

/**
 * Reads a configuration out of parsed YAML (`null` or `undefined`: an empty or missing file). Pure. All problems are
 * reported at once, each with its key, its value and what would be right. `hostName` is the default node name.
 */
export function parseConfig(value: unknown, flags: ConfigFlags, hostName: string): ConfigReading {
  const input = withFlags(value ?? {}, flags);
  const schema = fileSchema(hostName);
  const parsed = v.safeParse(schema, input);
  const problems = (parsed.issues ?? []).map((issue) => problemOf(issue, flags));
  if (parsed.typed) problems.push(...contradictions(parsed.output));
  if (!parsed.success || problems.length > 0) return { ok: false, problems };
  const config = configOf(parsed.output);
  return { ok: true, value: config, warnings: warningsAbout(config) };
}

const FLAG_KEYS = {
  root: 'root',
  socket: 'socket',
  manifests: 'manifests',
  nodeName: 'node_name',
  kubeconfig: 'kubeconfig',
  logFormat: 'log.format',
  logLevel: 'log.level',
  allowPrivateMountNamespace: 'allow_private_mount_namespace',
  immutableMountPoints: 'immutable_mount_points',
} as const satisfies Record<keyof ConfigFlags, string>;

function withFlags(value: unknown, flags: ConfigFlags): unknown {
  if (!isMapping(value)) return value;
  const merged: Record<string, unknown> = { ...value };
  for (const name of givenFlags(flags)) {
    const [outer, inner] = FLAG_KEYS[name].split('.');
    if (outer === undefined) continue;
    const old = merged[outer] ?? {};
    if (inner === undefined) merged[outer] = flags[name];
    else if (isMapping(old)) merged[outer] = { ...old, [inner]: flags[name] };
  }
  return merged;
}

function givenFlags(flags: ConfigFlags): readonly (keyof ConfigFlags)[] {
  return (Object.keys(FLAG_KEYS) as (keyof ConfigFlags)[]).filter((name) => flags[name] !== undefined);
}

function problemOf(issue: v.BaseIssue<unknown>, flags: ConfigFlags): ConfigProblem {
  const path = issue.path ?? [];
  const key = dotted(path);
  if (issue.type === 'never') {
    const known = keysBeside(path);
    const guess = nearest(String(path.at(-1)?.key), known);
    const advice = guess === undefined ? `known here: ${known.join(', ')}` : `did you mean "${guess}"?`;
    return { key, value: undefined, message: `unknown key; ${advice}` };
  }
  if (issue.input === undefined && path.length > 0) return { key, value: undefined, message: 'is missing' };
  const flag = givenFlags(flags).find((name) => FLAG_KEYS[name] === key);
  const setting = flag === undefined ? undefined : SETTINGS.find((one) => one.key === key)?.flag;
  return {
    key: setting ?? (key === '' ? 'configuration' : key),
    value: shown(issue.input),
    message: issue.message,
  };
}

const PLAIN_KEY = /^[-A-Za-z0-9_]+$/;

function dotted(path: readonly { readonly key: unknown }[]): string {
  return path.reduce((sum, { key }) => {
    if (typeof key === 'number') return `${sum}[${key}]`;
    const name = printable(String(key), 128);
    if (sum === '') return name;
    return PLAIN_KEY.test(name) ? `${sum}.${name}` : `${sum}["${name}"]`;
  }, '');
}

function keysBeside(path: readonly { readonly key: unknown }[]): readonly string[] {
  const [outer] = path;
  if (path.length === 1) return keysOf(fileSchema(''));
  if (outer?.key === 'static_drivers') return keysOf(STATIC_DRIVER);
  if (outer?.key === 'drivers') return keysOf(DRIVER_OPTIONS);
  return outer?.key === 'log' ? keysOf(LOG) : keysOf(BACK_OFF);
}

function configOf(file: File): Config {
  return {
    root: file.root,
    socket: file.socket,
    manifests: file.manifests,
    nodeName: file.node_name,
    staticDrivers: file.static_drivers.map((one) => ({
      socket: one.socket,
      parallelPublish: one.parallel_publish,
    })),
    drivers: new Map(
      Object.entries(file.drivers).map(([name, options]) => {
        return [
          name,
          {
            parallelPublish: options.parallel_publish,
            operationsMax: options.operations_max ?? undefined,
            forceFields: options.force_fields,
          },
        ];
      }),
    ),
    csiDeadlineMs: file.csi_deadline_ms,
    lateEffectMs: file.late_effect_ms,
    pathDeadlineMs: file.path_deadline_ms,
    operationsPerDriverMax: file.operations_per_driver_max,
    resyncMs: file.resync_ms,
    settleMs: file.settle_ms,
    vanishedHoldMs: file.vanished_hold_ms,
    statisticsIntervalMs: file.statistics_interval_ms,
    republishIntervalMs: file.republish_interval_ms,
    backOff: { firstMs: file.back_off.first_ms, maxMs: file.back_off.max_ms },
    log: { format: file.log.format, level: file.log.level },
    allowPrivateMountNamespace: file.allow_private_mount_namespace,
    immutableMountPoints: file.immutable_mount_points,
    seLinux: file.selinux,
    metricsListen: parseListenAddress(file.metrics_listen),
    hostPathDenied: file.host_path_denied,
    tokenSigningKey: file.token_signing_key === 'off' ? undefined : file.token_signing_key,
    tokenIssuer: file.token_issuer,
    kubeconfig: file.kubeconfig === 'off' ? undefined : file.kubeconfig,
    recordStore: file.record_store,
    watchdog: file.watchdog,
  };
}
