import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallOracle } from '../../agent/drive/oracle/oracle.ts';
import type { OracleOptions } from '../../agent/drive/oracle/oracle-context.ts';
import type { DriverNature } from '../../agent/drive/oracle/oracle-nature.ts';
import type { RecordedCall, ReplyFields, RequestFields } from '../../agent/drive/oracle/recorded-call.ts';
import {
  ControllerServiceCapability_RPC_Type as Controller,
  NodeServiceCapability_RPC_Type as Node,
  PluginCapability_Service_Type as Service,
  type VolumeCapability,
  VolumeCapability_AccessMode_Mode as Mode,
} from '../../plugins/csi/wire/generated/csi.ts';
import { judge } from './judge.ts';

const STAGING = '/s/globalmount';
const TARGET = '/p/1/mount';
const OTHER_TARGET = '/p/2/mount';
const FAILED_PRECONDITION = 9;
const UNAVAILABLE = 14;
const ABORTED = 10;
const NOT_FOUND = 5;
const UNIMPLEMENTED = 12;
const INVALID_ARGUMENT = 3;

function capability(
  mode: Mode = Mode.SINGLE_NODE_WRITER,
  fsType = 'ext4',
  volumeMountGroup = '',
): VolumeCapability {
  return {
    accessType: { $case: 'mount', value: { fsType, mountFlags: [], volumeMountGroup } },
    accessMode: { mode },
  };
}

const CONTEXT = { pool: 'a' };
const REQUESTS: Readonly<Record<string, RequestFields>> = {
  ControllerPublishVolume: {
    nodeId: 'n1',
    volumeCapability: capability(),
    volumeContext: CONTEXT,
    readonly: false,
  },
  ControllerUnpublishVolume: { nodeId: 'n1' },
  NodeStageVolume: {
    stagingTargetPath: STAGING,
    volumeCapability: capability(),
    volumeContext: CONTEXT,
    publishContext: {},
  },
  NodeUnstageVolume: { stagingTargetPath: STAGING },
  NodePublishVolume: {
    stagingTargetPath: STAGING,
    targetPath: TARGET,
    volumeCapability: capability(),
    volumeContext: CONTEXT,
    publishContext: {},
    readonly: false,
  },
  NodeUnpublishVolume: { targetPath: TARGET },
  NodeGetVolumeStats: { volumePath: TARGET, stagingTargetPath: STAGING },
  NodeExpandVolume: { volumePath: TARGET, stagingTargetPath: STAGING },
  DeleteVolume: {},
};

interface Shown {
  readonly code?: number;
  readonly reply?: ReplyFields;
  readonly unknownBytes?: number;
  /** Starts this long before its turn, so that it overlaps what went before. */
  readonly earlyMs?: number;
  readonly volumeId?: string;
}

type Step = readonly [method: string, request?: RequestFields, shown?: Shown];

/** Calls one after the other, 10 ms each with 10 ms between. */
function sequence(...steps: readonly Step[]): readonly RecordedCall[] {
  return steps.map(([method, request = {}, shown = {}], index) => {
    const about = method in REQUESTS ? { volumeId: shown.volumeId ?? 'v1', ...REQUESTS[method] } : {};
    return {
      method,
      request: { ...about, ...request },
      unknownBytes: shown.unknownBytes ?? 0,
      startMs: index * 20 - (shown.earlyMs ?? 0),
      endMs: index * 20 + 10,
      code: shown.code ?? 0,
      message: '',
      reply: shown.reply,
      secretInMessage: false,
      injected: undefined,
      reachedDriver: true,
    };
  });
}

function nature(changes: Partial<DriverNature> = {}): DriverNature {
  return {
    services: new Set([Service.CONTROLLER_SERVICE]),
    node: new Set([Node.STAGE_UNSTAGE_VOLUME, Node.GET_VOLUME_STATS, Node.EXPAND_VOLUME]),
    controller: new Set([Controller.CREATE_DELETE_VOLUME]),
    nodeId: 'n1',
    starting: false,
    ...changes,
  };
}

const ATTACHING = nature({
  controller: new Set([Controller.CREATE_DELETE_VOLUME, Controller.PUBLISH_UNPUBLISH_VOLUME]),
});
const NOT_STAGING = nature({ node: new Set([Node.GET_VOLUME_STATS]) });

function duties(calls: readonly RecordedCall[], options: OracleOptions = {}): readonly string[] {
  const found = judge(calls, { nature: nature(), ...options }).map(({ duty }) => duty);
  return [...new Set(found)];
}

