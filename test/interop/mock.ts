/** The CSI mock driver of the Kubernetes end-to-end tests and its registrar, as processes of a world. */
import { join } from 'node:path';
import type { OracleOptions } from '../../agent/drive/oracle/oracle-context.ts';
import type { PodStatus } from '../../agent/status/status-document.ts';
import { mountsBelow } from '../demo/machine.ts';
import type { GoPrograms } from './go-program.ts';
import type { Program } from './program.ts';
import type { Witness } from './witness.ts';
import type { World } from './world.ts';

export const DRIVER = 'mock.example';
/** The driver is born with volumes 1, 2 and 3. */
export const VOLUME = { driver: DRIVER, handle: '1', name: 'mock-one' };
export const UID = '11111111-1111-4111-8111-111111111111';
export const OTHER_UID = '22222222-2222-4222-8222-222222222222';

export interface Mock {
  driver: Program;
  readonly record: string;
  readonly state: string;
  readonly witness: Witness;
  restart(): Promise<void>;
}

export type MockFiles = GoPrograms<'mock-driver' | 'registrar'>['files'];

export interface MockOptions {
  readonly files: MockFiles;
  /** `as-it-comes`: it mounts nothing. `with-hands`: it binds a directory per volume (mock-driver/hands.go). */
  readonly kind: 'as-it-comes' | 'with-hands';
  readonly flags?: readonly string[];
  readonly rules?: OracleOptions;
}

/** Judged: the registrar announces the witness in front of it. */
export async function startMock(
  world: World,
  { files, kind, flags = [], rules }: MockOptions,
): Promise<Mock> {
  const record = join(world.scratch, 'calls.jsonl');
  const state = join(world.scratch, 'mock-volumes');
  const hands = kind === 'with-hands' ? ['--state', state] : [];
  const witness = world.witness(DRIVER, rules);
  const endpoint = `unix://${witness.behind}`;
  const argv = [files['mock-driver'], '--endpoint', endpoint, '--name', DRIVER, '--record', record];
  const start = async (): Promise<Program> => {
    const driver = world.start('mock-driver', [...argv, ...hands, ...flags]);
    await driver.line('its start', (line) => line === 'listening');
    await witness.open();
    return driver;
  };
  const mock: Mock = {
    driver: await start(),
    record,
    state,
    witness,
    async restart() {
      await mock.driver.end('SIGKILL');
      await witness.close();
      mock.driver = await start();
    },
  };
  startRegistrar(world, files.registrar, witness);
  await world.untilRegistered(DRIVER);
  return mock;
}

export function startRegistrar(world: World, registrar: string, { front }: Witness): Program {
  return world.start('registrar', [registrar, '--endpoint', front, '--registry', world.registry]);
}

export const targetOf = (world: World, uid: string, volume: string): string =>
  join(world.pods, uid, 'volumes/kubernetes.io~csi', volume, 'mount');
export const isMounted = (target: string): boolean =>
  mountsBelow(target).some((one) => one.target === target);

/** The failure codes of all volumes that have one. */
export const reasonsOf = (pods: readonly PodStatus[]): readonly (string | undefined)[] =>
  pods.flatMap(({ volumes }) => volumes.map(({ reason }) => reason?.code));
