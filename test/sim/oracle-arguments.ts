/** Do the calls carry what was wished, what the driver can take, and nothing else? */
import type { VolumeCapability } from '../../plugins/csi/wire/generated/csi.ts';
import { isQuestion, placeOf, type Question, type VolumeCallRecord } from './driver-call.ts';
import type { DriverNature } from './driver-nature.ts';
import type { History } from './oracle-history.ts';
import { CANARY } from './trace.ts';
import type { SimAccessMode, WishHistory } from './wish-history.ts';

type Violate = (invariant: string, text: string) => void;

export interface Judge {
  readonly violate: Violate;
  readonly isMounted: (path: string) => boolean;
  readonly recordsDamaged: () => boolean;
}

type Setup = Extract<VolumeCallRecord, { method: 'NodeStageVolume' | 'NodePublishVolume' }>;

const MODES = {
  singleNodeWriter: 1,
  multiNodeMultiWriter: 5,
  singleNodeSingleWriter: 6,
  singleNodeMultiWriter: 7,
};

const GROUP_OF_STAGE = 'group of the stage';

export function judgeArguments(
  call: VolumeCallRecord,
  history: History,
  nature: DriverNature,
  wish: WishHistory | undefined,
  judge: Judge,
): void {
  const { violate } = judge;
  const { method, request } = call;
  const { secrets = {}, ...plain } = request as { readonly secrets?: Record<string, string> };
  const text = jsonOf(plain);
  if (text.includes(CANARY))
    violate('INV-25', `${method} of ${request.volumeId} carries a secret in the open`);
  if (wish === undefined) return;
  judgeCapability(call, nature, wish, violate);
  judgeStagingPath(call, nature, wish, violate);
  if (!isQuestion(call) && !judge.recordsDamaged()) judgeStanding(call, history, violate);
  if (isQuestion(call)) return judgeQuestion(call, history, nature, judge);
  if (method === 'NodeStageVolume') judgeSecrets(method, secrets, wish.stageSecrets, violate);
  else if (method === 'NodePublishVolume') judgeSecrets(method, secrets, wish.publishSecrets, violate);
  else if (Object.keys(secrets).length > 0) violate('secrets', `${method} carries secrets that nobody named`);
  if (method === 'NodeExpandVolume') return judgeSize(call, wish, violate);
  if (method === 'NodeStageVolume' || method === 'NodePublishVolume')
    judgeSetup(call, jsonOf(stableOf(plain, call.request)), history, wish, violate);
}

/**
 * while anything of it may stand, one staging path, one capability and one volume context. The
 * group is the pod's, and one in all stages until it is unstaged; the controller may name the access mode
 * otherwise.
 */
function judgeStanding(call: Exclude<VolumeCallRecord, Question>, history: History, violate: Violate): void {
  const { method, request } = call;
  const isDown = history.attached === 'none' && history.staged === 'none' && history.published.size === 0;
  if (isDown) history.standing.clear();
  if (history.staged === 'none') history.standing.delete(GROUP_OF_STAGE);
  const told = new Map<string, string>();
  if ('volumeCapability' in request && request.volumeCapability !== undefined) {
    const { accessType, accessMode } = request.volumeCapability;
    const files = accessType?.$case === 'mount' ? { ...accessType.value, volumeMountGroup: '' } : undefined;
    told.set('access type', jsonOf({ type: accessType?.$case, files }));
    if (method === 'NodeStageVolume' && accessType?.$case === 'mount')
      told.set(GROUP_OF_STAGE, accessType.value.volumeMountGroup);
    const who = method === 'ControllerPublishVolume' ? 'controller' : 'node';
    told.set(`access mode for the ${who}`, String(accessMode?.mode));
  }
  if ('volumeContext' in request) told.set('context', jsonOf(withoutPodInfo(request.volumeContext)));
  if ('stagingTargetPath' in request && request.stagingTargetPath !== '')
    told.set('staging path', request.stagingTargetPath);
  for (const [what, text] of told) {
    const before = history.standing.get(what);
    if (before === undefined) history.standing.set(what, text);
    else if (before !== text)
      violate('A-062', `${method} of ${request.volumeId}, which stands with ${what} ${before}, with ${text}`);
  }
}

function judgeSetup(
  call: Setup,
  stable: string,
  history: History,
  wish: WishHistory,
  violate: Violate,
): void {
  const { method, request } = call;
  const context = JSON.stringify(withoutPodInfo(request.volumeContext));
  if (!wish.attributes.has(context))
    violate('INV-40', `${method} of ${request.volumeId} with attributes nobody wished: ${context}`);
  const access = request.volumeCapability?.accessType;
  if (request.volumeCapability?.accessMode === undefined || access === undefined)
    violate('order', `${method} of ${request.volumeId} without a capability`);
  if (access !== undefined && !wish.blocks.has(access.$case === 'block'))
    violate('order', `${method} of ${request.volumeId} as ${access.$case}`);
  if (wish.isChanged || wish.groups.size > 1) return;
  const key = `${method} ${placeOf(call)}`;
  const before = history.argumentsSeen.get(key);
  history.argumentsSeen.set(key, stable);
  if (before !== undefined && before !== stable)
    violate('INV-40', `${key}: arguments changed without a change of the wish: ${before} -> ${stable}`);
}

