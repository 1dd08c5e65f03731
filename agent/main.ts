/** The `mooring` command: command line, process, signals, exit codes. The importer of commander. */
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Command, Option } from 'commander';
import { withoutDebugger } from '../mount/process/node-start.ts';
import { endWithoutReader, failWithoutStandardOutput } from '../mount/process/standard-output.ts';
import { keepYoungGenerationSmall } from '../mount/process/young-generation.ts';
import { forbidCores, openDebugger, sealProcess } from '../mount/broker/process-seal.ts';
import type { ConfigFlags, ConfigReading } from './config/config.ts';
import { EXIT_CODES } from './config/exit-code.ts';
import {
  AGENT_NOTES,
  EXPLAIN_NOTES,
  meaningOf,
  PLAN_NOTES,
  PROGRAM_NOTES,
  STATUS_NOTES,
} from './cli/help.ts';
import { createScreen } from './cli/process-screen.ts';
import { addManifestCommands } from './cli/manifest-subcommands.ts';
import type { PlanCommandOptions } from './cli/plan-command.ts';
import { addPodCommands } from './cli/pod-subcommands.ts';
import { addQuarantineCommand } from './cli/quarantine-subcommands.ts';
import { DEFAULT_CONFIG_FILE, DEFAULT_SOCKET } from './config/setting.ts';
import type { OutputFormat } from './cli/show.ts';
import { BUILD } from './config/version.ts';

/** The whole exit takes less than 5 s (INV-39), whatever hangs. */
const EXIT_MS_MAX = 4_500;
/** A start that is stopped may still come to its end, so that the stop is an orderly one. */
const START_END_MS = 1_000;

type Commander = typeof import('commander');

