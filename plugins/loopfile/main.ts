/**
 * mooring-loopfile: a CSI driver for local volumes. Each volume is a sparse file in a pool directory, shown by a loop
 * device, with ext4, xfs or btrfs on it or as a raw block device.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { parseArgs } from 'node:util';
import { parseAbsolutePath } from '../../mount/host.ts';
import { forbidCores, openDebugger, sealProcess } from '../../mount/broker/process-seal.ts';
import { failWithoutStandardOutput } from '../../mount/process/standard-output.ts';
import { startDriver } from './driver.ts';
import { reportOnStderr as report } from './events.ts';
import { FS_TYPES, type FsType } from './device/file-system.ts';
import { openPool } from './pool/pool.ts';
import { status, statusOf } from './device/status.ts';
import {
  createVolumeCommand,
  deleteVolumeCommand,
  growVolumeCommand,
  listVolumesCommand,
} from './volume-command.ts';

const USAGE = `usage: mooring-loopfile --pool DIR --endpoint unix:///PATH.sock [option ...]
  --pool DIR            where the volumes are; made when missing
  --endpoint URL        the CSI socket
  --registry DIR        register with the node agent that watches this directory
  --node-id ID          default: the host name
  --name NAME           the driver's name; default: loopfile.mooring.dev
  --attach              offer ControllerPublishVolume and ControllerUnpublishVolume
  --capacity-bytes N    what may be promised in total; default: what the pool's file system has
  --default-fs FS       ext4, xfs or btrfs; default: ext4

       mooring-loopfile create --pool DIR --name NAME --size 64Mi [--fs ext4] [--yaml] [--driver NAME]
       mooring-loopfile list   --pool DIR
       mooring-loopfile grow   --pool DIR --name NAME --size 128Mi
       mooring-loopfile delete --pool DIR --name NAME
`;

const DRIVER_NAME = 'loopfile.mooring.dev';
/** CSI wants at most 63 characters, also for the topology key that is made of it, and a letter at both ends. */
const DRIVER_NAME_SHAPE = {
  rule: /^[a-zA-Z]([-a-zA-Z0-9.]{0,51}[a-zA-Z])?$/,
  right: 'letters, digits, "-" and ".", at most 53, beginning and ending with a letter',
};
/** A topology value (CSI, Topology): at most 63 characters. */
const NODE_ID_SHAPE = {
  rule: /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/,
  right: 'letters, digits, "-", "_" and ".", at most 63, beginning and ending with a letter or digit',
};

