/** What the demo shows. Every claim is checked at the kernel, not at what the product says of itself. */
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { PodVolumeStatus, StatusDocument } from '../../agent/status/status-document.ts';
import type { MountEntry } from '../../mount/mount-table.ts';
import { isIdle, isSettled } from './agent-status.ts';
import type { ChildProcess } from './child-process.ts';
import { descendantsOf, loopDevicesBelow, mountsBelow, untilGone } from './machine.ts';
import { createNarrator, type Narrator, spanText, type Tick } from './narrator.ts';
import { createNodeUnderDemo, DRIVER, type NodeUnderDemo } from './node-under-demo.ts';
import { until } from '../until.ts';
import { recordsIn } from './recorded.ts';
import { CLAIM, GREETING, PASSWORD, POD, podManifest } from './pod-manifest.ts';

const ERASED_MS_MAX = 2_000;
const MANIFEST = 'web.yaml';
const NOTE = 'Written through the mount before the agent was killed.\n';

/** What has to be the same before and after the agent's death. */
interface Memory {
  readonly mounts: readonly MountEntry[];
  readonly paths: ReadonlyMap<string, string>;
  readonly secretGeneration: string;
  /** The driver writes its record with every stage and publish. */
  readonly driverRecord: string;
}

export async function tellStory(scratch: string, interrupted: AbortSignal): Promise<number> {
  const startMs = performance.now();
  const narrator = createNarrator(interrupted);
  narrator.headline(
    'Mooring: the volumes of a pod, from manifest to mount and back',
    `real mounts, real loop device, in a mount namespace of its own; everything below ${scratch}`,
  );
  const node = createNodeUnderDemo(scratch, interrupted);
  const halted = new Promise<never>((_, reject) => {
    interrupted.addEventListener('abort', () => reject(interrupted.reason));
  });
  let failed = false;
  try {
    await Promise.race([tellSteps(node, narrator), halted]);
  } catch (error) {
    failed = true;
    // What failed in a step was told there.
    const told = error instanceof Error ? error.message : String(error);
    process.stdout.write(`\n${interrupted.aborted ? told : node.lastWords()}\n`);
  }
  const left = await node.cleanUp();
  const cleaned = left.length === 0 ? 'There was nothing to clean up.' : `Cleaned up: ${left.join(', ')}.`;
  const took = spanText(performance.now() - startMs);
  if (failed)
    narrator.closing(false, `${interrupted.aborted ? 'Interrupted' : 'Failed'} after ${took}. ${cleaned}`);
  else if (left.length > 0) narrator.closing(false, `Something was left behind. ${cleaned}`);
  else narrator.closing(true, `All of it worked in ${took}, and nothing is left behind.`);
  return failed || left.length > 0 ? 1 : 0;
}

