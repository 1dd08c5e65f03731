/** One driver through its whole life: duty after duty, each with volumes and directories of its own. */
import { join } from 'node:path';
import { createChance } from './chance.ts';
import { clientOf, readFacts, waitUntilReady } from './driver-questions.ts';
import { CLEAN_UP, DUTIES, REGISTRATION } from './duties.ts';
import { receivesMounts } from './duty/duty-identity.ts';
import type { Duty } from './duty/duty.ts';
import { FAULT_CLASSES, FAULT_TITLES, faultDutyName } from './fault-class.ts';
import { isGood, Notes, type Verdict } from './oracle/verdict.ts';
import type { DriveOptions } from './rig/drive-options.ts';
import { createDriverProcess, type DriverProcess } from './rig/driver-child.ts';
import type { DriverClient } from './rig/driver-client.ts';
import { lastWords } from './rig/last-words.ts';
import { Life } from './rig/life.ts';
import { CLOCK, forceUnmount, loopDevicesOf, makeDirectory, mountsBelow } from './rig/machine.ts';
import type { OnWait, Patience } from './rig/patience.ts';
import { announcedEndpoint, confirmRegistration, findRegistrationSocket } from './rig/registration.ts';
import type { DriverFacts, Rig } from './rig/rig.ts';
import { fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import { createGrpcRemote, type GrpcRemote } from '../../plugins/csi/wire/grpc.ts';

export interface DriveParts {
  readonly options: DriveOptions;
  /** Empty; everything that is staged or published is below it. */
  readonly directory: string;
  /** Starts a broker of the agent that is driven through the faults: the kind is appended. */
  readonly brokerCommand: readonly string[];
  readonly onBegin: (duty: string, title: string) => void;
  readonly onVerdict: (verdict: Verdict) => void;
  readonly onWait: OnWait;
  /** No further duty is begun; what was set up is taken down. */
  readonly interrupted: AbortSignal;
}

export interface DriveReport {
  readonly driver: DriverFacts;
  readonly verdicts: readonly Verdict[];
  readonly good: boolean;
}

/**
 * Assumes a mount namespace in which the driver's mounts are seen. Leaves nothing mounted below the directory, whatever
 * the driver leaves; files stay. A failure means that the driver could not be driven at all.
 */
export async function drive(parts: DriveParts): Promise<Result<DriveReport>> {
  const { options, directory } = parts;
  const remote = createGrpcRemote();
  const driver =
    options.command.length === 0 || options.endpoint === undefined
      ? undefined
      : createDriverProcess(options.command, options.endpoint);
  try {
    await driver?.start();
    return await driveStarted(parts, remote, driver);
  } finally {
    await driver?.stop();
    remote.close();
    await forceUnmount((await mountsBelow(directory)).map(({ target }) => target));
  }
}

async function driveStarted(
  parts: DriveParts,
  remote: GrpcRemote,
  driver: DriverProcess | undefined,
): Promise<Result<DriveReport>> {
  const { options } = parts;
  const run = createRun(parts);
  const patience: Patience = { driver, interrupted: parts.interrupted, onWait: parts.onWait };
  const registrar = await register(parts, remote, patience);
  if (!registrar.ok) return registrar;
  const { notes, client: registry, announced, startMs } = registrar.value;
  const endpoint = options.endpoint ?? announced?.endpoint;
  if (endpoint === undefined) return hopeless(notes.failures.join('; '), driver);
  const late = await waitUntilReady(remote, endpoint, patience);
  if (late !== undefined) return hopeless(late, driver);
  const client = clientOf(remote, endpoint, options.deadlineMs, parts.onWait);
  const facts = await readFacts(client);
  if (!facts.ok) return hopeless(facts.failure.message, driver);
  if (registry === undefined) notes.skip('no --registration was asked for');
  else
    await confirmRegistration(registry, notes, { announced: announced?.name ?? '', own: facts.value.name });
  const duty = { name: REGISTRATION, title: REGISTRATION_TITLE, source: 'plugin registration' };
  run.record(duty, notes, startMs);
  const chance = createChance(options.seed);
  const rig: Rig = {
    client,
    options,
    facts: facts.value,
    endpoint,
    directory: parts.directory,
    driver,
    // What is set up is taken down through the driver, so that an interruption waits for it.
    untilReady: () => waitUntilReady(remote, endpoint, { ...patience, interrupted: NEVER }),
    random: chance,
    backingFiles: new Set(),
    leftovers: [],
    runId: `${CLOCK.wallMs().toString(36)}${Math.floor(chance() * 2 ** 20).toString(36)}`,
  };
  await tryDuties(run, rig);
  if (options.faults) await driveFaults(parts, run, rig, remote);
  await run.cleanUp(rig);
  return ok({ driver: facts.value, verdicts: run.verdicts, good: isGood(run.verdicts) });
}

async function tryDuties(run: Run, rig: Rig): Promise<void> {
  const visible = rig.driver !== undefined || (await receivesMounts(rig.directory));
  let count = 0;
  for (const duty of DUTIES) {
    if (!run.isWanted(duty.name)) continue;
    count += 1;
    await run.one(rig, duty, join(rig.directory, String(count)), visible);
  }
}

interface Registrar {
  readonly notes: Notes;
  readonly startMs: number;
  /** Undefined when nobody asked for a registration. */
  readonly client: DriverClient | undefined;
  readonly announced: { readonly name: string; readonly endpoint: AbsolutePath } | undefined;
}

async function register(
  { options, onBegin }: DriveParts,
  remote: GrpcRemote,
  patience: Patience,
): Promise<Result<Registrar>> {
  const notes = new Notes();
  const startMs = CLOCK.nowMs();
  if (options.registration === undefined)
    return ok({ notes, startMs, client: undefined, announced: undefined });
  onBegin(REGISTRATION, REGISTRATION_TITLE);
  const seen = await findRegistrationSocket(options.registration, patience);
  if (seen.kind === 'missing') return hopeless(seen.because, patience.driver);
  const socket = seen.value;
  const client = clientOf(remote, socket, options.deadlineMs, patience.onWait);
  return ok({ notes, startMs, client, announced: await announcedEndpoint(client, socket, notes) });
}

const NEVER = new AbortController().signal;
const REGISTRATION_TITLE = 'registers as with a kubelet';

function hopeless(message: string, driver: DriverProcess | undefined): Result<never> {
  const text = driver === undefined ? message : `${message}; ${lastWords(driver.output())}`;
  return fail({ code: 'driver-unreachable', message: text, effect: 'none' });
}

interface Run {
  readonly verdicts: readonly Verdict[];
  isWanted(duty: string): boolean;
  record(duty: Pick<Duty, 'name' | 'title' | 'source'>, notes: Notes, startMs: number): void;
  one(rig: Rig, duty: Duty, directory: string, visible: boolean): Promise<void>;
  cleanUp(rig: Rig): Promise<void>;
}

function createRun({ options, onBegin, onVerdict, interrupted }: DriveParts): Run {
  const verdicts: Verdict[] = [];
  const isWanted = (duty: string): boolean => {
    return !interrupted.aborted && (options.only.length === 0 || options.only.includes(duty));
  };

  function record(duty: Pick<Duty, 'name' | 'title' | 'source'>, notes: Notes, startMs: number): void {
    if (options.only.length > 0 && !options.only.includes(duty.name) && notes.failures.length === 0) return;
    const { name, title, source } = duty;
    const durationMs = CLOCK.nowMs() - startMs;
    const verdict = { duty: name, title, source, ...notes.verdict(options.strict), durationMs };
    verdicts.push(verdict);
    onVerdict(verdict);
  }

  async function one(rig: Rig, duty: Duty, directory: string, visible: boolean): Promise<void> {
    onBegin(duty.name, duty.title);
    const startMs = CLOCK.nowMs();
    const notes = new Notes();
    if (duty.looksAtMounts && !visible) {
      notes.blocked("the driver's mounts are not seen here: see propagation");
      return record(duty, notes, startMs);
    }
    await makeDirectory(directory);
    const life = new Life(rig, directory);
    await duty.run(life, notes);
    await revive(rig, notes);
    await life.takeDown(duty.name);
    record(duty, notes, startMs);
  }

  async function cleanUp(rig: Rig): Promise<void> {
    if (!isWanted(CLEAN_UP)) return;
    const startMs = CLOCK.nowMs();
    onBegin(CLEAN_UP, CLEAN_UP_TITLE);
    const notes = new Notes();
    for (const one of rig.leftovers) notes.fail(one);
    for (const device of await loopDevicesOf(rig.backingFiles)) notes.fail(`${device} is left attached`);
    record({ name: CLEAN_UP, title: CLEAN_UP_TITLE, source: 'A-066' }, notes, startMs);
  }

  return { verdicts, isWanted, record, one, cleanUp };
}

const CLEAN_UP_TITLE = 'nothing is left behind';

/** A driver that died by itself is started again, and it is said. */
async function revive({ driver, untilReady }: Rig, notes: Notes): Promise<void> {
  if (driver === undefined || driver.pid() !== undefined) return;
  notes.fail(`the driver's process ended by itself; it printed: ${driver.output().trim().slice(-200)}`);
  await driver.start();
  await untilReady();
}

async function driveFaults(parts: DriveParts, run: Run, rig: Rig, remote: GrpcRemote): Promise<void> {
  const { driveAgent } = await import('./agent-faults.ts');
  for (const fault of FAULT_CLASSES) {
    const duty = { name: faultDutyName(fault), title: FAULT_TITLES[fault], source: 'A-030 A-032 A-033' };
    if (!run.isWanted(duty.name)) continue;
    parts.onBegin(duty.name, duty.title);
    const startMs = CLOCK.nowMs();
    const notes = new Notes();
    const directory = join(rig.directory, duty.name);
    await makeDirectory(directory);
    const life = new Life(rig, directory);
    const { brokerCommand, interrupted } = parts;
    await driveAgent({ life, notes, fault, remote: remote.call, brokerCommand, interrupted });
    await revive(rig, notes);
    await life.takeDown(duty.name);
    run.record(duty, notes, startMs);
  }
}