function readFlags() {
  return parseArgs({
    allowPositionals: true,
    options: {
      pool: { type: 'string' },
      endpoint: { type: 'string' },
      registry: { type: 'string' },
      'node-id': { type: 'string' },
      name: { type: 'string' },
      attach: { type: 'boolean', default: false },
      'capacity-bytes': { type: 'string' },
      'default-fs': { type: 'string', default: 'ext4' },
      size: { type: 'string' },
      fs: { type: 'string', default: 'ext4' },
      driver: { type: 'string', default: DRIVER_NAME },
      yaml: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
}

type Flags = ReturnType<typeof readFlags>['values'];

async function main(): Promise<void> {
  sealProcess();
  failWithoutStandardOutput('mooring-loopfile');
  const { values: flags, positionals } = readFlags();
  if (flags.help) {
    process.stdout.write(USAGE);
    return;
  }
  const [command, ...extra] = positionals;
  if (extra.length > 0) throw wrong(`unexpected ${extra[0]}`);
  if (command === undefined) await serve(flags);
  else process.stdout.write(await runCommand(command, flags));
}

const COMMANDS: readonly string[] = ['create', 'list', 'grow', 'delete'];

async function runCommand(command: string, flags: Flags): Promise<string> {
  if (!COMMANDS.includes(command))
    throw wrong(`unknown command ${command}; there are ${COMMANDS.join(', ')}`);
  const path = readPath('pool', flags.pool);
  // Who asks for what is there would see an empty pool where he mistyped its path.
  if (command !== 'create' && !existsSync(path))
    throw status('NOT_FOUND', `--pool ${path}: there is no such directory`);
  if (command === 'list') return listVolumesCommand(await openPool(path, undefined));
  const name = readText('name', flags.name);
  if (command === 'delete') return deleteVolumeCommand(await openPool(path, undefined), name);
  const size = readText('size', flags.size);
  if (command === 'grow') return growVolumeCommand(await openPool(path, undefined), name, size);
  const driver = readShape('driver', flags.driver, DRIVER_NAME_SHAPE);
  const options = { driver, name, size, fsType: readFs('fs', flags.fs), yaml: flags.yaml };
  return createVolumeCommand(await openPool(path, undefined), options);
}

async function serve(flags: Flags): Promise<void> {
  const open = openDebugger();
  if (open !== undefined) throw status('FAILED_PRECONDITION', open);
  for (const warning of forbidCores()) report('warning', { warning });
  const options = {
    endpoint: readPath('endpoint', flags.endpoint?.replace(/^unix:\/\//, '')),
    registry: flags.registry === undefined ? undefined : readPath('registry', flags.registry),
    nodeId: readShape('node-id', flags['node-id'] ?? hostname(), NODE_ID_SHAPE),
    name: readShape('name', flags.name ?? DRIVER_NAME, DRIVER_NAME_SHAPE),
    attach: flags.attach,
    defaultFs: readFs('default-fs', flags['default-fs']),
    bootId: (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim(),
    report,
  };
  const pool = await openPool(readPath('pool', flags.pool), readCapacity(flags['capacity-bytes']));
  const driver = await startDriver({ ...options, pool });
  report('started', {
    driver: options.name,
    node: options.nodeId,
    pool: pool.directory,
    endpoint: options.endpoint,
  });

  let stopping = false;
  const stop = async (signal: string): Promise<void> => {
    if (stopping) return;
    stopping = true;
    await driver.close();
    report('stopped', { signal });
    process.exit(0);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal));
}

function wrong(message: string): Error {
  return status('INVALID_ARGUMENT', `${message}\n${USAGE}`);
}

function refused(flag: string, text: string, right: string): Error {
  return wrong(`--${flag} ${JSON.stringify(text)}: expected ${right}`);
}

function readText(flag: string, text: string | undefined): string {
  if (text === undefined || text === '') throw wrong(`--${flag} is missing`);
  return text;
}

const RIGHT_PATH =
  'a path from / on, without "." or "..", double or trailing slash, such as /var/lib/mooring-loopfile';

function readPath(flag: string, text: string | undefined): string {
  const path = parseAbsolutePath(readText(flag, text));
  if (path === undefined) throw refused(flag, text ?? '', RIGHT_PATH);
  return path;
}

interface Shape {
  readonly rule: RegExp;
  /** After "expected". */
  readonly right: string;
}

function readShape(flag: string, text: string, { rule, right }: Shape): string {
  if (!rule.test(text)) throw refused(flag, text, right);
  return text;
}

function readFs(flag: string, text: string): FsType {
  const fsType = FS_TYPES.find((one) => one === text);
  if (fsType === undefined) throw refused(flag, text, `one of ${FS_TYPES.join(', ')}`);
  return fsType;
}

function readCapacity(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const bytes = Number(text);
  if (!/^[0-9]+$/.test(text) || !Number.isSafeInteger(bytes))
    throw refused('capacity-bytes', text, 'a number of bytes');
  return bytes;
}

try {
  await main();
} catch (error) {
  if (!(error instanceof Error)) throw error;
  const usage = 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');
  const message = usage ? `${error.message}\n${USAGE}` : statusOf(error).message;
  process.stderr.write(`mooring-loopfile: ${message}\n`);
  process.exitCode = 1;
}
