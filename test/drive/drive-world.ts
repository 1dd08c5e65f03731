/** Runs `drive` in this process, in the private namespace of the test, on a driver of the test. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { drive, type DriveReport } from '../../agent/drive/drive.ts';
import { type DriveOptions, NO_DRIVE_SECRETS } from '../../agent/drive/rig/drive-options.ts';
import { removeScratch } from '../../agent/drive/rig/machine.ts';
import type { Verdict } from '../../agent/drive/oracle/verdict.ts';
import { type AbsolutePath, parseAbsolutePath } from '../../mount/host.ts';
import { type ProgramEntry, programArguments } from '../machine/program.ts';

const VOLUME_BYTES = 16n * 1024n * 1024n;

export function path(text: string): AbsolutePath {
  const parsed = parseAbsolutePath(text);
  if (parsed === undefined) throw new Error(`not a path: ${text}`);
  return parsed;
}

export interface DriveWorld {
  readonly directory: string;
  readonly socket: string;
  readonly loopfile: readonly string[];
  readonly broken: (fault: string) => readonly string[];
  run(
    command: readonly string[],
    options?: Partial<DriveOptions>,
    interrupted?: AbortSignal,
  ): Promise<DriveReport>;
  close(): void;
}

export function createDriveWorld(): DriveWorld {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'mooring-drivetest-')));
  const socket = join(directory, 'csi.sock');
  const pool = join(directory, 'pool');
  const argv = ['--pool', pool, '--endpoint', `unix://${socket}`];
  const program = (entry: ProgramEntry) => [process.execPath, ...programArguments(entry)];
  return {
    directory,
    socket,
    loopfile: [...program('plugins/loopfile/main.ts'), ...argv, '--node-id', 'node-1'],
    broken: (fault) => [
      ...program('test/drive/broken-driver.ts'),
      ...argv,
      ...(fault === '' ? [] : ['--fault', fault]),
    ],
    async run(command, options = {}, interrupted = new AbortController().signal) {
      const scratch = mkdtempSync(join(directory, 'd-'));
      const result = await drive({
        options: { ...DEFAULTS, endpoint: path(socket), command, ...options },
        directory: scratch,
        brokerCommand: [...program('agent/main.ts'), 'broker'],
        onBegin: () => {},
        onVerdict: () => {},
        onWait: () => {},
        interrupted,
      });
      await removeScratch(scratch);
      if (!result.ok) throw new Error(result.failure.message);
      return result.value;
    },
    close: () => rmSync(directory, { recursive: true, force: true }),
  };
}

export const DEFAULTS: DriveOptions = {
  endpoint: undefined,
  registration: undefined,
  command: [],
  volumeHandles: [],
  sizeBytes: VOLUME_BYTES,
  fsType: '',
  accessMode: undefined,
  attributes: {},
  parameters: {},
  secrets: NO_DRIVE_SECRETS,
  block: false,
  only: [],
  faults: false,
  seed: 1,
  deadlineMs: 20_000,
  directory: undefined,
  strict: false,
};

/** "duty: what was found", of everything that is not well. */
export function troubles({ verdicts }: DriveReport): readonly string[] {
  return verdicts
    .filter(({ kind }) => kind === 'fail' || kind === 'blocked')
    .map(({ duty, kind, findings }) => `${duty} ${kind}: ${findings.join('; ')}`);
}

export function verdictOf({ verdicts }: DriveReport, duty: string): Verdict['kind'] | undefined {
  return verdicts.find((one) => one.duty === duty)?.kind;
}
