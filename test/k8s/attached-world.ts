/** A volume that the real attach/detach controller is to attach: its driver, its attacher, what is said of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AdminClient } from '../cluster/admin-client.ts';
import { runCommand } from '../demo/child-process.ts';
import type { Program } from '../interop/program.ts';
import { AGENT_COMMAND, inWorld, NODE, type World } from '../interop/world.ts';
import { until } from '../until.ts';
import { type Cluster, makeCsiDriver, makeImage, makeVolume } from './cluster-world.ts';
import { endReboots, reboot } from './reboot.ts';
import { type Attachment, attachmentsIn, startAttacher, type TestAttacher } from './test-attacher.ts';

export const MINUTES = { waitMsMax: 300_000, lookEveryMs: 20 };

export interface Attached {
  readonly world: World;
  readonly shared: Cluster;
  readonly admin: AdminClient;
  readonly attacher: TestAttacher;
  readonly driver: string;
  /** A volume of that name with a bound claim. The answer: its name in the lists of the Node. */
  makeDisk(name: string): Promise<string>;
  /** The machine is switched off under agent and driver. Settles when the driver runs again, without an agent. */
  reboot(agent: Program): Promise<void>;
}

/** Each with a driver of its own: they share a control plane, and a node's name. */
export function withAttacher(
  { cluster, skip }: { readonly cluster: () => Promise<Cluster>; readonly skip: string | false },
  sentence: string,
  driver: string,
  tell: (attached: Attached) => Promise<void>,
): void {
  test(sentence, { skip }, async () => {
    const shared = await cluster();
    const { admin, plane } = shared;
    await makeCsiDriver(admin, driver, true);
    await inWorld(async (world) => {
      let program = await startDriver(world, driver);
      const attacher = startAttacher(admin, driver, world.socketOf(driver));
      try {
        await tell({
          ...{ world, shared, admin, attacher, driver },
          async makeDisk(name) {
            const handle = await makeImage(world, name);
            await makeVolume(admin, name, driver, handle);
            return `kubernetes.io/csi/${driver}^${handle}`;
          },
          async reboot(agent) {
            await reboot(world, [agent, program]);
            program = await startDriver(world, driver);
          },
        });
        assert.deepEqual(
          attacher.refused,
          [],
          'nothing was asked of the driver that was too early or too late',
        );
      } finally {
        await attacher.stop();
        await endReboots();
      }
    }, `kubeconfig: ${plane.nodeKubeconfig}`);
  });
}

/** One that stages only what is attached. */
export function startDriver(world: World, driver: string): Promise<Program> {
  const flags = ['--name', driver, '--registry', world.registry, '--attach'];
  return world.startLoopfile(world.socketOf(driver), ...flags);
}

const MANAGED = 'volumes.kubernetes.io/controller-managed-attach-detach';

/**
 * An agent whose node the attach/detach controller knows of: a pod that it meets before that it looks at again after
 * three minutes.
 */
export async function startManagedAgent(
  world: World,
  admin: AdminClient,
  driver: string,
  nodeName = NODE,
): Promise<Program> {
  const agent = await world.startAgent();
  await world.untilRegistered(driver);
  await until('the Node says who attaches', async () => {
    const node = await admin.request('GET', `/api/v1/nodes/${nodeName}`);
    const { annotations } = (node as { metadata: { annotations?: object } }).metadata;
    return annotations !== undefined && MANAGED in annotations;
  });
  return agent;
}

export const claim = (claimName: string) => ({ data: { persistentVolumeClaim: { claimName } } });

/** Where pid 1 may not be looked at nothing can be proven clean, and an operator has to say so. */
export async function isFree(world: World, volume: string): Promise<boolean> {
  const command = [...AGENT_COMMAND, 'quarantine', 'clear', volume, '--yes', '--socket', world.socket];
  const { code, output } = await runCommand(command.slice(1));
  return code === 0 || /is not in quarantine/.test(output);
}

export async function nodeStatus(admin: AdminClient) {
  const node = await admin.request('GET', `/api/v1/nodes/${NODE}`);
  return (node as { status: { volumesInUse?: string[]; volumesAttached?: { name: string }[] } }).status;
}

export async function inUse(admin: AdminClient): Promise<readonly string[]> {
  return (await nodeStatus(admin)).volumesInUse ?? [];
}

export async function attachmentOf(admin: AdminClient, driver: string): Promise<Attachment | undefined> {
  return (await attachmentsIn(admin)).find(({ spec }) => spec.attacher === driver);
}

export async function untilDetached(admin: AdminClient, driver: string): Promise<void> {
  await until('it is detached', async () => (await attachmentOf(admin, driver)) === undefined, MINUTES);
}
