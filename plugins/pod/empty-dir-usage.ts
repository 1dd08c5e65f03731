/** How much of its sizeLimit an emptyDir takes: measured now and then, told when it is more, never acted on. */
import { fail, ok, type Result } from '../../mount/failure.ts';
import type { Host } from '../../mount/host.ts';
import { sizeText } from '../../mount/text/size-text.ts';
import type { Room, Usage } from '../../mount/usage.ts';
import type { Layout } from '../layout/layout.ts';
import type { HealthStatement, StatisticsCall, UsageNumbers, VolumeStatistics } from '../plugin.ts';
import { bytesFrom, type EmptyDirVolumeSpec, type VolumeId, type VolumeSpec } from '../volume.ts';

/** To count the files of a volume takes at most one part in so many of a processor, however many there are. */
const REST_SHARE = 20;
/** What hangs is asked again after this all the same. */
const REST_MS_MAX = 300_000;

/** Without a limit there is nothing to be told of: nobody is asked. */
export function isMeasured(spec: VolumeSpec): spec is EmptyDirVolumeSpec {
  return spec.kind === 'empty-dir' && spec.sizeLimitBytes > 0;
}

export class EmptyDirUsage {
  readonly #host: Pick<Host, 'measureUsage' | 'nowMs'>;
  readonly #layout: Pick<Layout, 'volumeDirectory'>;
  /** Until when what took long to count rests. */
  readonly #restsUntilMs = new Map<VolumeId, number>();

  constructor(host: Pick<Host, 'measureUsage' | 'nowMs'>, layout: Pick<Layout, 'volumeDirectory'>) {
    this.#host = host;
    this.#layout = layout;
  }

  /** As VolumePlugin.statistics. `too-large`: so many files that nobody knows whether it is within its limit. */
  async statistics({
    spec,
    publication,
    stillThere,
  }: StatisticsCall): Promise<Result<VolumeStatistics | 'busy'>> {
    if (!isMeasured(spec) || publication === undefined) return ok(NOTHING_SAID);
    const begunMs = this.#host.nowMs();
    if (this.#isResting(spec.id, begunMs) || !stillThere()) return ok('busy');
    const path = this.#layout.volumeDirectory(spec, publication);
    const scope = spec.medium === 'disk' ? 'tree' : 'file-system';
    const measured = await this.#host.measureUsage({ path, scope });
    const isCounted = measured.ok || measured.failure.isUnasked !== true;
    const tookMs = isCounted ? this.#host.nowMs() - begunMs : 0;
    this.#restsUntilMs.set(spec.id, begunMs + Math.min(tookMs * REST_SHARE, REST_MS_MAX));
    // What is not there (any more) is another one's to tell.
    if (!stillThere() || (!measured.ok && isAbsence(measured.failure.code))) return ok('busy');
    if (!measured.ok) return measured;
    return spec.medium === 'disk' ? onDisk(spec, measured.value) : ok(inMemory(measured.value));
  }

  #isResting(volume: VolumeId, nowMs: number): boolean {
    for (const [id, untilMs] of this.#restsUntilMs) if (untilMs <= nowMs) this.#restsUntilMs.delete(id);
    return this.#restsUntilMs.has(volume);
  }
}

const NOTHING_SAID: VolumeStatistics = { bytes: undefined, inodes: undefined, health: undefined };

function isAbsence(code: string): boolean {
  return code === 'path-missing' || code === 'mount-lost';
}

/** Nobody keeps it within its limit: a pod that takes more takes the node's disk. */
function onDisk({ sizeLimitBytes }: EmptyDirVolumeSpec, { bytes, inodes, isWhole }: Usage) {
  const limit = BigInt(sizeLimitBytes);
  const isOver = bytes.used > limit;
  if (!isWhole && !isOver) {
    const message = `it has more files than are counted at one time: more than ${inodes.used}`;
    return fail({ code: 'too-large', message, effect: 'none' });
  }
  const available = isOver ? 0n : limit - bytes.used;
  return ok<VolumeStatistics>({
    bytes: numbersOf({ used: bytes.used, total: limit, available }),
    inodes: isWhole ? numbersOf(inodes) : undefined,
    health: isOver ? [overLimit(bytes.used, limit, isWhole)] : [],
  });
}

function overLimit(used: bigint, limit: bigint, isWhole: boolean): HealthStatement {
  const taken = `${isWhole ? '' : 'at least '}${sizeText(bytesFrom(used))}`;
  const message = `it takes ${taken}, and its sizeLimit is ${sizeText(bytesFrom(limit))}; nothing is evicted`;
  return { saidBy: 'agent', status: 'over-limit', reason: 'SizeLimitExceeded', message };
}

/** The kernel keeps it within its limit. */
function inMemory({ bytes, inodes }: Usage): VolumeStatistics {
  return { bytes: numbersOf(bytes), inodes: numbersOf(inodes), health: [] };
}

export function numbersOf({ used, total, available }: Room): UsageNumbers {
  const count = (number: bigint | undefined) => (number === undefined ? undefined : bytesFrom(number));
  return { used: count(used), total: count(total), available: count(available) };
}
