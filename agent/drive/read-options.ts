/** The command line of `mooring drive` as options, with every problem at once. Pure, but for what it is given. */
import type { Result } from '../../mount/failure.ts';
import { type AbsolutePath, parseAbsolutePath } from '../../mount/host.ts';
import { VolumeCapability_AccessMode_Mode as Mode } from '../../plugins/csi/wire/generated/csi.ts';
import { VOLUME_HANDLE_BYTES_MAX } from '../../plugins/volume.ts';
import { parseManifest } from '../source/manifests/parse/manifest.ts';
import { DEFAULT_MANIFEST_LIMITS } from '../source/manifests/parse/manifest-limits.ts';
import { nearest } from '../../mount/text/nearest.ts';
import { isMapping, mappingIn } from '../../kubernetes/fields/plain-value.ts';
import { parseQuantityBytes } from '../../kubernetes/fields/quantity.ts';
import {
  type DriveOptions,
  type DriveSecrets,
  NO_DRIVE_SECRETS,
  type StringMap,
} from './rig/drive-options.ts';
import { DUTY_NAMES } from './duties.ts';

/** As commander hands them over; options that may be given again are lists. */
export interface DriveFlags {
  readonly endpoint?: string;
  readonly registration?: string;
  readonly volumeHandle?: readonly string[];
  readonly create?: true;
  readonly size: string;
  readonly fsType?: string;
  readonly accessMode?: string;
  readonly attribute?: readonly string[];
  readonly parameter?: readonly string[];
  readonly secretsFile?: string;
  readonly block?: true;
  readonly only?: readonly string[];
  readonly faults?: true;
  readonly seed?: string;
  readonly deadline: string;
  readonly directory?: string;
  readonly strict?: true;
  readonly output: 'table' | 'json';
}

export type OptionsReading =
  | { readonly ok: true; readonly value: DriveOptions }
  | { readonly ok: false; readonly problems: readonly string[] };

const SOCKET_PATH_BYTES_MAX = 107;
const SECONDS_MAX = 3_600;
const SECONDS_MS = 1_000;
const SEED_MAX = 2 ** 32 - 1;
const ACCESS_MODES: Readonly<Record<string, Mode>> = Object.fromEntries(
  Object.entries(Mode).filter(([, value]) => value > 0),
);

/** `secretsText`: the file of `--secrets-file`, read by who may. `seed`: when none is given. */
export function readOptions(
  flags: DriveFlags,
  command: readonly string[],
  secretsText: Result<string> | undefined,
  seed: number,
): OptionsReading {
  const problems: string[] = [];
  const endpoint = socketOf('--endpoint', flags.endpoint, problems);
  const registration = pathOf('--registration', flags.registration, problems);
  if (endpoint === undefined && registration === undefined && problems.length === 0)
    problems.push('--endpoint unix:///…/csi.sock (or --registration) says where the driver is');
  if (command.length > 0 && flags.endpoint === undefined)
    problems.push('a command needs --endpoint: where the driver that it starts will listen');
  const handles = flags.volumeHandle ?? [];
  if (flags.create === true && handles.length > 0)
    problems.push('--create and --volume-handle exclude each other');
  for (const handle of handles) {
    if (handle === '' || Buffer.byteLength(handle) > VOLUME_HANDLE_BYTES_MAX)
      problems.push(
        `--volume-handle "${handle.slice(0, 64)}" must have 1 to ${VOLUME_HANDLE_BYTES_MAX} bytes`,
      );
  }
  const sizeBytes = parseQuantityBytes(flags.size);
  if (sizeBytes === undefined || sizeBytes === 0)
    problems.push(`--size ${flags.size} must be a size above 0 such as 64Mi`);
  const value: DriveOptions = {
    endpoint,
    registration,
    command,
    volumeHandles: handles,
    sizeBytes: BigInt(sizeBytes ?? 0),
    fsType: flags.fsType ?? '',
    accessMode: accessModeOf(flags.accessMode, problems),
    attributes: mapOf('--attribute', flags.attribute ?? [], problems),
    parameters: mapOf('--parameter', flags.parameter ?? [], problems),
    secrets: secretsOf(secretsText, problems),
    block: flags.block === true,
    only: onlyOf(flags.only ?? [], problems),
    faults: flags.faults === true,
    seed: wholeNumber('--seed', flags.seed ?? String(seed), 0, SEED_MAX, problems),
    deadlineMs: wholeNumber('--deadline', flags.deadline, 1, SECONDS_MAX, problems) * SECONDS_MS,
    directory: pathOf('--directory', flags.directory, problems),
    strict: flags.strict === true,
  };
  return problems.length === 0 ? { ok: true, value } : { ok: false, problems };
}