/** The legal sequence is quiet; the illegal one is named by its duty and by no other. */
function rule(
  duty: string,
  title: string,
  legal: readonly Step[],
  illegal: readonly Step[],
  options: OracleOptions = {},
): void {
  test(`${duty}: ${title}`, () => {
    assert.deepEqual(duties(sequence(...legal), options), []);
    assert.deepEqual(duties(sequence(...illegal), options), [duty]);
  });
}

const UP: readonly Step[] = [['NodeStageVolume'], ['NodePublishVolume']];
const DOWN: readonly Step[] = [['NodeUnpublishVolume'], ['NodeUnstageVolume']];
const CONTEXT_GIVEN = { publishContext: { device: 'd' } };
const GIVEN = { reply: CONTEXT_GIVEN };

test('a whole life without a fault is quiet, and nothing remains', () => {
  const oracle = new CallOracle({ nature: ATTACHING });
  const life = sequence(
    ['ControllerPublishVolume', {}, GIVEN],
    ['NodeStageVolume', CONTEXT_GIVEN],
    ['NodePublishVolume', CONTEXT_GIVEN],
    ['NodeGetVolumeStats'],
    ['NodeExpandVolume'],
    ...DOWN,
    ['ControllerUnpublishVolume'],
    ['DeleteVolume'],
  );
  for (const call of life) oracle.begin(call)(call);
  assert.deepEqual(oracle.violations, []);
  assert.deepEqual(oracle.remains(), []);
  assert.equal(oracle.calls, life.length);
});

test('what was set up and not taken down remains, in doubt or for sure', () => {
  const oracle = new CallOracle({ nature: nature() });
  for (const call of sequence(['NodeStageVolume'], ['NodePublishVolume', {}, { code: UNAVAILABLE }]))
    oracle.begin(call)(call);
  assert.deepEqual(oracle.remains(), ['v1 published at /p/1/mount: unsure', 'v1 staged: yes']);
});

