/** The sentences that every CSI driver of ours keeps, real or simulated: the Node service by the specification. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import type { RemoteMethod, RemoteReply, SocketIdentity } from '../../mount/remote-call.ts';
import {
  IdentityService,
  NodeServiceCapability_RPC_Type as NodeCapability,
  type NodePublishVolumeRequest,
  NodeService,
  type NodeStageVolumeRequest,
  VolumeCapability_AccessMode_Mode as Mode,
} from '../../plugins/csi/wire/generated/csi.ts';

export interface CsiDriverWorld {
  readonly host: Host;
  readonly socket: SocketIdentity;
  /** Exists, never used before. */
  readonly volumeId: string;
  readonly volumeContext: Readonly<Record<string, string>>;
  /** An existing, empty directory. */
  readonly staging: AbsolutePath;
  /** Their parents exist, they do not. */
  readonly targets: readonly [AbsolutePath, AbsolutePath];
}

/** Makes a fresh world for one sentence; clean up with `t.after`. */
export type MakeCsiDriverWorld = (t: TestContext) => Promise<CsiDriverWorld>;

const DEADLINE_MS = 60_000;
const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;
const FAILED_PRECONDITION = 9;

/** The verbs with everything filled in; what a sentence is about is overridden. */
function verbsOf(world: CsiDriverWorld) {
  const { host, socket, volumeId, staging, targets } = world;
  const volumeCapability = {
    accessType: { $case: 'mount' as const, value: { fsType: '', mountFlags: [], volumeMountGroup: '' } },
    accessMode: { mode: Mode.SINGLE_NODE_WRITER },
  };
  const call = <Request, Reply>(
    method: RemoteMethod<Request, Reply>,
    request: Request,
  ): Promise<RemoteReply<Reply>> => {
    return host.call({ socket, method, request, deadlineMs: DEADLINE_MS });
  };
  const common = { volumeId, publishContext: {}, stagingTargetPath: staging, volumeCapability, secrets: {} };
  const volumeContext = { ...world.volumeContext };
  return {
    call,
    stage: (change: Partial<NodeStageVolumeRequest> = {}) => {
      return call(NodeService.nodeStageVolume, { ...common, volumeContext, ...change });
    },
    unstage: (change: { volumeId?: string; stagingTargetPath?: string } = {}) => {
      return call(NodeService.nodeUnstageVolume, { volumeId, stagingTargetPath: staging, ...change });
    },
    publish: (change: Partial<NodePublishVolumeRequest> = {}) => {
      const request = { ...common, volumeContext, targetPath: targets[0], readonly: false, ...change };
      return call(NodeService.nodePublishVolume, request);
    },
    unpublish: (change: { volumeId?: string; targetPath?: string } = {}) => {
      return call(NodeService.nodeUnpublishVolume, { volumeId, targetPath: targets[0], ...change });
    },
  };
}

type Verbs = ReturnType<typeof verbsOf>;

function reply<T>(answer: RemoteReply<T>): T {
  assert.equal(answer.kind, 'ok', answer.kind === 'ok' ? '' : JSON.stringify(answer));
  return (answer as Extract<RemoteReply<T>, { kind: 'ok' }>).reply;
}

function refused(answer: RemoteReply<unknown>, status: number): void {
  assert.deepEqual(
    [answer.kind, answer.kind === 'status' ? answer.status : 0],
    ['status', status],
    answer.kind === 'ok' ? 'ok' : answer.message,
  );
}

async function layers({ host }: CsiDriverWorld, path: AbsolutePath): Promise<readonly string[][]> {
  const table = await host.readMountTable(path);
  assert.ok(table.ok);
  return table.value.at(path).map(({ options }) => [...options]);
}

async function kindOf({ host }: CsiDriverWorld, path: AbsolutePath): Promise<string> {
  const facts = await host.inspect(path);
  assert.ok(facts.ok);
  return facts.value.kind;
}

export function csiDriverContract(name: string, make: MakeCsiDriverWorld): void {
  const sentence: Sentence = (words, check) => {
    test(`${name}: ${words}`, async (t) => {
      const world = await make(t);
      await check(world, verbsOf(world));
    });
  };
  identitySentences(sentence);
  climbingSentences(sentence);
  descendingSentences(sentence);
  refusalSentences(sentence);
}

type Sentence = (words: string, check: (world: CsiDriverWorld, verbs: Verbs) => Promise<void>) => void;