function socketOf(flag: string, text: string | undefined, problems: string[]): AbsolutePath | undefined {
  if (text === undefined) return undefined;
  if (/^[a-z]+:\/\//.test(text) && !text.startsWith('unix://')) {
    problems.push(`${flag} ${text}: CSI speaks over Unix sockets, unix:///…`);
    return undefined;
  }
  const path = pathOf(flag, text.replace(/^unix:\/\//, ''), problems);
  if (path !== undefined && Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAX)
    problems.push(
      `${flag} ${path.slice(0, 32)}… must have at most ${SOCKET_PATH_BYTES_MAX} bytes, the kernel's limit for a socket`,
    );
  return path;
}

function pathOf(flag: string, text: string | undefined, problems: string[]): AbsolutePath | undefined {
  if (text === undefined) return undefined;
  const path = parseAbsolutePath(text);
  if (path === undefined) problems.push(`${flag} ${text} must be a plain absolute path`);
  return path;
}

function accessModeOf(text: string | undefined, problems: string[]): Mode | undefined {
  if (text === undefined) return undefined;
  const mode = ACCESS_MODES[text.toUpperCase().replaceAll('-', '_')];
  if (mode === undefined)
    problems.push(`--access-mode ${text} is none of ${Object.keys(ACCESS_MODES).join(', ')}`);
  return mode;
}

function mapOf(flag: string, pairs: readonly string[], problems: string[]): StringMap {
  const entries = pairs.map((pair): [string, string] => {
    const cut = pair.indexOf('=');
    if (cut < 1) problems.push(`${flag} ${pair} must be KEY=VALUE`);
    return [pair.slice(0, cut), pair.slice(cut + 1)];
  });
  return Object.fromEntries(entries);
}

function onlyOf(names: readonly string[], problems: string[]): readonly string[] {
  const wanted = names.flatMap((one) => one.split(',')).filter((one) => one !== '');
  for (const name of wanted.filter((one) => !DUTY_NAMES.includes(one))) {
    const meant = nearest(name, DUTY_NAMES);
    const right = meant === undefined ? `there are ${DUTY_NAMES.join(', ')}` : `did you mean ${meant}?`;
    problems.push(`--only ${name}: no such duty; ${right}`);
  }
  return wanted;
}

function wholeNumber(flag: string, text: string, min: number, max: number, problems: string[]): number {
  const number = /^[0-9]{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!(number >= min && number <= max))
    problems.push(`${flag} ${text} must be a whole number from ${min} to ${max}`);
  return number;
}

/** A mapping of calls to mappings of strings, YAML or JSON; nothing of its values is ever in a message. */
function secretsOf(text: Result<string> | undefined, problems: string[]): DriveSecrets {
  if (text === undefined) return NO_DRIVE_SECRETS;
  const documents = text.ok ? parseManifest(text.value, DEFAULT_MANIFEST_LIMITS) : text;
  if (!documents.ok) {
    problems.push(text.ok ? `secrets file: ${documents.failure.message}` : documents.failure.message);
    return NO_DRIVE_SECRETS;
  }
  const [document, second] = documents.value;
  if (document === undefined || second !== undefined || document.problems.length > 0) {
    problems.push('secrets file: one document with one mapping is wanted');
    return NO_DRIVE_SECRETS;
  }
  const calls = Object.keys(NO_DRIVE_SECRETS);
  const shape = mappingIn(document.value);
  const wrong = Object.keys(shape).filter((key) => !calls.includes(key));
  if (!isMapping(document.value) || wrong.length > 0)
    problems.push(`secrets file: a mapping with the keys ${calls.join(', ')} is wanted`);
  const secrets = Object.fromEntries(
    calls.map((call) => {
      const given = Object.hasOwn(shape, call) ? shape[call] : {};
      const isText = isMapping(given) && Object.values(given).every((one) => typeof one === 'string');
      if (!isText)
        problems.push(`secrets file: ${call} must be a mapping of keys to strings (quote numbers)`);
      return [call, isText ? given : {}];
    }),
  );
  return secrets as unknown as DriveSecrets;
}
