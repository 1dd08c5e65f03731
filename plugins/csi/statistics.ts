/** The two questions about a CSI volume that is there: how full is it (NodeGetVolumeStats), and how is it. */
import { assert, fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host, MountIdentity } from '../../mount/host.ts';
import type { RemoteMethod } from '../../mount/remote-call.ts';
import type { Layout } from '../layout/layout.ts';
import type { HealthStatement, StatisticsCall, UsageNumbers, VolumeStatistics } from '../plugin.ts';
import { bytesFrom, type CsiVolumeSpec } from '../volume.ts';
import type { CallLanes } from './call/volume-call-queue.ts';
import type { DriverInstance, DriverRegistry } from './driver/driver.ts';
import {
  NodeService,
  NodeServiceCapability_RPC_Type as NodeCapability,
  type NodeGetVolumeStatsResponse,
  type VolumeUsage,
  VolumeUsage_Unit as Unit,
} from './wire/generated/csi.ts';
import { conditionHealth, storageHealth, volumeHealth } from './health.ts';
import type { SecretMemory } from './call/secret-memory.ts';
import { failureOf, type Hidden, isUnreachable, methodName, sayable } from './wire/status.ts';
import { hiddenFrom, hiddenFromAll, type KnownVolume } from './call/hidden-words.ts';
import { notRegistered } from './call/volume-rpc.ts';

/**
 * Both questions together: so long may they keep a call waiting that changes the volume. CSI has one call in flight per
 * volume, and a driver that hangs on a dead file system must not keep the volume from coming down.
 */
export const QUESTION_DEADLINE_MS = 10_000;
/** As they are told to who waits for them. */
const QUESTIONS = 'NodeGetVolumeHealth or NodeGetVolumeStats';
/** How long a question about a driver as a whole may take: no volume waits for it. */
const STORAGE_DEADLINE_MS = 10_000;
/** Node capability of CSI 1.12 that 1.13 has reserved: NodeGetVolumeStats carries a condition. */
const VOLUME_CONDITION = 4;

export interface StatisticsParts {
  readonly host: Pick<Host, 'call' | 'mountIdOf' | 'nowMs'>;
  readonly layout: Pick<Layout, 'driverTarget' | 'mountPoint' | 'stagingPath'>;
  readonly drivers: Pick<DriverRegistry, 'get'> & { suspect(driver: string): void };
  /** Those of the calls that change volumes. */
  readonly lanes: Pick<CallLanes, 'tryRun'>;
  /** What the driver was given in calls that change volumes: it must not be shown. */
  readonly memory: Pick<SecretMemory, 'of' | 'knows'>;
  /** What is here of a driver. */
  readonly volumesOf: (driver: string) => readonly KnownVolume[];
}

export interface Statistics {
  /**
   * As VolumePlugin.statistics. Numbers are asked for only where one sees the mount that was proven to be the volume:
   * of one that went away a driver would tell the numbers of the node's own disk, and of somebody else's those of that.
   * Health is also asked for places that were only tried.
   * A driver that has neither capability is not called, and the answer says nothing.
   */
  statistics(call: StatisticsCall): Promise<Result<VolumeStatistics | 'busy'>>;
  /** Asks for the storage behind a driver; undefined: it has no capability for that. No secrets are sent. */
  storageHealth(driver: string): Promise<Result<readonly HealthStatement[] | undefined>>;
}

interface Places {
  /** Where the volume is published or was tried to be; undefined: it is only staged. */
  readonly published: AbsolutePath | undefined;
  /** Empty for a driver that does not stage. */
  readonly staging: AbsolutePath | '';
  /** Where the kernel must show `mount`. */
  readonly mountPoint: AbsolutePath;
  readonly mount: MountIdentity | undefined;
}

interface Question extends Places, Pick<StatisticsCall, 'stillThere'> {
  readonly spec: CsiVolumeSpec;
  readonly driver: DriverInstance;
  /** Asked when there is an answer: what was sent meanwhile may be in it. */
  readonly hidden: () => Hidden;
}

const NO_NUMBERS: VolumeStatistics = { bytes: undefined, inodes: undefined, health: undefined };