/** modes 6 and 7 only for a service that has the capability. A-022: a group only for a driver that takes it. */
function judgeCapability(
  { method, request }: VolumeCallRecord,
  nature: DriverNature,
  wish: WishHistory,
  violate: Violate,
): void {
  const capability: VolumeCapability | undefined =
    'volumeCapability' in request ? request.volumeCapability : undefined;
  if (capability === undefined) return;
  const isController = method === 'ControllerPublishVolume';
  const multiWriter = isController ? nature.controllerMultiWriter : nature.multiWriter;
  const right = [...wish.accessModes].map((one) => modeOf(one, multiWriter));
  const { accessMode, accessType } = capability;
  if (accessMode === undefined || !right.includes(accessMode.mode))
    violate('A-064', `${method} of ${request.volumeId} with access mode ${accessMode?.mode}, not ${right}`);
  const group = accessType?.$case === 'mount' ? accessType.value.volumeMountGroup : '';
  const mayHave = nature.mountGroup && !isController && wish.groups.has(group);
  if (group !== '' && !mayHave) violate('A-022', `${method} of ${request.volumeId} for the group ${group}`);
}

function modeOf(mode: SimAccessMode, multiWriter: boolean): number {
  if (mode === 'ReadWriteMany') return MODES.multiNodeMultiWriter;
  if (!multiWriter) return MODES.singleNodeWriter;
  return mode === 'ReadWriteOnce' ? MODES.singleNodeMultiWriter : MODES.singleNodeSingleWriter;
}

/** the staging path is set for a driver that stages, and for no other. */
function judgeStagingPath(
  { method, request }: VolumeCallRecord,
  nature: DriverNature,
  { ephemeral }: WishHistory,
  violate: Violate,
): void {
  if (!('stagingTargetPath' in request) || method === 'NodeUnstageVolume') return;
  const isSet = request.stagingTargetPath !== '';
  if (isSet === (nature.stages && !ephemeral)) return;
  // What was set up before the driver lost its staging is spoken of as it was set up.
  if (isSet && !ephemeral && method !== 'NodePublishVolume' && method !== 'NodeStageVolume') return;
  violate('A-068', `${method} of ${request.volumeId} with the staging path "${request.stagingTargetPath}"`);
}

/**
 * only what the driver has, and numbers only of what is there. Health may be asked of what was only
 * tried, and a crash can lie between the trying and the call.
 */
function judgeQuestion(
  call: Question,
  history: History,
  nature: DriverNature,
  { violate, isMounted }: Judge,
): void {
  const { method, request } = call;
  if (method === 'NodeGetVolumeHealth') {
    if (!nature.health) violate('A-068', `${method} of a driver that does not have it`);
    return;
  }
  if (!nature.statistics) violate('A-068', `${method} of a driver that does not have it`);
  const place = request.volumePath;
  const isStaged = history.staged !== 'none' && place === request.stagingTargetPath;
  if (!isStaged && !history.published.has(place) && !isMounted(place))
    violate('A-068', `${method} about ${place}, where nothing is`);
}

function judgeSize(
  { request }: Extract<VolumeCallRecord, { method: 'NodeExpandVolume' }>,
  wish: WishHistory,
  violate: Violate,
): void {
  const bytes = request.capacityRange?.requiredBytes;
  if (bytes === undefined || !wish.sizes.has(bytes))
    violate('A-070', `NodeExpandVolume of ${request.volumeId} to ${bytes}, which nobody wished`);
}

function judgeSecrets(
  method: string,
  secrets: Readonly<Record<string, string>>,
  wished: ReadonlySet<string> | undefined,
  violate: Violate,
): void {
  const carried = JSON.stringify(secrets);
  if (wished === undefined ? carried !== '{}' : !wished.has(carried))
    violate('secrets', `${method} carries ${carried.length} bytes of secrets that the wish does not name`);
}

const POD_INFO_PREFIX = 'csi.storage.k8s.io/';

function withoutPodInfo(context: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(context).filter(([key]) => !key.startsWith(POD_INFO_PREFIX)));
}

/** The context of an attachment is another one each time; the pod is told of only while a CSIDriver object says so. */
function stableOf(plain: object, { volumeContext }: Setup['request']): object {
  const { publishContext: _, ...stable } = plain as { readonly publishContext?: unknown };
  return { ...stable, volumeContext: withoutPodInfo(volumeContext) };
}

function jsonOf(value: object): string {
  return JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? String(one) : one));
}