function identitySentences(sentence: Sentence): void {
  sentence('it says who it is, which node this is, and that it stages', async (_, { call }) => {
    const { name } = reply(await call(IdentityService.getPluginInfo, {}));
    assert.match(name, /^[A-Za-z0-9][-A-Za-z0-9.]{0,62}$/);
    assert.notEqual(reply(await call(IdentityService.probe, {})).ready, false);
    assert.notEqual(reply(await call(NodeService.nodeGetInfo, {})).nodeId, '');
    const { capabilities } = reply(await call(NodeService.nodeGetCapabilities, {}));
    const types = capabilities.map(({ type }) => (type?.$case === 'rpc' ? type.value.type : 0));
    assert.ok(types.includes(NodeCapability.STAGE_UNSTAGE_VOLUME), types.join());
  });
}

function climbingSentences(sentence: Sentence): void {
  sentence('staging mounts the volume once, however often it is asked', async (world, { stage }) => {
    reply(await stage());
    reply(await stage());
    assert.equal((await layers(world, world.staging)).length, 1);
  });
  sentence(
    'publishing makes the target and mounts the volume there once',
    async (world, { stage, publish }) => {
      reply(await stage());
      reply(await publish());
      reply(await publish());
      assert.equal((await layers(world, world.targets[0])).length, 1);
    },
  );
  sentence(
    'one volume is published in two places, and staged again meanwhile',
    async (world, { stage, publish }) => {
      reply(await stage());
      reply(await publish());
      reply(await publish({ targetPath: world.targets[1] }));
      reply(await stage());
      for (const path of [world.staging, ...world.targets])
        assert.equal((await layers(world, path)).length, 1);
    },
  );
  sentence('a read-only publication is a read-only mount', async (world, { stage, publish }) => {
    reply(await stage());
    reply(await publish({ readonly: true }));
    const [options] = await layers(world, world.targets[0]);
    assert.ok(options?.includes('ro'), options?.join());
  });
  sentence('what was written is there after all is taken down and set up again', async (world, verbs) => {
    const {
      host,
      targets: [target],
    } = world;
    const file = `${target}/kept` as AbsolutePath;
    reply(await verbs.stage());
    reply(await verbs.publish());
    assert.ok((await host.writeFile(file, Buffer.from('kept'), { mode: 0o600, durable: true })).ok);
    reply(await verbs.unpublish());
    reply(await verbs.unstage());
    reply(await verbs.stage());
    reply(await verbs.publish());
    const read = await host.readFile(file, 100);
    assert.equal(read.ok && Buffer.from(read.value).toString(), 'kept');
  });
}

function descendingSentences(sentence: Sentence): void {
  sentence(
    'unpublishing takes the mount and the target away, also when there is none',
    async (world, verbs) => {
      reply(await verbs.unpublish());
      reply(await verbs.stage());
      reply(await verbs.publish());
      reply(await verbs.publish({ targetPath: world.targets[1] }));
      reply(await verbs.unpublish());
      reply(await verbs.unpublish());
      assert.equal((await layers(world, world.targets[0])).length, 0);
      assert.equal(await kindOf(world, world.targets[0]), 'absent');
      assert.equal((await layers(world, world.targets[1])).length, 1);
    },
  );
  sentence(
    'unstaging takes the mount away and leaves the directory, also when there is none',
    async (world, verbs) => {
      reply(await verbs.unstage());
      reply(await verbs.stage());
      reply(await verbs.unstage());
      reply(await verbs.unstage());
      assert.equal((await layers(world, world.staging)).length, 0);
      assert.equal(await kindOf(world, world.staging), 'directory');
    },
  );
}

function refusalSentences(sentence: Sentence): void {
  sentence('publishing before staging is refused, and nothing is mounted', async (world, { publish }) => {
    refused(await publish(), FAILED_PRECONDITION);
    assert.equal((await layers(world, world.targets[0])).length, 0);
  });
  sentence('a volume that does not exist is not found', async ({ staging }, { stage, publish }) => {
    refused(await stage({ volumeId: 'no-such-volume' }), NOT_FOUND);
    refused(await publish({ volumeId: 'no-such-volume', stagingTargetPath: staging }), NOT_FOUND);
  });
  sentence(
    'a request that lacks what it must have is invalid',
    async (_, { stage, unstage, publish, unpublish }) => {
      refused(await stage({ volumeId: '' }), INVALID_ARGUMENT);
      refused(await stage({ stagingTargetPath: '' }), INVALID_ARGUMENT);
      refused(await stage({ volumeCapability: undefined }), INVALID_ARGUMENT);
      refused(await unstage({ volumeId: '' }), INVALID_ARGUMENT);
      refused(await unstage({ stagingTargetPath: '' }), INVALID_ARGUMENT);
      refused(await publish({ volumeId: '' }), INVALID_ARGUMENT);
      refused(await publish({ targetPath: '' }), INVALID_ARGUMENT);
      refused(await publish({ volumeCapability: undefined }), INVALID_ARGUMENT);
      refused(await unpublish({ volumeId: '' }), INVALID_ARGUMENT);
      refused(await unpublish({ targetPath: '' }), INVALID_ARGUMENT);
    },
  );
}