/** See `Statistics`. Both questions of a volume together take at most QUESTION_DEADLINE_MS in its lane. */
export function createStatistics(parts: StatisticsParts): Statistics {
  const { host, layout, drivers, lanes, memory, volumesOf } = parts;

  /** Undefined: not to be asked. */
  async function askNumbers(
    question: Question,
    withinMs: number,
  ): Promise<Result<VolumeStatistics | undefined>> {
    const { spec, driver, published, staging, hidden } = question;
    if (!question.stillThere()) return ok(undefined);
    const volumePath = published ?? question.mountPoint;
    const request = { volumeId: spec.volumeHandle, volumePath, stagingTargetPath: staging };
    const reply = await ask(parts, question, NodeService.nodeGetVolumeStats, request, withinMs);
    return reply.ok ? numbersOf(reply.value, driver, sayingWithout(hidden)) : reply;
  }

  /** Health first, and in half of the time: it is what explains why the numbers cannot be had. */
  async function answer(question: Question): Promise<Result<VolumeStatistics | 'busy'>> {
    const inTurn = <T>(call: () => Promise<T>): Promise<T | 'busy'> =>
      lanes.tryRun(question.spec.id, call, { name: QUESTIONS });
    const startedMs = host.nowMs();
    const health = await inTurn(() => askHealth(parts, question, QUESTION_DEADLINE_MS / 2));
    if (health === 'busy') return ok(health);
    // It may be at work on it still, and one question about a volume is enough.
    if (!health.ok && health.failure.code === 'driver-deadline') return health;
    const askedMs = host.nowMs() - startedMs;
    const seen = await isSeen(host, question);
    if (!seen.ok || !seen.value) return together(health, seen.ok ? ok(undefined) : seen);
    const numbers = await inTurn(() => askNumbers(question, QUESTION_DEADLINE_MS - askedMs));
    return numbers === 'busy' ? healthAlone(health) : together(health, numbers);
  }

  return {
    async statistics(call) {
      const { spec } = call;
      assert(spec.kind === 'csi', 'the CSI plugin is given CSI volumes');
      const driver = drivers.get(spec.driver);
      if (driver === undefined) return notRegistered(spec.driver);
      if (!answersAnything(driver)) return ok(NO_NUMBERS);
      const places = placesOf(layout, spec, driver, call);
      if (places === undefined) return ok(NO_NUMBERS);
      const hidden = (): Hidden => hiddenFrom(memory, { ...call, spec });
      return answer({ spec, driver, hidden, stillThere: call.stillThere, ...places });
    },
    async storageHealth(name) {
      const driver = drivers.get(name);
      if (driver === undefined) return notRegistered(name);
      if (!driver.nodeCapabilities.has(NodeCapability.GET_STORAGE_HEALTH)) return ok(undefined);
      // It has, and may tell, what it was given for each of its volumes.
      const hidden = (): Hidden => hiddenFromAll(memory, volumesOf(name));
      const about = { driver, hidden };
      const reply = await ask(
        parts,
        about,
        NodeService.nodeGetStorageHealth,
        { secrets: {} },
        STORAGE_DEADLINE_MS,
      );
      return reply.ok ? ok(storageHealth(reply.value, sayingWithout(hidden))) : reply;
    },
  };
}

/** Looked up once, and not at all for an answer without words. */
function sayingWithout(hidden: () => Hidden): (text: string) => string {
  let found: Hidden | undefined;
  return (text) => {
    if (text === '') return text;
    found ??= hidden();
    return sayable(text, found);
  };
}

async function ask<Request, Reply>(
  { host, drivers }: Pick<StatisticsParts, 'host' | 'drivers'>,
  { driver, hidden }: Pick<Question, 'driver' | 'hidden'>,
  method: RemoteMethod<Request, Reply>,
  request: Request,
  withinMs: number,
): Promise<Result<Reply>> {
  const reply = await host.call({ socket: driver.endpoint, method, request, deadlineMs: withinMs });
  if (reply.kind === 'ok') return ok(reply.reply);
  if (isUnreachable(reply)) drivers.suspect(driver.name);
  const name = methodName(method.path);
  return fail(failureOf(reply, { driver: driver.name, method: name, direction: 'climbing', ...hidden() }));
}

/** Undefined: there is no place of it at all. */
function placesOf(
  layout: StatisticsParts['layout'],
  spec: CsiVolumeSpec,
  { nodeCapabilities }: DriverInstance,
  { facts, publication, mount }: Pick<StatisticsCall, 'facts' | 'publication' | 'mount'>,
): Places | undefined {
  // Found on disk it may have been staged by a call that no record tells of.
  const mayBeStaged =
    spec.lifecycle !== 'Ephemeral' && nodeCapabilities.has(NodeCapability.STAGE_UNSTAGE_VOLUME);
  const staging = facts.needs.stage || mayBeStaged ? layout.stagingPath(spec) : '';
  if (publication === undefined) {
    if (staging === '' || !facts.needs.stage) return undefined;
    return { published: undefined, staging, mountPoint: staging, mount };
  }
  return {
    mount,
    published: layout.driverTarget(spec, publication),
    staging,
    mountPoint: layout.mountPoint(spec, publication),
  };
}

