/** Google's disk driver, its own program as it is built from its source, as a process of a world with a cloud. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { GoPrograms } from './go-program.ts';
import { csiDriver, volumeAndClaim, type VolumeFacts } from './manifests.ts';
import { startRegistrar } from './mock.ts';
import { type Cloud, startCloud } from './pd-cloud.ts';
import type { Program } from './program.ts';
import type { Witness } from './witness.ts';
import { inWorld, type World } from './world.ts';
import { signalGroup } from '../signal.ts';

export const DRIVER = 'pd.csi.storage.gke.io';
export const UID = '11111111-1111-4111-8111-111111111111';
export const OTHER_UID = '22222222-2222-4222-8222-222222222222';

/** As its deploy/kubernetes has it. */
export const OBJECT = csiDriver(DRIVER, 'attachRequired: true', 'podInfoOnMount: false');

export interface Pd {
  driver: Program;
  readonly agent: Program;
  readonly cloud: Cloud;
  readonly witness: Witness;
  /** SIGKILL, to what it has started as well, as at the end of a container; its socket breaks. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

export interface PdOptions {
  /** Before the driver's own argv. */
  readonly through?: readonly string[];
  /** Further lines of the agent's configuration file. */
  readonly config?: readonly string[];
}

export type PdFiles = GoPrograms<'pd-driver' | 'registrar'>['files'];

/** argv of the driver on a socket, pointed to the cloud by its own flag and variables. */
export function pdCommand(files: PdFiles, cloud: Cloud, socket: string): readonly string[] {
  const flags = ['--endpoint', `unix://${socket}`, '-v', '4'];
  return ['/usr/bin/env', ...cloud.environment, files['pd-driver'], ...flags, ...cloud.flags];
}

export async function withCloud(world: World, tell: (cloud: Cloud) => Promise<void>): Promise<void> {
  const directory = join(world.scratch, 'cloud');
  mkdirSync(directory);
  const cloud = await startCloud(directory);
  let complaints: readonly string[] = [];
  try {
    await tell(cloud);
  } finally {
    complaints = await cloud.close();
  }
  if (complaints.length > 0) throw new Error(complaints.join('\n'));
}

/** Judged: the registrar announces the witness in front of it. */
async function startPd(world: World, files: PdFiles, cloud: Cloud, through: readonly string[]): Promise<Pd> {
  const agent = await world.startAgent();
  const witness = world.witness(DRIVER);
  const start = async (): Promise<Program> => {
    const driver = world.start('pd-driver', [...through, ...pdCommand(files, cloud, witness.behind)]);
    await driver.line('its start', (line) => line.includes('Listening for connections'));
    await witness.open();
    return driver;
  };
  const pd: Pd = {
    driver: await start(),
    agent,
    cloud,
    witness,
    async kill() {
      signalGroup(pd.driver.pid, 'SIGKILL');
      await pd.driver.ended;
      await witness.close();
    },
    async start() {
      pd.driver = await start();
    },
  };
  startRegistrar(world, files.registrar, witness);
  await world.untilRegistered(DRIVER);
  return pd;
}

/** A world with the agent and the driver. What the cloud has to complain of at its end fails the test. */
export function inCloud(
  files: PdFiles,
  tell: (world: World, pd: Pd) => Promise<void>,
  { through = [], config = [] }: PdOptions = {},
): Promise<void> {
  return inWorld(
    (world) => withCloud(world, async (cloud) => tell(world, await startPd(world, files, cloud, through))),
    ...config,
  );
}

/** PersistentVolume and claim of a disk, both named like the disk. */
export function diskAndClaim(cloud: Cloud, name: string, facts: Partial<VolumeFacts> = {}): string {
  return volumeAndClaim({ driver: DRIVER, handle: cloud.handleOf(name), name, ...facts });
}
