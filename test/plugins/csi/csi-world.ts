/** A CSI plugin with a driver that does as it is told, on real sockets and with real files. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { afterEach } from 'node:test';
import type { KnownVolume } from '../../../plugins/csi/call/hidden-words.ts';
import { createCsiPlugin, type CsiPlugin } from '../../../plugins/csi/csi-plugin.ts';
import type { DriverInstance } from '../../../plugins/csi/driver/driver.ts';
import type { GrpcServer } from '../../../plugins/csi/wire/grpc-service.ts';
import { questionDriver } from '../../../plugins/csi/driver/registration.ts';
import { findSocket } from '../../../plugins/csi/driver/socket-trust.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import { NO_SECRETS, type PublicationCall } from '../../../plugins/plugin.ts';
import { parsePodUid, publicationKey } from '../../../plugins/volume.ts';
import { csiSpec } from '../csi-spec.ts';
import { accept } from './answers.ts';
import { DRIVER, type Script, script, serveDriver } from './scripted-driver.ts';
import { createSocketHost, inRoot, type SocketHost } from './socket-host.ts';

export interface World {
  readonly host: SocketHost;
  readonly plan: Script;
  readonly plugin: CsiPlugin;
  readonly suspected: string[];
  readonly server: GrpcServer;
  /** Volumes that the plugin is told of when it asks what is here. */
  readonly here: KnownVolume[];
  instance: DriverInstance | undefined;
}

const worlds: World[] = [];

afterEach(async () => {
  for (const { host, server } of worlds.splice(0)) {
    await server.close();
    host.close();
  }
});

export const UIDS = ['a', 'b', 'c', 'd'].map(
  (letter) => parsePodUid(`0b4f8c1e-2222-4333-8444-55556666000${letter}`) ?? assert.fail(),
);
export const HANDLE = 'vol/1';
export const SPEC = csiSpec(DRIVER, HANDLE, 'pv-1', {
  mountOptions: ['noatime'],
  volumeAttributes: { size: '1', color: 'blue' },
});
export const STAGED = {
  needs: { attach: false, stage: true, expand: false },
  publishContext: undefined,
  stagedMount: undefined,
};
export const UNSTAGED = { ...STAGED, needs: { attach: false, stage: false, expand: false } };

export async function world(
  changes: Partial<Script> = {},
  options: { parallel?: boolean; deadlineMs?: number; forceFields?: (driver: string) => boolean } = {},
): Promise<World> {
  const host = createSocketHost();
  const socket = inRoot(host, 'driver', 'csi.sock');
  const plan = script(changes);
  const server = await serveDriver(host, socket, plan);
  const suspected: string[] = [];
  const here: KnownVolume[] = [];
  const plugin = createCsiPlugin({
    host,
    layout: createLayout(host.root),
    nodeName: 'node-a',
    deadlineMs: options.deadlineMs ?? 30_000,
    drivers: {
      get: (name) => (made.instance?.name === name ? made.instance : undefined),
      suspect: (name) => suspected.push(name),
    },
    parallelPublish: () => options.parallel ?? false,
    volumesHere: (driver) => here.filter(({ spec }) => driver === undefined || spec.driver === driver),
    ...(options.forceFields === undefined ? {} : { forceFields: options.forceFields }),
  });
  const made: World = { host, plan, plugin, suspected, server, here, instance: undefined };
  worlds.push(made);
  await introduce(made);
  host.called.splice(0);
  host.requests.splice(0);
  return made;
}

export async function introduce(made: World): Promise<void> {
  const found = accept(await findSocket(made.host, inRoot(made.host, 'driver', 'csi.sock'), undefined));
  const named = { name: DRIVER, registrationSocket: undefined, life: '1 of 0' };
  made.instance = accept(await questionDriver(made.host, found.identity, named));
}

export function call(changes: Partial<PublicationCall> & { pod?: number } = {}): PublicationCall {
  const uid = UIDS[changes.pod ?? 0] ?? assert.fail();
  const pod = { uid, name: 'web', namespace: 'shop', serviceAccount: 'seller' };
  return {
    spec: SPEC,
    facts: STAGED,
    secrets: NO_SECRETS,
    mount: undefined,
    stillWanted: () => true,
    fsGroup: undefined,
    step: () => {},
    progress: () => undefined,
    force: false,
    refresh: false,
    tokens: undefined,
    files: undefined,
    publication: {
      key: publicationKey(uid, 'pv-1'),
      pod,
      specName: 'pv-1',
      readOnly: false,
      origin: 'web.yaml',
    },
    ...changes,
  };
}

/** All files and directories below the root but the driver's own. */
export function tree({ host }: World): string[] {
  return readdirSync(host.root, { recursive: true, encoding: 'utf8' })
    .filter((name) => !name.startsWith('driver'))
    .sort();
}

export const layoutOf = ({ host }: World) => createLayout(host.root);
export const stagingOf = (made: World) => layoutOf(made).stagingPath(SPEC);
export const targetOf = (made: World, pod = 0) => layoutOf(made).target(SPEC, call({ pod }).publication);

export function sent<T>({ host }: World, method: string, codec: { decode(bytes: Buffer): T }): T[] {
  return host.requests.filter((one) => one.method === method).map(({ bytes }) => codec.decode(bytes));
}

export async function up(made: World, changes: Parameters<typeof call>[0] = {}) {
  accept(await made.plugin.stage(call(changes)));
  return accept(await made.plugin.publish(call(changes)));
}
