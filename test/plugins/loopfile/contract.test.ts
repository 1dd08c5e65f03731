/** The sentences that every CSI driver of ours keeps, on the real driver process with real mounts. */
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type AbsolutePath, type Host, parseAbsolutePath } from '../../../mount/host.ts';
import { createLinuxHost } from '../../../mount/agent-side/linux-host.ts';
import { VolumeCapability_AccessMode_Mode as Mode } from '../../../plugins/csi/wire/generated/csi.ts';
import { createGrpcRemote } from '../../../plugins/csi/wire/grpc.ts';
import { csiDriverContract, type MakeCsiDriverWorld } from '../../contract/csi-driver.ts';
import { BROKER_COMMAND } from '../../real/broker-command.ts';
import { inPrivateNamespace } from '../../real/namespace.ts';
import { cannotRun, createVolume, createWorld } from './world.ts';

const make: MakeCsiDriverWorld = async (t) => {
  const world = await createWorld('here');
  t.after(() => world.close());
  await world.start();
  const { volumeId, stagingPath } = await createVolume(world, 'contract');
  const remote = createGrpcRemote();
  t.after(() => remote.close());
  const host = await createLinuxHost({
    remote: asSpoken(remote.call),
    watch: () => () => {},
    brokerCommand: BROKER_COMMAND,
  });
  t.after(() => host.close());
  for (const pod of ['a', 'b']) mkdirSync(join(world.directory, 'pods', pod));
  const path = (...parts: readonly string[]): AbsolutePath => {
    const absolute = parseAbsolutePath(join(world.directory, ...parts));
    if (absolute === undefined) throw new Error('the directory for temporary files has an odd name');
    return absolute;
  };
  const socket = parseAbsolutePath(world.socket);
  return {
    host,
    socket: { path: socket ?? path('csi.sock'), inode: statSync(world.socket).ino },
    volumeId,
    volumeContext: {},
    staging: parseAbsolutePath(stagingPath) ?? path('stage', 'contract'),
    targets: [path('pods', 'a', 'mount'), path('pods', 'b', 'mount')],
  };
};

/**
 * The driver offers SINGLE_NODE_MULTI_WRITER, and an orchestrator that hears so says ReadWriteOnce by that name
 * (plugins/csi/call/access-mode.ts); SINGLE_NODE_WRITER may then be at one target only (CSI, NodePublishVolume).
 */
function asSpoken(call: Host['call']): Host['call'] {
  return (remote) => {
    const request = remote.request as { volumeCapability?: { accessMode?: { mode: Mode } } };
    if (request.volumeCapability?.accessMode?.mode !== Mode.SINGLE_NODE_WRITER) return call(remote);
    const accessMode = { mode: Mode.SINGLE_NODE_MULTI_WRITER };
    const volumeCapability = { ...request.volumeCapability, accessMode };
    return call({ ...remote, request: { ...remote.request, volumeCapability } });
  };
}

const unable = cannotRun('losetup', 'mkfs.ext4') || inPrivateNamespace();
if (unable === false) csiDriverContract('loopfile', make);
else test('loopfile keeps the contract of CSI drivers', { skip: unable });