async function tellSteps(node: NodeUnderDemo, narrator: Narrator): Promise<void> {
  const { places } = node;
  let agent: ChildProcess | undefined;
  let driver: ChildProcess | undefined;
  let storage = '';
  let memory: Memory | undefined;

  await narrator.step('Start the agent and the CSI driver', async (tick) => {
    agent = await node.startAgent();
    tick('mooring agent is up', `pid ${agent.pid}`);
    driver = await node.startDriver();
    tick(`${DRIVER} is registered`, `mooring-loopfile, pid ${driver.pid}`);
  });

  await narrator.step('Create a volume of 64 MiB', async (tick) => {
    storage = await node.loopfile(
      'create',
      '--pool',
      places.pool,
      '--name',
      CLAIM,
      '--size',
      '64Mi',
      '--yaml',
    );
    expect(/kind: PersistentVolume\b/.test(storage), 'create --yaml prints a PersistentVolume');
    tick(`mooring-loopfile create --name ${CLAIM} --size 64Mi --yaml`, 'PersistentVolume and claim');
  });

  await narrator.step('Ask for a pod: drop one manifest', async (tick) => {
    node.putManifest(MANIFEST, podManifest(storage, places.hostDirectory));
    tick(`manifests/${MANIFEST}`, 'pod, PV, claim, secret, configMap');
    const seen = new Set<string>();
    await node.until(
      'all volumes of the pod',
      (status) => isReady(status),
      (status) => {
        for (const volume of volumesOf(status))
          if (volume.state === 'mounted' && !seen.has(volume.name)) {
            seen.add(volume.name);
            tick(`${volume.name} is there`, kindOf(volume));
          }
      },
    );
    narrator.quote(await node.mooring('status', '--socket', places.socket));
  });

  await narrator.step('Use them as the pod would', async (tick) => {
    memory = await useVolumes(node, tick);
  });
  const before = memory;
  expect(agent !== undefined && driver !== undefined && before !== undefined, 'both programs run');

  await narrator.step('Kill the agent with SIGKILL', async (tick) => {
    const helpers = descendantsOf(agent?.pid ?? -1).map(({ pid }) => pid);
    await agent?.end('SIGKILL');
    tick('the agent is dead', `pid ${agent?.pid}`);
    expect(await untilGone(helpers), 'its helper processes end with it');
    tick('its helper processes have ended by themselves', `${helpers.length} of them`);
    expectSameMounts(before.mounts, mountsBelow(places.scratch));
    tick('every mount is still there', `${before.mounts.length} mounts`);
    expect(
      readFileSync(join(pathOf(before, CLAIM), 'note.txt'), 'utf8') === NOTE,
      'the file is readable meanwhile',
    );
    tick('the pod would not have noticed', 'the file can be read');
  });

  await narrator.step('Start it again', async (tick) => {
    agent = await node.startAgent();
    tick('mooring agent is up', `pid ${agent.pid}`);
    await node.until('the pod to be ready again', (status) => isReady(status) && isSettled(status));
    tick('it knows all volumes again, from its records and the mount table');
    expectUntouched(node, before, tick);
  });

  await narrator.step('The pod goes: delete the manifest', async (tick) => {
    node.removeManifest(MANIFEST);
    await node.until(
      'teardown',
      (status) => status.summary.pods === 0 && status.summary.volumes === 0 && isIdle(status),
    );
    tick('unpublished, unstaged, forgotten');
    await expectNothingLeft(node, tick);
  });

  await narrator.step('Stop both programs', async (tick) => {
    const helpers = [agent, driver].flatMap((one) => descendantsOf(one?.pid ?? -1)).map(({ pid }) => pid);
    for (const one of [agent, driver]) {
      const ending = await one?.end('SIGTERM');
      expect(ending?.code === 0, `${one?.name} ends with status 0 on SIGTERM, not ${JSON.stringify(ending)}`);
      tick(`the ${one?.name} ended`, 'SIGTERM, exit status 0');
    }
    expect(await untilGone(helpers), 'helper processes end with their program');
    expect(!existsSync(places.socket) && !existsSync(places.driverSocket), 'sockets are removed');
    tick('no process and no socket is left');
  });
}

async function useVolumes(node: NodeUnderDemo, tick: Tick): Promise<Memory> {
  const { places } = node;
  const status = await node.until('a settled agent', isSettled);
  const paths = new Map(
    volumesOf(status).flatMap(({ name, path }) => (path === null ? [] : [[name, path] as const])),
  );
  const mounts = mountsBelow(places.scratch);
  const memory = {
    mounts,
    paths,
    secretGeneration: generationOf(required(paths, 'login')),
    driverRecord: driverRecord(places.pool),
  };
  const data = mounts.find(({ target }) => target === pathOf(memory, CLAIM));
  expect(data?.fsType === 'ext4', `${CLAIM} is ext4 in /proc/self/mountinfo, not ${data?.fsType}`);
  const note = join(pathOf(memory, CLAIM), 'note.txt');
  writeFileSync(note, NOTE, { flush: true });
  tick(`wrote a file through the CSI mount`, `ext4 on ${data?.source}`);
  expect(
    readFileSync(join(pathOf(memory, 'login'), 'password'), 'utf8') === PASSWORD,
    'the secret is readable',
  );
  expect(
    (statSync(join(pathOf(memory, 'login'), 'password')).mode & 0o777) === 0o400,
    'the secret has mode 0400',
  );
  expect(
    mounts.some(({ target, fsType }) => target === pathOf(memory, 'login') && fsType === 'tmpfs'),
    'secrets are on tmpfs',
  );
  tick('read the secret', 'on tmpfs, mode 0400');
  expect(
    readFileSync(join(pathOf(memory, 'settings'), 'greeting'), 'utf8') === GREETING,
    'the configMap is readable',
  );
  tick('read the configMap');
  for (const name of ['work', 'fast', 'site']) writeFileSync(join(pathOf(memory, name), 'file'), name);
  const fast = mounts.find(({ target }) => target === pathOf(memory, 'fast'));
  expect(
    fast?.fsType === 'tmpfs' && fast.superOptions.includes('size=16384k'),
    'the emptyDir in memory is a tmpfs of 16 MiB',
  );
  expect(
    !mounts.some(({ target }) => target === pathOf(memory, 'work')),
    'the emptyDir on disk needs no mount',
  );
  tick('wrote into both emptyDirs and the hostPath', 'memory: a tmpfs of 16 MiB');
  return memory;
}

