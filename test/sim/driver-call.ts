/** The calls about one volume, as a driver receives them and as the oracle judges them. */
import type {
  ControllerPublishVolumeRequest,
  ControllerUnpublishVolumeRequest,
  NodeExpandVolumeRequest,
  NodeGetVolumeHealthRequest,
  NodeGetVolumeStatsRequest,
  NodePublishVolumeRequest,
  NodeStageVolumeRequest,
  NodeUnpublishVolumeRequest,
  NodeUnstageVolumeRequest,
} from '../../plugins/csi/wire/generated/csi.ts';

export type VolumeCallRecord =
  | { readonly method: 'ControllerPublishVolume'; readonly request: ControllerPublishVolumeRequest }
  | { readonly method: 'ControllerUnpublishVolume'; readonly request: ControllerUnpublishVolumeRequest }
  | { readonly method: 'NodeStageVolume'; readonly request: NodeStageVolumeRequest }
  | { readonly method: 'NodeUnstageVolume'; readonly request: NodeUnstageVolumeRequest }
  | { readonly method: 'NodePublishVolume'; readonly request: NodePublishVolumeRequest }
  | { readonly method: 'NodeUnpublishVolume'; readonly request: NodeUnpublishVolumeRequest }
  | { readonly method: 'NodeExpandVolume'; readonly request: NodeExpandVolumeRequest }
  | Question;

/** Changes nothing. */
export type Question =
  | { readonly method: 'NodeGetVolumeStats'; readonly request: NodeGetVolumeStatsRequest }
  | { readonly method: 'NodeGetVolumeHealth'; readonly request: NodeGetVolumeHealthRequest };

/** The calls that climb or descend the ladder. */
export type RungCall = Exclude<VolumeCallRecord, Question | { readonly method: 'NodeExpandVolume' }>;

const VOLUME_METHODS: ReadonlySet<string> = new Set([
  'ControllerPublishVolume',
  'ControllerUnpublishVolume',
  'NodeStageVolume',
  'NodeUnstageVolume',
  'NodePublishVolume',
  'NodeUnpublishVolume',
  'NodeExpandVolume',
  'NodeGetVolumeStats',
  'NodeGetVolumeHealth',
] satisfies VolumeCallRecord['method'][]);

export function isVolumeMethod(method: string): method is VolumeCallRecord['method'] {
  return VOLUME_METHODS.has(method);
}

export function isQuestion(call: VolumeCallRecord): call is Question {
  return call.method === 'NodeGetVolumeStats' || call.method === 'NodeGetVolumeHealth';
}

/** The required field that is missing, by its name for people. */
export function missingFrom({ method, request }: VolumeCallRecord): string | undefined {
  if (request.volumeId === '') return 'volume id';
  if ('targetPath' in request && request.targetPath === '') return 'target path';
  const staging = method === 'NodeStageVolume' || method === 'NodeUnstageVolume';
  if (staging && request.stagingTargetPath === '') return 'staging path';
  if ('volumePath' in request && request.volumePath === '') return 'volume path';
  return method !== 'NodeExpandVolume' &&
    'volumeCapability' in request &&
    request.volumeCapability === undefined
    ? 'capability'
    : undefined;
}

export function isRungCall(call: VolumeCallRecord): call is RungCall {
  return call.method !== 'NodeExpandVolume' && !isQuestion(call);
}

export function isTeardown({ method }: VolumeCallRecord): boolean {
  return method === 'NodeUnpublishVolume' || method === 'NodeUnstageVolume';
}

/** The path it is about; empty for the controller's. */
export function placeOf({ request }: VolumeCallRecord): string {
  if ('targetPath' in request) return request.targetPath;
  if ('volumePath' in request) return request.volumePath;
  if ('volumePublishPath' in request && request.volumePublishPath !== '') return request.volumePublishPath;
  return 'stagingTargetPath' in request ? request.stagingTargetPath : '';
}

/** What CSI says of each number that the simulation speaks of. */
export const STATUS = {
  invalidArgument: 3,
  notFound: 5,
  alreadyExists: 6,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
} as const;