/** Settles with the exit code. */
async function runCommandLine(): Promise<number> {
  failWithoutStandardOutput('mooring');
  const commander = await import('commander');
  const exit = { code: EXIT_CODES.ok as number };
  const program = new commander.Command('mooring')
    .description('The volume manager of a Linux node: mounts what pods want, and nothing else.')
    .version(VERSION_LINE, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show this, or the help of a command')
    .helpCommand('help [command]', 'show the help of a command')
    .showHelpAfterError('(--help shows how it is used)')
    .configureOutput({ outputError: (text) => createScreen().complain(text) })
    .exitOverride()
    .addHelpText('after', PROGRAM_NOTES);
  const ended = (code: number): void => {
    exit.code = code;
  };
  const shown = (wasShown: boolean): void => ended(wasShown ? EXIT_CODES.ok : EXIT_CODES.failure);
  addLookCommands(program, commander, shown);
  const parts = { ...createOptions(commander), screen: createScreen, ended: shown };
  addPodCommands(program, { ...parts, exited: ended });
  addQuarantineCommand(program, parts);
  addManifestCommands(program, parts);
  addAgentCommand(program, commander, ended);
  const { addDriveCommand } = await import('./drive/drive-command.ts');
  addDriveCommand(program, { screen: createScreen, brokerCommand, ended });
  try {
    await program.parseAsync();
  } catch (error) {
    // Commander has said what is wrong; help and version end this way too, with 0.
    if (error instanceof commander.CommanderError)
      return error.exitCode === 0 ? EXIT_CODES.ok : EXIT_CODES.usage;
    // Node would print the line of the bundle it happened on: a megabyte.
    createScreen().complain(`mooring: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(EXIT_CODES.failure);
  }
  return exit.code;
}

function createOptions({ Option }: Commander) {
  return {
    socket: (): Option =>
      new Option('-s, --socket <path>', 'socket of the agent').env('MOORING_SOCKET').default(DEFAULT_SOCKET),
    format: (...choices: readonly [string, ...string[]]): Option =>
      new Option('-o, --output <format>', 'how to show it').choices(choices).default(choices[0]),
  };
}

function addLookCommands(program: Command, commander: Commander, ended: (shown: boolean) => void): void {
  const { socket, format } = createOptions(commander);
  program.commandsGroup('Look:');
  program
    .command('status')
    .summary('what is mounted, what is not, and why')
    .description('Shows pods and their volumes, drivers, and what is wrong. The agent must be running.')
    .addOption(format('table', 'wide', 'json'))
    .option('-w, --watch', 'show it again after every change, until interrupted')
    .addOption(socket())
    .addHelpText('after', STATUS_NOTES)
    .action(
      async ({ output, watch, socket: path }: { output: OutputFormat; watch?: true; socket: string }) => {
        const { showStatus, watchStatus } = await import('./cli/show.ts');
        const screen = createScreen();
        if (watch !== true) return ended(await showStatus(path, output, screen));
        endWithoutReader();
        await watchStatus(path, output, screen);
      },
    );
  program
    .command('explain')
    .summary('why a volume of a pod is not there')
    .description(
      'Says for a pod or a volume what it waits for, since when, who blocks, and when it is tried again.',
    )
    .argument('<subject>', 'pod: name, namespace/name or uid; volume: PersistentVolume, handle or id')
    .addOption(format('text', 'json'))
    .addOption(socket())
    .addHelpText('after', EXPLAIN_NOTES)
    .action(
      async (subject: string, { output, socket: path }: { output: 'text' | 'json'; socket: string }) => {
        const { showExplanation } = await import('./cli/show.ts');
        ended(await showExplanation(path, subject, output, createScreen()));
      },
    );
  program
    .command('version')
    .summary('the version of this program')
    .description('Prints the version of this program.')
    .addOption(format('text', 'json'))
    .action(async ({ output }: { output: 'text' | 'json' }) => {
      const { showVersion } = await import('./cli/show.ts');
      showVersion(output, process.versions.node, createScreen());
    });
}

function addAgentCommand(program: Command, commander: Commander, ended: (code: number) => void): void {
  program.commandsGroup('Serve:');
  const served = (name: string, summary: string, description: string): Command =>
    program
      .command(name)
      .summary(summary)
      .description(description)
      .optionsGroup('Options (they win over the file):')
      .option('-c, --config <file>', `YAML; default: ${DEFAULT_CONFIG_FILE} if it is there`)
      .option('--root <path>', meaningOf('root'))
      .option('--socket <path>', meaningOf('socket'))
      .option('--manifests <path>', meaningOf('manifests'))
      .option('--node-name <name>', meaningOf('node_name'))
      .option('--kubeconfig <file>', meaningOf('kubeconfig'))
      .option('--log-format <format>', meaningOf('log.format'))
      .option('--log-level <level>', meaningOf('log.level'))
      .option('--allow-private-mount-namespace', meaningOf('allow_private_mount_namespace'))
      .option('--immutable-mount-points', meaningOf('immutable_mount_points'))
      .option('--adopt', 'take over what a kubelet left below the root; refused where none has worked');
  served(
    'agent',
    'keep the volumes of this node as they are wanted',
    'Runs until it is told to stop. Stopping it unmounts nothing.',
  )
    .addHelpText('after', AGENT_NOTES)
    .action(async ({ config, ...flags }: ServeFlags) => {
      ended(await runAgentCommand(config, flags, flags['adopt'] === true));
    });
  served(
    'plan',
    'what an agent would do if it started now',
    'Looks at disk, mounts, drivers and sources as an agent does that starts, says what would become of ' +
      'every volume, and changes nothing.',
  )
    .addOption(createOptions(commander).format('table', 'json'))
    .option('-t, --timeout <time>', 'how long drivers and servers are waited for', '10s')
    .addHelpText('after', PLAN_NOTES)
    .action(async ({ config, output, timeout, ...flags }: ServeFlags & PlanCommandOptions) => {
      ended(await runPlanCommand(config, flags, { output, timeout }));
    });
}

type ServeFlags = ConfigFlags & Readonly<Partial<Record<'config', string> & Record<'adopt', true>>>;

async function readConfiguration(file: string | undefined, flags: ConfigFlags): Promise<ConfigReading> {
  const { readConfig } = await import('./config/config-file.ts');
  const { readConfigText } = await import('./process/process-facts.ts');
  return readConfig({ name: file ?? DEFAULT_CONFIG_FILE, text: readConfigText(file) }, flags, hostname());
}

const VERSION_LINE = `mooring ${BUILD.version} (commit ${BUILD.commit}, Node.js ${process.versions.node})`;

/** Settles with the exit code when the agent did not start or has stopped. */
async function runAgentCommand(
  configFile: string | undefined,
  flags: ConfigFlags,
  takesOver: boolean,
): Promise<number> {
  // Nothing the agent makes is open to others unless it says so; the brokers set modes exactly.
  process.umask(0o077);
  const open = openDebugger();
  if (open !== undefined) {
    createScreen().complain(`mooring: ${open}\n`);
    return EXIT_CODES.configuration;
  }
  const warnings = forbidCores();
  const reading = await readConfiguration(configFile, flags);
  const { configurationComplaint } = await import('./config/config-complaint.ts');
  if (!reading.ok) {
    createScreen().complain(configurationComplaint(reading.problems));
    return EXIT_CODES.configuration;
  }
  const { createProcessLog, makeStateDirectory, mountNamespace, nextStopSignal, watchdogMs } = await import(
    './process/process-facts.ts'
  );
  const log = await createProcessLog(reading.value.log);
  // Left fatal on purpose: the next start rebuilds the state from records and kernel.
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      const text = error instanceof Error ? error.stack : String(error);
      log.error('agent dies', { because: event, error: text });
      process.exit(EXIT_CODES.failure);
    });
  }
  const { runAgent } = await import('./process/run-agent.ts');
  const stopAsked = nextStopSignal();
  const starting = runAgent({
    config: reading.value,
    warnings: [...warnings, ...reading.warnings],
    log,
    brokerCommand: brokerCommand(),
    watchdogMs: watchdogMs(),
    mountNamespace,
    makeStateDirectory,
    takesOver,
    loadParse: loadManifestParser,
    runtime: process.versions.node,
  });
  const outcome = await Promise.race([starting, stopAsked.then(() => pause(START_END_MS, undefined))]);
  if (outcome === undefined) {
    // Crash-only: what a start has begun, the next one puts right.
    log.warn('agent stopped while it started');
    process.exit(EXIT_CODES.ok);
  }
  if (outcome.kind === 'refused') {
    const { code, message, blocker } = outcome.failure;
    log.error('agent not started', { code, message, blocker });
    process.exit(outcome.exitCode);
  }
  const end = await Promise.race([stopAsked, outcome.agent.inTheWay]);
  if (typeof end === 'string') log.info('signal', { name: end });
  else log.error('agent gives way', { code: end.code, message: end.message, blocker: end.blocker });
  // A helper that hangs in the kernel, or a pool thread behind it, must not keep the process (MF-5).
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), EXIT_MS_MAX);
  await outcome.agent.stop();
  log.info('agent stopped');
  process.exit(typeof end === 'string' ? EXIT_CODES.ok : EXIT_CODES.configuration);
}

/** Settles with the exit code. */
async function runPlanCommand(
  configFile: string | undefined,
  flags: ServeFlags,
  options: PlanCommandOptions,
): Promise<number> {
  const reading = await readConfiguration(configFile, flags);
  const { planAndShow } = await import('./cli/plan-command.ts');
  return planAndShow(reading, options, createScreen(), async (config, patienceMs) => {
    const { mountNamespace } = await import('./process/process-facts.ts');
    const { runPlan } = await import('./process/run-plan.ts');
    return runPlan({
      ...{ config, patienceMs, takesOver: flags['adopt'] === true, mountNamespace },
      ...{ brokerCommand: brokerCommand(), loadParse: loadManifestParser },
    });
  });
}

async function loadManifestParser() {
  return (await import('./source/manifests/parse/manifest.ts')).parseManifest;
}

/** This very program again. */
function brokerCommand(): readonly string[] {
  return [process.execPath, ...withoutDebugger(process.execArgv), fileURLToPath(import.meta.url), 'broker'];
}

sealProcess();
keepYoungGenerationSmall();
if (process.argv[2] === 'broker' && process.send === undefined) {
  createScreen().complain('mooring: a broker is started by the agent alone; see "mooring --help"\n');
  process.exitCode = EXIT_CODES.usage;
  // A broker is started for every few mounts and must be small: it loads nothing of what follows.
} else if (process.argv[2] === 'broker') {
  const { runOwnBroker } = await import('./process/run-broker.ts');
  await runOwnBroker();
} else {
  process.exitCode = await runCommandLine();
}