/** Nothing was done again that need not be: same mounts, same secret generation, not one CSI call. */
function expectUntouched(node: NodeUnderDemo, before: Memory, tick: Tick): void {
  const { scratch, pool, agentLog } = node.places;
  expect(readFileSync(join(pathOf(before, CLAIM), 'note.txt'), 'utf8') === NOTE, 'the file is still there');
  expect(
    readFileSync(join(pathOf(before, 'work'), 'file'), 'utf8') === 'work',
    'the emptyDir on disk kept its file',
  );
  tick('the files are still there');
  expectSameMounts(before.mounts, mountsBelow(scratch));
  tick('nothing was mounted again', `the same ${before.mounts.length} mount ids in /proc/self/mountinfo`);
  expect(
    generationOf(pathOf(before, 'login')) === before.secretGeneration,
    'the secret was not written again',
  );
  tick('the secret was not written again', `..data -> ${before.secretGeneration.split(' ')[0]}`);
  expect(driverRecord(pool) === before.driverRecord, "the driver's own record was not touched");
  const lives = readFileSync(agentLog, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { readonly event: string; readonly volume?: string });
  const second = lives.slice(lives.findLastIndex(({ event }) => event === 'agent starting'));
  const called = second.filter(
    ({ event, volume }) => /^volume (staged|published)$/.test(event) && volume?.includes('^'),
  );
  expect(called.length === 0, `no CSI volume was staged or published again: ${JSON.stringify(called)}`);
  tick('the driver was not asked to stage or publish', 'its record is unchanged');
}

async function expectNothingLeft({ places, loopfile }: NodeUnderDemo, tick: Tick): Promise<void> {
  const mounts = mountsBelow(places.scratch).map(({ target }) => target);
  expect(mounts.length === 0, `no mount is left: ${mounts.join(', ')}`);
  tick('no mount is left', '/proc/self/mountinfo');
  const devices = loopDevicesBelow(places.scratch);
  expect(devices.length === 0, `no loop device is left: ${devices.join(', ')}`);
  tick('no loop device is left', '/sys/block');
  for (const directory of [places.pods, places.staging]) {
    const names = existsSync(directory) ? readdirSync(directory) : [];
    expect(names.length === 0, `${directory} is empty, not: ${names.join(', ')}`);
  }
  tick('no directory is left', 'pods/, plugins/');
  // The last ones are erased together, a moment after their volumes are down.
  await until('no record is left', () => recordsIn(places.records).size === 0, { waitMsMax: ERASED_MS_MAX });
  tick('no record is left', 'mooring/records/');
  expect(readFileSync(join(places.hostDirectory, 'file'), 'utf8') === 'site', 'what hostPath showed stays');
  const volumes = await loopfile('list', '--pool', places.pool);
  expect(volumes.includes(CLAIM), 'the volume stays in the pool');
  tick('what must stay has stayed', 'the volume in its pool, the files of the hostPath');
}

function isReady({ summary }: StatusDocument): boolean {
  return summary.podsWanted === 1 && summary.podsReady === 1;
}

function volumesOf(status: StatusDocument): readonly PodVolumeStatus[] {
  return status.pods.find(({ name }) => name === POD)?.volumes ?? [];
}

function kindOf({ driver, plugin }: PodVolumeStatus): string {
  return driver === null ? (plugin ?? '').replace('kubernetes.io/', '') : `CSI ${driver}`;
}

function pathOf({ paths }: Pick<Memory, 'paths'>, volume: string): string {
  return required(paths, volume);
}

function required(paths: ReadonlyMap<string, string>, volume: string): string {
  const path = paths.get(volume);
  expect(path !== undefined, `the status has a path for ${volume}`);
  return path;
}

/** Which generation `..data` shows, and since when. */
function generationOf(directory: string): string {
  const link = join(directory, '..data');
  return `${readlinkSync(link)} ${lstatSync(link).ctimeMs}`;
}

function driverRecord(pool: string): string {
  const [volume = ''] = readdirSync(pool).filter((name) => existsSync(join(pool, name, 'volume.json')));
  const file = join(pool, volume, 'volume.json');
  return `${statSync(file).ino} ${statSync(file).mtimeMs} ${readFileSync(file, 'utf8')}`;
}

function expectSameMounts(before: readonly MountEntry[], now: readonly MountEntry[]): void {
  const told = (mounts: readonly MountEntry[]): string =>
    mounts
      .map(({ mountId, device, target }) => `${mountId} ${device} ${target}`)
      .sort()
      .join('\n  ');
  expect(
    told(before) === told(now),
    `the mounts are the same; before:\n  ${told(before)}\nnow:\n  ${told(now)}`,
  );
}

function expect(holds: boolean, claim: string): asserts holds {
  if (!holds) throw new Error(`not true: ${claim}`);
}
