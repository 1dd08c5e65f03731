/** What is staged, before a pod is let in: is it what was staged, and does it serve? */
import { fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, FileSystemProbe, Host, MountIdentity, MountLookup } from '../../mount/host.ts';
import { deathFailure, findingOf } from '../guard/dead-file-system.ts';
import type { PublicationCall, VolumeCall } from '../plugin.ts';
import { type CsiVolumeSpec, isBlock, type VolumeId } from '../volume.ts';

/** What served so short a while ago is not asked by a broker of its own, in case it hangs, nor without need. */
const FRESH_MS = 1_000;

/** The volume may be gone, and nobody says so: of a driver that never mounts what it stages there is no end. */
const MISSED_MAX = 4_096;

export interface StagedMount {
  /**
   * After the driver's OK nothing was mounted where a mount was expected, and none was made since: one is expected
   * whatever is taken down meanwhile. Else a driver that only ever says OK would be believed after its unstage.
   */
  noteMissed(volume: VolumeId): void;
  isMissed(volume: VolumeId): boolean;
  /** After the driver's OK, of what is there: `file-system-dead` when it is read-only, and was not made so. */
  isMade(call: VolumeCall, staging: AbsolutePath, made: Made): Result<void>;
  /** The looks of one publish. */
  looksFor(call: PublicationCall, staging: AbsolutePath): StageLooks;
}

export interface Made {
  readonly mount: MountIdentity | undefined;
  /** A mount stood there before the call. */
  readonly wasThere: boolean;
}

/**
 * One question each. `staged-not-mounted`, `device-changed`: another one is there, or none. `file-system-dead`: nobody
 * new is published from it, however it came to be there (DR-11). `deadline-passed`: it does not answer.
 */
export interface StageLooks {
  first(): Promise<Result<void>>;
  /** Right before the driver is called: once more when the first look is old by now, or a call before it failed. */
  again(isDisturbed: boolean): Promise<Result<void>>;
}

export function createStagedMount(
  host: Pick<Host, 'lookUpMount' | 'probeFileSystem' | 'nowMs'>,
): StagedMount {
  const stagedAtMs = new Map<VolumeId, number>();
  const missed = new Set<VolumeId>();

  const isFresh = (atMs: number | undefined): boolean =>
    atMs !== undefined && host.nowMs() - atMs <= FRESH_MS;

  async function see({ spec, refresh }: PublicationCall, staging: AbsolutePath, mayHang: boolean) {
    const isJudged = !refresh && !isBlock(spec);
    if (mayHang && !isBlock(spec)) {
      const probed = await host.probeFileSystem(staging);
      // A dead file system does not tell which it is, and a refresh, which takes nothing from a pod, asks that alone.
      if (isJudged || !probed.ok || probed.value.kind !== 'dead') return probed;
    }
    const found = await host.lookUpMount(staging);
    return found.ok ? ok(probeOf(found.value, isJudged)) : found;
  }

  async function look(call: PublicationCall, staging: AbsolutePath, mayHang: boolean): Promise<Result<void>> {
    const { facts, spec, refresh } = call;
    const mount = facts.stagedMount;
    // Its driver may have ceased to stage: what stands of the volume tells of it all the same.
    if (mount === undefined) return ok(undefined);
    const seen = await see(call, staging, mayHang);
    if (!seen.ok) return fail({ ...seen.failure, effect: 'none' });
    const finding = findingOf(seen.value, { spec: spec as CsiVolumeSpec, mount });
    const mayBeReadOnly = refresh || isBlock(spec);
    if (!facts.needs.stage && finding === 'usable') return ok(undefined);
    return finding === 'usable' || (finding === 'read-only' && mayBeReadOnly)
      ? isTheOne(seen.value, mount, staging)
      : fail(deathFailure(staging, finding));
  }

  return {
    noteMissed(volume) {
      missed.delete(volume);
      missed.add(volume);
      const [oldest] = missed;
      if (missed.size > MISSED_MAX && oldest !== undefined) missed.delete(oldest);
    },
    isMissed: (volume) => missed.has(volume),
    isMade({ spec, facts }, staging, { mount, wasThere }) {
      if (mount !== undefined) missed.delete(spec.id);
      if (mount === undefined || isBlock(spec)) return ok(undefined);
      const before = facts.stagedMount;
      const isNew = !wasThere && before === undefined;
      const place = { spec: spec as CsiVolumeSpec, mount: isNew ? mount : before };
      const { device, readOnly = false } = mount;
      const finding = findingOf({ kind: 'alive', readOnly, device }, place);
      if (finding !== 'usable') return fail(deathFailure(staging, finding, 'unknown', device));
      stagedAtMs.set(spec.id, host.nowMs());
      return ok(undefined);
    },
    looksFor(call, staging) {
      const { id } = call.spec;
      const beganMs = host.nowMs();
      return {
        first() {
          const atMs = stagedAtMs.get(id);
          stagedAtMs.delete(id);
          return look(call, staging, !isFresh(atMs));
        },
        again: async (isDisturbed) =>
          isDisturbed || !isFresh(beganMs) ? look(call, staging, true) : ok(undefined),
      };
    },
  };
}

/**
 * A staged mount that went away leaves an empty directory, and the pod would write to the node's own disk; another
 * device under it is another volume's data (D-11).
 */
function isTheOne(probe: FileSystemProbe, mount: MountIdentity, staging: AbsolutePath): Result<void> {
  if (probe.kind !== 'alive') {
    const message = `the volume was staged, but nothing is mounted at ${staging} now`;
    return fail({ code: 'staged-not-mounted', message, effect: 'none', blocker: staging });
  }
  if (probe.device === mount.device) return ok(undefined);
  const message = `staged as device ${mount.device}, but ${staging} is device ${probe.device} now`;
  return fail({ code: 'device-changed', message, effect: 'none', blocker: staging });
}

function probeOf(found: MountLookup, isJudged: boolean): FileSystemProbe {
  if (!found.mounted) return { kind: 'unmounted' };
  const { death, device, readOnly = false } = found;
  return isJudged && death !== undefined
    ? { kind: 'dead', cause: death }
    : { kind: 'alive', readOnly, device };
}
