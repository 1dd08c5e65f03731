/** The agent and the driver as processes, with everything they have below one scratch directory. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitForStatus, untilHealthy, type Waiting } from './agent-status.ts';
import { AGENT_BUNDLE, DRIVER_BUNDLE } from './bundles.ts';
import { type ChildProcess, runCommand, startProcess } from './child-process.ts';
import { detachLoopDevices, loopDevicesBelow, mountsBelow, readOrNothing, unmountAll } from './machine.ts';

export const DRIVER = 'loopfile.mooring.dev';

/** unix(7), less the NUL. */
const SOCKET_PATH_BYTES_MAX = 107;

export interface Places {
  readonly scratch: string;
  readonly root: string;
  readonly pods: string;
  readonly records: string;
  /** Where volumes of the driver are staged. */
  readonly staging: string;
  readonly manifests: string;
  readonly socket: string;
  readonly driverSocket: string;
  readonly registry: string;
  readonly pool: string;
  readonly hostDirectory: string;
  readonly agentLog: string;
  readonly driverLog: string;
}

export function placesBelow(scratch: string): Places {
  const root = join(scratch, 'root');
  const places: Places = {
    scratch,
    root,
    pods: join(root, 'pods'),
    records: join(root, 'mooring/records'),
    staging: join(root, 'plugins/kubernetes.io/csi', DRIVER),
    manifests: join(scratch, 'manifests'),
    socket: join(scratch, 'agent.sock'),
    driverSocket: join(root, 'plugins', DRIVER, 'csi.sock'),
    registry: join(root, 'plugins_registry'),
    pool: join(scratch, 'pool'),
    hostDirectory: join(scratch, 'site'),
    agentLog: join(scratch, 'agent.log'),
    driverLog: join(scratch, 'driver.log'),
  };
  const longest = join(places.registry, `${DRIVER}-reg.sock`);
  if (Buffer.byteLength(longest) > SOCKET_PATH_BYTES_MAX) {
    throw new Error(`${scratch} is too long for unix sockets below it; set TMPDIR to something shorter`);
  }
  return places;
}

export interface NodeUnderDemo {
  readonly places: Places;
  /** Settles when it is healthy. */
  startAgent(): Promise<ChildProcess>;
  /** Settles when the agent has registered it. */
  startDriver(): Promise<ChildProcess>;
  /** Runs a command of one of the two programs; rejects with its words when it fails. */
  mooring(...argv: readonly string[]): Promise<string>;
  loopfile(...argv: readonly string[]): Promise<string>;
  /** Puts a manifest into the directory by rename, as editors and configuration tools do. */
  putManifest(name: string, text: string): void;
  removeManifest(name: string): void;
  until(
    what: string,
    holds: Parameters<typeof waitForStatus>[1],
    onStatus?: Waiting['onStatus'],
  ): ReturnType<typeof waitForStatus>;
  /** Ends what runs, unmounts and detaches what is left; says what that was. */
  cleanUp(): Promise<readonly string[]>;
  /** The last lines of both logs. */
  lastWords(): string;
}

const DEADLINE_MS = 300_000;
const LAST_LINES = 12;

export function createNodeUnderDemo(scratch: string, signal: AbortSignal): NodeUnderDemo {
  const places = placesBelow(scratch);
  const started: ChildProcess[] = [];
  for (const directory of [places.manifests, join(places.driverSocket, '..'), places.registry]) {
    mkdirSync(directory, { recursive: true, mode: 0o750 });
  }
  const configFile = join(scratch, 'config.yaml');
  writeFileSync(
    configFile,
    `root: ${places.root}\nsocket: ${places.socket}\nmanifests: ${places.manifests}\n`,
  );

  function start(name: string, argv: readonly string[], log: string): ChildProcess {
    const child = startProcess({ name, argv, log });
    started.push(child);
    return child;
  }

  async function command(bundle: string, argv: readonly string[]): Promise<string> {
    const { code, output } = await runCommand([bundle, ...argv]);
    signal.throwIfAborted();
    if (code !== 0) throw new Error(`${argv.join(' ')} ended with ${code}: ${output.trim()}`);
    return output;
  }

  const until: NodeUnderDemo['until'] = (what, holds, onStatus) =>
    waitForStatus(places.socket, holds, {
      what,
      deadlineMs: DEADLINE_MS,
      signal,
      ...(onStatus && { onStatus }),
    });

  return {
    places,
    async startAgent() {
      const argv = [
        AGENT_BUNDLE,
        'agent',
        '--config',
        configFile,
        '--allow-private-mount-namespace',
        '--log-format',
        'json',
      ];
      const agent = start('agent', argv, places.agentLog);
      await untilHealthy(places.socket, agent, signal);
      return agent;
    },
    async startDriver() {
      const { pool, driverSocket, registry } = places;
      const flags = ['--pool', pool, '--endpoint', `unix://${driverSocket}`, '--registry', registry];
      const driver = start('driver', [DRIVER_BUNDLE, ...flags], places.driverLog);
      await Promise.race([
        until(`the registration of ${DRIVER}`, ({ drivers }) => drivers.some(({ name }) => name === DRIVER)),
        driver.ended.then((ending) => {
          throw new Error(`the driver ended at once: ${JSON.stringify(ending)}`);
        }),
      ]);
      return driver;
    },
    mooring: (...argv) => command(AGENT_BUNDLE, argv),
    loopfile: (...argv) => command(DRIVER_BUNDLE, argv),
    putManifest(name, text) {
      const hidden = join(places.manifests, `.${name}.new`);
      writeFileSync(hidden, text, { mode: 0o600 });
      renameSync(hidden, join(places.manifests, name));
    },
    removeManifest: (name) => rmSync(join(places.manifests, name)),
    until,
    async cleanUp() {
      const left: string[] = [];
      for (const child of started.reverse()) {
        if (child.running()) left.push(`the ${child.name}'s process`);
        await child.end('SIGTERM');
      }
      const mounts = mountsBelow(scratch);
      if (mounts.length > 0) left.push(mounts.length === 1 ? 'one mount' : `${mounts.length} mounts`);
      await unmountAll([...mounts].reverse());
      const devices = loopDevicesBelow(scratch);
      left.push(...devices);
      await detachLoopDevices(scratch, devices);
      return left;
    },
    lastWords() {
      return [places.agentLog, places.driverLog]
        .flatMap((file) => {
          const lines = (readOrNothing(file) ?? '').trimEnd().split('\n').slice(-LAST_LINES);
          return [`${file.slice(scratch.length + 1)}:`, ...lines.map((line) => `  ${line}`)];
        })
        .join('\n');
    },
  };
}
