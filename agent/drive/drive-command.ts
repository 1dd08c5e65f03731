/** The command `mooring drive`. */
import { forbidCores } from '../../mount/broker/process-seal.ts';
import { EXIT_CODES } from '../config/exit-code.ts';
import type { Screen } from '../cli/show.ts';
import type { DriveFlags } from './read-options.ts';

/** What of commander is used here; main.ts has its one import. */
interface CommandLike {
  commandsGroup(heading: string): CommandLike;
  command(name: string): CommandLike;
  summary(text: string): CommandLike;
  description(text: string): CommandLike;
  argument(name: string, text: string): CommandLike;
  option(flags: string, text: string): CommandLike;
  option(flags: string, text: string, byDefault: string): CommandLike;
  addHelpText(position: 'after', text: string): CommandLike;
  action(run: (command: readonly string[], flags: DriveFlags) => Promise<void>): CommandLike;
}

export interface DriveLaunch {
  readonly screen: () => Screen;
  /** Starts a broker: the kind is appended. */
  readonly brokerCommand: () => readonly string[];
  readonly ended: (exitCode: number) => void;
}

const EXIT_MS_MAX = 2_000;
const BURST_MS_MAX = 500;

const NOTES = `
Examples:
  mooring drive --endpoint unix:///run/csi/csi.sock -- my-driver --endpoint unix:///run/csi/csi.sock
                                    starts the driver, kills it in the middle, judges everything
  mooring drive --endpoint unix:///run/csi/csi.sock --volume-handle vol-1 --directory /var/lib/kubelet
                                    a driver that runs already, and a volume it has
  mooring drive --endpoint … --faults --seed 7 -- my-driver …
                                    and Mooring itself through a proxy that loses answers
  mooring drive --endpoint … --only stage,publish,stats -o json -- my-driver …

Secrets file (mode 0600), any of these keys:
  create, controllerPublish, controllerExpand, stage, publish, expand: { KEY: VALUE, … }

Verdicts:
  pass, FAIL, skipped (not claimed, not asked for), blocked (builds on something that fails);
  "~" is a remark: a departure that most orchestrators live with (--strict: a failure).
  Exit code 0 only if nothing failed and nothing was blocked.`;

export function addDriveCommand(program: CommandLike, launch: DriveLaunch): void {
  program.commandsGroup('Check:');
  program
    .command('drive')
    .summary('take a CSI driver through its whole life, and judge it')
    .description(
      'For authors of CSI drivers: calls one driver as an orchestrator would, in a private mount namespace, ' +
        'and says for every duty of the specification whether it is kept. Needs root.',
    )
    .argument('[command...]', 'after --: starts the driver (it is killed and started again)')
    .option('--endpoint <socket>', 'unix:///…: the CSI socket of the driver')
    .option('--registration <path>', 'registration socket, or the directory it appears in')
    .option('--volume-handle <handle...>', 'a volume that is there already')
    .option('--create', 'make volumes with CreateVolume (what is done without --volume-handle)')
    .option('--size <quantity>', 'of volumes that are made', '64Mi')
    .option('--fs-type <type>', 'file system; default: the driver chooses')
    .option('--access-mode <mode>', 'such as SINGLE_NODE_WRITER; default: all that matter')
    .option('--attribute <key=value...>', 'volume_context of given handles')
    .option('--parameter <key=value...>', 'parameters of CreateVolume')
    .option('--secrets-file <file>', 'YAML or JSON, readable by its owner only')
    .option('--block', 'block volumes must work; the last of several given handles is overwritten')
    .option('--only <duty...>', 'these duties, by name')
    .option('--faults', 'also drive Mooring itself through a proxy that injects faults')
    .option('--seed <number>', 'of all chance; default: drawn and printed')
    .option('--deadline <seconds>', 'of one call', '60')
    .option('--directory <path>', 'where the scratch directory is made; default: the temporary directory')
    .option('--strict', 'remarks are failures')
    .option('-o, --output <format>', 'table or json', 'table')
    .addHelpText('after', NOTES)
    .action(async (command, flags) => {
      launch.ended(await runDriveCommand(command, flags, launch));
    });
}

/** Settles with the exit code. */
async function runDriveCommand(
  command: readonly string[],
  flags: DriveFlags,
  { screen: createScreen, brokerCommand }: DriveLaunch,
): Promise<number> {
  const screen = createScreen();
  for (const warning of forbidCores()) screen.complain(`mooring: ${warning}\n`);
  const { readOptions } = await import('./read-options.ts');
  const { readSecretsFile, removeScratch } = await import('./rig/machine.ts');
  const { cannotUnshare, runInside, scratchInside } = await import('./rig/namespace.ts');
  const directory = scratchInside();
  const guard = process.ppid;
  const secrets = flags.secretsFile === undefined ? undefined : await readSecretsFile(flags.secretsFile);
  const drawn = Math.floor(Math.random() * 2 ** 32);
  const reading = readOptions(flags, command, secrets, drawn);
  const problems = reading.ok ? [] : [...reading.problems];
  if (flags.output !== 'table' && flags.output !== 'json') problems.push('--output must be table or json');
  if (!reading.ok || problems.length > 0) {
    screen.complain(`mooring: drive cannot begin:\n${problems.map((one) => `  ${one}\n`).join('')}`);
    return EXIT_CODES.usage;
  }
  if (directory === undefined) {
    const obstacle = cannotUnshare();
    if (obstacle === undefined)
      return runInside(command.length > 0 ? 'private' : 'slave', reading.value.directory);
    screen.complain(`mooring: ${obstacle}\n`);
    return EXIT_CODES.failure;
  }
  const { showDrive } = await import('./show-drive.ts');
  const good = await showDrive({
    options: reading.value,
    directory,
    output: flags.output,
    screen,
    brokerCommand: brokerCommand(),
    interrupted: interruption(),
  });
  // Killed from outside, the guard cannot remove it any more.
  if (process.ppid !== guard) await removeScratch(directory);
  const code = good ? EXIT_CODES.ok : EXIT_CODES.failure;
  // What a hung file system holds must not hold the process.
  setTimeout(() => process.exit(code), EXIT_MS_MAX).unref();
  return code;
}

/** Aborted by the first signal; a second one, from somebody impatient, ends the process: the guard outside sweeps. */
function interruption(): AbortSignal {
  const controller = new AbortController();
  let firstMs = 0;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      const again = controller.signal.aborted;
      // The death of a guard with many threads comes as a burst of signals.
      if (again && Date.now() - firstMs > BURST_MS_MAX) process.exit(EXIT_CODES.failure);
      if (!again) firstMs = Date.now();
      controller.abort();
    });
  }
  return controller.signal;
}
