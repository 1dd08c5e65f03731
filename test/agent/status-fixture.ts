/** A node with one of everything, for the tests of status, explain, table and the command line. */
import { parseAbsolutePath, type AbsolutePath } from '../../mount/host.ts';
import type { SocketIdentity } from '../../mount/remote-call.ts';
import { fail } from '../../mount/failure.ts';
import { createLayout } from '../../plugins/layout/layout.ts';
import { NO_SECRETS } from '../../plugins/plugin.ts';
import {
  type Bytes,
  bytesFrom,
  type ContentVolumeSpec,
  type CsiVolumeSpec,
  type EmptyDirVolumeSpec,
  parsePodUid,
  podVolumeId,
  type PodReference,
  type PodUid,
  publicationKey,
  type PublicationSpec,
  type VolumeSpec,
} from '../../plugins/volume.ts';
import {
  ABSENT,
  type ActualPublication,
  type ActualVolume,
  PRESENT,
  type Presence,
} from '../../reconciler/model/actual-state.ts';
import type { DesiredState, DesiredVolume } from '../../reconciler/model/desired-state.ts';
import type { Obstacle } from '../../reconciler/model/obstacle.ts';
import type { ManifestKeeper } from '../../agent/source/manifest-keeper.ts';
import type { StatusFacts } from '../../agent/status/status-facts.ts';
import { csiSpec } from '../plugins/csi-spec.ts';

export function path(text: string): AbsolutePath {
  const parsed = parseAbsolutePath(text);
  if (parsed === undefined) throw new Error(text);
  return parsed;
}

export const LAYOUT = createLayout(path('/var/lib/mooring'));
export const DRIVER = 'loopfile.mooring.dev';
export const SECRET_CANARY = 'canary-8f1d2a';

export function pod(name: string, uid: string, namespace = 'default'): PodReference {
  const parsed: PodUid | undefined = parsePodUid(uid);
  if (parsed === undefined) throw new Error(uid);
  return { uid: parsed, name, namespace, serviceAccount: 'default' };
}

export function csi(specName: string, volumeHandle: string, driver = DRIVER): CsiVolumeSpec {
  return csiSpec(driver, volumeHandle, specName, {
    mountOptions: [`password=${SECRET_CANARY}`],
    volumeAttributes: { token: SECRET_CANARY },
    attachRequired: false,
  });
}

/** Gibibytes as CSI counts. */
export function gib(count: number): Bytes {
  return bytesFrom(count * 2 ** 30);
}

export function emptyDir(owner: PodReference, name: string): EmptyDirVolumeSpec {
  return {
    kind: 'empty-dir',
    id: podVolumeId('kubernetes.io/empty-dir', owner.uid, name),
    pod: owner.uid,
    name,
    medium: 'disk',
    sizeLimitBytes: 0,
  };
}

export function secret(owner: PodReference, name: string): ContentVolumeSpec {
  return { kind: 'secret', id: podVolumeId('kubernetes.io/secret', owner.uid, name), pod: owner.uid, name };
}

export function publication(owner: PodReference, specName: string): PublicationSpec {
  return {
    key: publicationKey(owner.uid, specName),
    pod: owner,
    specName,
    readOnly: false,
    origin: `${owner.name}.yaml`,
  };
}

function nameOf(spec: VolumeSpec): string {
  if (spec.kind === 'csi') return spec.specName;
  return 'name' in spec ? spec.name : spec.kind;
}

export function wanted(spec: VolumeSpec, ...owners: readonly PodReference[]): DesiredVolume {
  return {
    spec,
    secrets: NO_SECRETS,
    blocked: undefined,
    publications: new Map(
      owners.map((owner) => {
        const one = publication(owner, nameOf(spec));
        return [one.key, { spec: one, generation: '', files: undefined, tokens: undefined }];
      }),
    ),
    size: undefined,
  };
}

export function actual(
  spec: VolumeSpec,
  staged: Presence,
  published: Presence,
  ...owners: readonly PodReference[]
): ActualVolume {
  return {
    spec,
    needs: { attach: false, stage: spec.kind === 'csi', expand: spec.kind === 'csi' },
    attached: ABSENT,
    staged,
    publishContext: { [SECRET_CANARY]: SECRET_CANARY },
    stagedMount: undefined,
    publications: new Map(
      owners.map((owner) => {
        const one = publication(owner, nameOf(spec));
        const entry: ActualPublication = { spec: one, presence: published, generation: '', mount: undefined };
        return [one.key, entry];
      }),
    ),
    sizeBytes: undefined,
    refusedExpansion: undefined,
    quarantine: undefined,
  };
}

export function obstacle(volume: VolumeSpec, rest: Partial<Obstacle>): Obstacle {
  return {
    kind: 'waiting-retry',
    volume: volume.id,
    publication: undefined,
    operation: 'stage',
    code: 'driver-busy',
    message: 'the driver is busy',
    blocker: undefined,
    sinceMs: 959_000,
    nextRetryMs: 1_012_000,
    attempts: 3,
    lastFailure: undefined,
    step: undefined,
    overdue: false,
    ...rest,
  };
}