rule(
  'A-053',
  'staged only after it was attached',
  [
    ['ControllerPublishVolume', {}, GIVEN],
    ['NodeStageVolume', CONTEXT_GIVEN],
  ],
  [['NodeStageVolume']],
  {
    nature: ATTACHING,
  },
);
rule('A-054', 'published only after its stage succeeded', UP, [['NodePublishVolume']]);
rule(
  'A-054',
  'a stage without an answer is no stage',
  [['NodeStageVolume', {}, { code: UNAVAILABLE }], ...UP],
  [['NodeStageVolume', {}, { code: UNAVAILABLE }], ['NodePublishVolume']],
);
rule(
  'A-054',
  'a failed unstage leaves no stage to publish from',
  [['NodeStageVolume'], ['NodeUnstageVolume', {}, { code: INVALID_ARGUMENT }], ['NodePublishVolume']],
  [['NodeStageVolume'], ['NodeUnstageVolume', {}, { code: UNAVAILABLE }], ['NodePublishVolume']],
);
rule(
  'A-055',
  'one staging path for a volume',
  [['NodeStageVolume'], ['NodeStageVolume']],
  [['NodeStageVolume'], ['NodeStageVolume', { stagingTargetPath: '/s/other' }]],
);
rule('A-055', 'paths are absolute', UP, [['NodeStageVolume', { stagingTargetPath: 's/globalmount' }]]);
rule(
  'A-057',
  'staged again with the same capability only',
  [['NodeStageVolume'], ['NodeStageVolume']],
  [
    ['NodeStageVolume'],
    ['NodeStageVolume', { volumeCapability: capability(Mode.SINGLE_NODE_WRITER, 'xfs') }],
  ],
);
rule(
  'A-058',
  'unstaged only when every target is down',
  [
    ...UP,
    ['NodePublishVolume', { targetPath: OTHER_TARGET }],
    ['NodeUnpublishVolume', { targetPath: OTHER_TARGET }],
    ...DOWN,
  ],
  [...UP, ['NodePublishVolume', { targetPath: OTHER_TARGET }], ...DOWN],
);
rule(
  'A-058',
  'a publish in doubt counts as published; one that was refused does not',
  [['NodeStageVolume'], ['NodePublishVolume', {}, { code: INVALID_ARGUMENT }], ['NodeUnstageVolume']],
  [['NodeStageVolume'], ['NodePublishVolume', {}, { code: UNAVAILABLE }], ['NodeUnstageVolume']],
);
rule(
  'A-058',
  'NOT_FOUND ends a teardown, ABORTED does not',
  [...UP, ['NodeUnpublishVolume', {}, { code: NOT_FOUND }], ['NodeUnstageVolume']],
  [...UP, ['NodeUnpublishVolume', {}, { code: ABORTED }], ['NodeUnstageVolume']],
);
rule('A-060', 'staging_target_path for a driver that stages', UP, [
  ['NodeStageVolume'],
  ['NodePublishVolume', { stagingTargetPath: '' }],
]);
rule(
  'A-060',
  'no staging_target_path for a driver that does not stage',
  [['NodePublishVolume', { stagingTargetPath: '' }]],
  [['NodePublishVolume']],
  { nature: NOT_STAGING },
);
rule(
  'A-060',
  'published only after it was attached',
  [
    ['ControllerPublishVolume', {}, GIVEN],
    ['NodePublishVolume', { stagingTargetPath: '', ...CONTEXT_GIVEN }],
  ],
  [['NodePublishVolume', { stagingTargetPath: '' }]],
  { nature: { ...ATTACHING, node: new Set() } },
);
rule(
  'A-062',
  'not published again with another capability',
  [...UP, ['NodePublishVolume']],
  [...UP, ['NodePublishVolume', { volumeCapability: capability(Mode.MULTI_NODE_READER_ONLY) }]],
);
rule(
  'A-067',
  'detached only when it is published nowhere',
  [
    ['ControllerPublishVolume'],
    ['NodePublishVolume', { stagingTargetPath: '' }],
    ['NodeUnpublishVolume'],
    ['ControllerUnpublishVolume'],
  ],
  [
    ['ControllerPublishVolume'],
    ['NodePublishVolume', { stagingTargetPath: '' }],
    ['ControllerUnpublishVolume'],
  ],
  { nature: { ...ATTACHING, node: new Set() } },
);
rule(
  'A-086',
  'detached only when it is unstaged',
  [['ControllerPublishVolume'], ['NodeStageVolume'], ['NodeUnstageVolume'], ['ControllerUnpublishVolume']],
  [['ControllerPublishVolume'], ['NodeStageVolume'], ['ControllerUnpublishVolume']],
  { nature: ATTACHING },
);
rule(
  'A-030',
  'one call of a volume at a time; of two volumes as many as there are',
  [['NodeStageVolume'], ['NodeStageVolume', {}, { earlyMs: 15, volumeId: 'v2' }]],
  [['NodeStageVolume'], ['NodeStageVolume', {}, { earlyMs: 15 }]],
);
test('A-030: a call is open as long as its caller waits for it, whatever the driver does', () => {
  const calls = sequence(['NodeStageVolume'], ['NodeStageVolume', {}, { earlyMs: 15 }]);
  assert.deepEqual(duties(calls, { callerMs: 6 }), ['A-030']);
  assert.deepEqual(duties(calls, { callerMs: 5 }), []);
});
rule(
  'A-030',
  'a driver that may be called in parallel: at different targets only',
  [...UP, ['NodePublishVolume', { targetPath: OTHER_TARGET }, { earlyMs: 15 }]],
  [...UP, ['NodePublishVolume', {}, { earlyMs: 15 }]],
  { parallelPublish: true },
);
rule(
  'A-076',
  'stats never beside a call that changes',
  [...UP, ['NodeGetVolumeStats'], ['NodeUnpublishVolume']],
  [...UP, ['NodeGetVolumeStats'], ['NodeUnpublishVolume', {}, { earlyMs: 15 }]],
);
rule(
  'A-064',
  'access modes 6 and 7 only to a service that has SINGLE_NODE_MULTI_WRITER',
  [['NodeStageVolume', { volumeCapability: capability(Mode.SINGLE_NODE_WRITER) }]],
  [['NodeStageVolume', { volumeCapability: capability(Mode.SINGLE_NODE_MULTI_WRITER) }]],
);
rule(
  'A-064',
  'each service by its own capability',
  [
    ['ControllerPublishVolume'],
    ['NodeStageVolume', { volumeCapability: capability(Mode.SINGLE_NODE_SINGLE_WRITER) }],
  ],
  [['ControllerPublishVolume', { volumeCapability: capability(Mode.SINGLE_NODE_SINGLE_WRITER) }]],
  {
    nature: nature({
      node: new Set([Node.STAGE_UNSTAGE_VOLUME, Node.SINGLE_NODE_MULTI_WRITER]),
      controller: new Set([Controller.PUBLISH_UNPUBLISH_VOLUME]),
    }),
  },
);
test('A-064: a driver whose node alone has it is told so by no rule about attaching', () => {
  const withGate = nature({ node: new Set([Node.STAGE_UNSTAGE_VOLUME, Node.SINGLE_NODE_MULTI_WRITER]) });
  const calls = sequence([
    'NodeStageVolume',
    { volumeCapability: capability(Mode.SINGLE_NODE_MULTI_WRITER) },
  ]);
  assert.deepEqual(duties(calls, { nature: withGate }), []);
});
rule('A-022', 'volume_mount_group only with its capability', UP, [
  ['NodeStageVolume', { volumeCapability: capability(Mode.SINGLE_NODE_WRITER, 'ext4', '1000') }],
]);
rule('A-016', 'one access type and an access mode', UP, [
  ['NodeStageVolume', { volumeCapability: { accessType: undefined, accessMode: { mode: 1 } } }],
]);
rule('A-015', 'required fields are set', UP, [['NodeStageVolume', { volumeCapability: undefined }]]);
rule('A-015', 'no field that CSI does not have (force, fence)', DOWN, [
  ['NodeUnpublishVolume', {}, { unknownBytes: 2 }],
]);
rule(
  'A-019',
  'the same volume_context in every call; pod information may come with the publish',
  [
    ['NodeStageVolume'],
    ['NodePublishVolume', { volumeContext: { ...CONTEXT, 'csi.storage.k8s.io/pod.name': 'x' } }],
  ],
  [['NodeStageVolume'], ['NodePublishVolume', { volumeContext: { pool: 'b' } }]],
);
rule(
  'A-020',
  'publish_context exactly as it was answered',
  [
    ['ControllerPublishVolume', {}, GIVEN],
    ['NodeStageVolume', CONTEXT_GIVEN],
  ],
  [['ControllerPublishVolume', {}, GIVEN], ['NodeStageVolume']],
  { nature: ATTACHING },
);
rule('A-020', 'no publish_context without attaching', UP, [['NodeStageVolume', CONTEXT_GIVEN]]);
rule(
  'A-023',
  'readonly to the controller only with PUBLISH_READONLY',
  [['ControllerPublishVolume']],
  [['ControllerPublishVolume', { readonly: true }]],
  { nature: ATTACHING },
);
rule('A-008', 'no controller call to a driver without that service', UP, [['ControllerPublishVolume']], {
  nature: nature({ services: new Set(), controller: new Set() }),
});
rule(
  'A-008',
  'no stage for a driver that does not offer it',
  [['NodePublishVolume', { stagingTargetPath: '' }]],
  [['NodeStageVolume']],
  {
    nature: NOT_STAGING,
  },
);
rule(
  'A-068',
  'stats only where the volume is',
  [...UP, ['NodeGetVolumeStats']],
  [...UP, ['NodeGetVolumeStats', { volumePath: '/elsewhere' }]],
);
test('A-068: stats without the staging path are advised against, not forbidden', () => {
  const calls = sequence(...UP, ['NodeGetVolumeStats', { stagingTargetPath: '' }]);
  const found = judge(calls, { nature: nature() });
  assert.deepEqual(
    found.map(({ duty, level }) => [duty, level]),
    [['A-068', 'should']],
  );
});
test('A-068: what was never staged, as an inline volume is not, has no staging path', () => {
  const calls = sequence(
    ['NodePublishVolume', { stagingTargetPath: '' }],
    ['NodeGetVolumeStats', { stagingTargetPath: '' }],
  );
  const found = judge(calls, { nature: nature() });
  assert.deepEqual(
    found.filter(({ duty }) => duty === 'A-068'),
    [],
  );
});
rule('A-069', 'expanded only when it is staged', [...UP, ['NodeExpandVolume']], [['NodeExpandVolume']]);
rule('A-069', 'expanded only when the driver offers it', UP, [...UP, ['NodeExpandVolume']], {
  nature: nature({ node: new Set([Node.STAGE_UNSTAGE_VOLUME]) }),
});
rule(
  'A-071',
  'FAILED_PRECONDITION is not retried while the volume is in use; after a new stage it may be',
  [...UP, ['NodeExpandVolume', {}, { code: FAILED_PRECONDITION }], ...DOWN, ...UP, ['NodeExpandVolume']],
  [...UP, ['NodeExpandVolume', {}, { code: FAILED_PRECONDITION }], ['NodeExpandVolume']],
);
rule(
  'A-035',
  'UNIMPLEMENTED is not tried again before the capabilities are read again',
  [
    ...UP,
    ['NodeExpandVolume', {}, { code: UNIMPLEMENTED }],
    [
      'NodeGetCapabilities',
      {},
      {
        reply: {
          capabilities: [Node.STAGE_UNSTAGE_VOLUME, Node.EXPAND_VOLUME].map((type) => ({
            type: { $case: 'rpc', value: { type } },
          })),
        },
      },
    ],
    ['NodeExpandVolume'],
  ],
  [...UP, ['NodeExpandVolume', {}, { code: UNIMPLEMENTED }], ['NodeExpandVolume']],
);
rule(
  'A-032',
  'a call whose outcome is unknown is repeated with the same fields',
  [['NodeStageVolume'], ['NodePublishVolume', {}, { code: UNAVAILABLE }], ['NodePublishVolume']],
  [
    ['NodeStageVolume'],
    ['NodePublishVolume', {}, { code: UNAVAILABLE }],
    ['NodePublishVolume', { readonly: true }],
  ],
);
test('A-032: while the wish is steady, arguments never change; else they may', () => {
  const calls = sequence(...UP, ['NodePublishVolume', { readonly: true }]);
  assert.deepEqual(duties(calls), []);
  assert.deepEqual(duties(calls, { steadyWish: true }), ['A-032']);
});
rule(
  'A-085',
  'attached under the id that NodeGetInfo gave',
  [['ControllerPublishVolume']],
  [['ControllerPublishVolume', { nodeId: 'n2' }]],
  {
    nature: ATTACHING,
  },
);
rule(
  'A-087',
  'never detached from every node at once',
  [['ControllerUnpublishVolume']],
  [['ControllerUnpublishVolume', { nodeId: '' }]],
  {
    nature: ATTACHING,
  },
);
rule('A-013', 'maps of at most 4 KiB', UP, [
  ['NodeStageVolume', { volumeContext: { big: 'x'.repeat(4_096) } }],
]);
rule(
  'A-037',
  'keys of secrets are plain',
  [['NodeStageVolume', { secrets: { 'a.b-c_d': '[redacted]' } }]],
  [['NodeStageVolume', { secrets: { 'a/b': '[redacted]' } }]],
);
rule(
  'A-038',
  'secrets nowhere but in their field',
  [['NodeStageVolume', { secrets: { password: 'hunter2' } }]],
  [['NodeStageVolume', { volumeContext: { password: 'hunter2' } }]],
  { canaries: ['hunter2'] },
);
rule(
  'A-009',
  'no call while the driver says it is starting',
  [['Probe', {}, { reply: { ready: true } }], ['NodeStageVolume']],
  [['Probe', {}, { reply: { ready: false } }], ['NodeStageVolume']],
);
rule(
  'A-014',
  'a node id of at most 256 bytes',
  [['ControllerPublishVolume']],
  [['ControllerPublishVolume', { nodeId: 'n'.repeat(300) }]],
  {
    nature: { ...ATTACHING, nodeId: undefined },
  },
);