async function askHealth(
  parts: Pick<StatisticsParts, 'host' | 'drivers'>,
  question: Question,
  withinMs: number,
) {
  const { spec, driver, published, staging, hidden } = question;
  if (!driver.nodeCapabilities.has(NodeCapability.GET_VOLUME_HEALTH)) return ok(undefined);
  const request = {
    volumeId: spec.volumeHandle,
    volumePublishPath: published ?? '',
    stagingTargetPath: staging,
  };
  const reply = await ask(parts, question, NodeService.nodeGetVolumeHealth, request, withinMs);
  if (reply.ok) return volumeHealth(reply.value, spec.volumeHandle, sayingWithout(hidden));
  // It does not have what it said it had: as good as no capability.
  return reply.failure.code === 'driver-unimplemented' ? ok(undefined) : reply;
}

/**
 * Does one see the proven mount there? Looked at between the two turns in the lane: the file system may hang, and who
 * changes the volume waits for the driver's answers only.
 */
async function isSeen(
  host: Pick<Host, 'mountIdOf'>,
  { driver, mount, mountPoint }: Question,
): Promise<Result<boolean>> {
  if (!answersNumbers(driver) || mount === undefined) return ok(false);
  const seen = await host.mountIdOf(mountPoint);
  return seen.ok ? ok(seen.value === mount.mountId) : seen;
}

type Health = Result<readonly HealthStatement[] | undefined>;

/** The numbers have to wait until the next time. */
function healthAlone(health: Health): Result<VolumeStatistics | 'busy'> {
  if (!health.ok) return health;
  return ok(health.value === undefined ? 'busy' : { ...NO_NUMBERS, health: health.value });
}

function together(health: Health, numbers: Result<VolumeStatistics | undefined>): Result<VolumeStatistics> {
  if (!numbers.ok) {
    const isIll = health.ok && health.value !== undefined && health.value.length > 0;
    return isIll ? ok({ ...NO_NUMBERS, health: health.value, failure: numbers.failure }) : numbers;
  }
  if (numbers.value === undefined && !health.ok) return health;
  const { bytes, inodes, health: condition } = numbers.value ?? NO_NUMBERS;
  return ok({ bytes, inodes, health: (health.ok ? health.value : undefined) ?? condition });
}

function answersNumbers({ nodeCapabilities }: DriverInstance): boolean {
  return nodeCapabilities.has(NodeCapability.GET_VOLUME_STATS) || nodeCapabilities.has(VOLUME_CONDITION);
}

function answersAnything(driver: DriverInstance): boolean {
  return answersNumbers(driver) || driver.nodeCapabilities.has(NodeCapability.GET_VOLUME_HEALTH);
}

function numbersOf(
  { usage, volumeCondition }: NodeGetVolumeStatsResponse,
  { name, nodeCapabilities }: DriverInstance,
  say: (text: string) => string,
): Result<VolumeStatistics> {
  if (usage.some(({ total, used, available }) => total < 0n || used < 0n || available < 0n)) {
    const message = `${name} NodeGetVolumeStats: a negative number`;
    return fail({ code: 'driver-answer-invalid', message, effect: 'none', blocker: name });
  }
  const ofUnit = (unit: number): UsageNumbers | undefined => {
    const found = usage.find((one) => one.unit === unit);
    return found === undefined ? undefined : usageNumbers(found);
  };
  return ok({
    bytes: ofUnit(Unit.BYTES),
    inodes: ofUnit(Unit.INODES),
    health: nodeCapabilities.has(VOLUME_CONDITION) ? conditionHealth(volumeCondition, say) : undefined,
  });
}

/**
 * On the wire zero and "not said" are the same. A total of zero says nothing; and of a volume that has a total, used
 * and available cannot both be zero (a block volume's driver leaves both out).
 */
function usageNumbers({ total, used, available }: VolumeUsage): UsageNumbers | undefined {
  const saysRest = used > 0n || available > 0n;
  if (total === 0n && !saysRest) return undefined;
  return {
    total: total === 0n ? undefined : bytesFrom(total),
    used: saysRest ? bytesFrom(used) : undefined,
    available: saysRest ? bytesFrom(available) : undefined,
  };
}