export function desired(volumes: readonly DesiredVolume[], rest: Partial<DesiredState> = {}): DesiredState {
  return {
    complete: true,
    volumes: new Map(volumes.map((volume) => [volume.spec.id, volume])),
    frozenPods: new Set(),
    unknownOrigins: new Set(),
    unresolved: [],
    outOfService: false,
    lostAttachments: new Set(),
    attachmentUids: new Map(),
    ...rest,
  };
}

/** Every manifest is where it was. */
export const NO_MANIFESTS: ManifestKeeper = {
  held: () => new Map(),
  replaced: () => undefined,
  accept: async () => fail({ code: 'reference-missing', message: 'there is none', effect: 'none' }),
  missing: () => [],
  forget: () => {},
};

export function facts(rest: Partial<StatusFacts>): StatusFacts {
  return {
    nodeName: 'worker-1',
    desired: desired([]),
    pods: [],
    rejected: [],
    massRemoval: undefined,
    cluster: undefined,
    held: new Map(),
    replaced: undefined,
    persistentVolumes: new Map(),
    unresolvedSinceMs: () => 970_000,
    statistics: { of: () => undefined, ofStorage: () => undefined, owedBy: () => 0 },
    actual: new Map(),
    running: [],
    obstacles: [],
    drivers: [],
    refusedDrivers: [],
    unreadableRecords: [],
    abandonedCalls: 0,
    startedMs: 0,
    nowMs: 1_000_000,
    wallMs: Date.UTC(2026, 10, 21, 12, 0, 0),
    ...rest,
  };
}

const SOCKET: SocketIdentity = { path: path('/var/lib/mooring/plugins/loopfile/csi.sock'), inode: 7 };

export const WEB = pod('web', '11111111-1111-4111-8111-111111111111');
export const DB = pod('db', '22222222-2222-4222-8222-222222222222');
export const JOB = pod('nightly-report-generator', '33333333-3333-4333-8333-333333333333', 'analytics');
export const GONE = pod('old', '44444444-4444-4444-8444-444444444444');
export const TORN = pod('typo', '55555555-5555-4555-8555-555555555555');

export const DATA = csi('data', 'vol-data');
export const LOGS = csi('pvc-0f3a9c52-7b1e-4b43-9a55-2d7c3f1e8b60', 'vol-logs');
export const REMOTE = csi('archive', 'vol-archive', 'nfs.csi.k8s.io');
export const OLD = csi('old-data', 'vol-old');

/** Ready pod, waiting pod, pod without driver, pod on its way down, pod with a broken reference. */
export function richFacts(): StatusFacts {
  const cache = emptyDir(WEB, 'cache');
  const token = secret(WEB, 'token');
  const oldKey = publicationKey(GONE.uid, 'old-data');
  const volumes = [
    wanted(DATA, WEB),
    wanted(cache, WEB),
    wanted(token, WEB),
    wanted(LOGS, DB),
    wanted(REMOTE, JOB),
  ];
  return facts({
    desired: desired(volumes, {
      unresolved: [
        {
          pod: TORN,
          volumeName: 'settings',
          failure: {
            code: 'reference-missing',
            message: 'there is no ConfigMap default/settings',
            effect: 'none',
            blocker: 'ConfigMap default/settings',
          },
        },
      ],
      unknownOrigins: new Set(['broken.yaml']),
    }),
    pods: [WEB, DB, JOB, TORN],
    rejected: [
      {
        origin: 'bad.yaml#2',
        subject: 'Pod default/bad',
        field: 'spec.volumes[0].csi.driver',
        message: 'expected a driver name',
      },
    ],
    actual: new Map([
      [DATA.id, actual(DATA, PRESENT, PRESENT, WEB)],
      [cache.id, actual(cache, ABSENT, PRESENT, WEB)],
      [token.id, actual(token, ABSENT, PRESENT, WEB)],
      [LOGS.id, actual(LOGS, { kind: 'unsure', because: 'begun' }, ABSENT)],
      [OLD.id, actual(OLD, PRESENT, PRESENT, GONE)],
    ]),
    obstacles: [
      obstacle(LOGS, {}),
      obstacle(REMOTE, {
        kind: 'waiting-driver',
        code: 'driver-not-registered',
        message: 'the driver is not registered on this node',
        nextRetryMs: undefined,
        attempts: 0,
        sinceMs: 400_000,
      }),
      obstacle(OLD, {
        operation: 'unpublish',
        publication: oldKey,
        code: 'mount-busy',
        sinceMs: 940_000,
        nextRetryMs: 1_004_000,
        attempts: 5,
        message: 'the mount is in use',
        blocker: 'pid 4711 (tail)',
      }),
    ],
    drivers: [
      {
        name: DRIVER,
        endpoint: SOCKET,
        life: '1 of 0',
        registrationSocket: undefined,
        vendorVersion: '0.1.0',
        nodeId: 'worker-1',
        volumesMax: 64,
        topology: {},
        nodeCapabilities: new Set([1]),
        controllerCapabilities: undefined,
        registeredAtMs: 5_000,
      },
    ],
    refusedDrivers: [
      {
        socket: path('/var/lib/mooring/plugins_registry/nfs-reg.sock'),
        name: 'nfs.csi.k8s.io',
        reason: 'its endpoint /tmp/csi.sock is outside the plug-in directories',
        code: 'endpoint-unsafe',
      },
    ],
  });
}