test('what the driver can do is learnt from the calls that go by', () => {
  const capabilities = (...types: readonly number[]) => ({
    reply: { capabilities: types.map((type) => ({ type: { $case: 'rpc', value: { type } } })) },
  });
  const found = judge(
    sequence(
      ['NodeGetCapabilities', {}, capabilities()],
      ['NodePublishVolume', { stagingTargetPath: '' }],
      ['NodeGetCapabilities', {}, capabilities(Node.STAGE_UNSTAGE_VOLUME)],
      ['NodePublishVolume', { targetPath: OTHER_TARGET }],
    ),
  );
  assert.deepEqual(
    found.map(({ duty }) => duty),
    ['A-054'],
  );
});

test('of a driver that lost its controller service and has it again nothing is known until it is asked', () => {
  const services = (...types: readonly number[]) => ({
    reply: { capabilities: types.map((type) => ({ type: { $case: 'service', value: { type } } })) },
  });
  const calls = sequence(
    ['GetPluginCapabilities', {}, services()],
    ['GetPluginCapabilities', {}, services(Service.CONTROLLER_SERVICE)],
    ['ControllerPublishVolume'],
  );
  assert.deepEqual(duties(calls, { nature: ATTACHING }), []);
  const without = sequence(['GetPluginCapabilities', {}, services()], ['ControllerPublishVolume']);
  assert.deepEqual(duties(without, { nature: ATTACHING }), ['A-008']);
});

test('after a reboot nothing is staged or published, and a volume is set up from the stage on', () => {
  const oracle = new CallOracle({ nature: nature() });
  for (const call of sequence(...UP)) oracle.begin(call)(call);
  oracle.forgetNode();
  assert.deepEqual(oracle.remains(), []);
  const [call] = sequence(['NodePublishVolume']);
  assert.ok(call !== undefined);
  oracle.begin(call)(call);
  assert.deepEqual(
    oracle.violations.map(({ duty }) => duty),
    ['A-054'],
  );
});
