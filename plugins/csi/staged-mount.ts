/** What is staged, before a pod is let in: is it what was staged, and does it serve? */
import { fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import { deathFailure, findDeath } from '../dead-file-system.ts';
import type { PublicationCall, VolumeCall } from '../plugin.ts';
import type { CsiVolumeSpec, VolumeId } from '../volume.ts';

/** So young a mount was looked at when it was made: a pod that comes with its volume waits for no other look. */
const FRESH_MS = 1_000;

export interface StagedMount {
  /** `staged-not-mounted`, `device-changed`: another one is there, or none. */
  holds(call: VolumeCall, staging: AbsolutePath): Promise<Result<void>>;
  /**
   * `file-system-dead`: nobody new is published from it (DR-11); a refresh takes nothing from a pod that has it.
   * `deadline-passed`: it does not answer, and `holds`, which looks through the mount, would wait for it.
   */
  serves(call: PublicationCall, staging: AbsolutePath): Promise<Result<void>>;
  /** After the driver's OK. `wasThere`: a mount that stood before the call, which drivers say OK to, dead or not. */
  isNew(call: VolumeCall, staging: AbsolutePath, wasThere: boolean): Promise<Result<void>>;
}

export function createStagedMount(
  host: Pick<Host, 'lookUpMount' | 'probeFileSystem' | 'nowMs'>,
): StagedMount {
  const stagedAtMs = new Map<VolumeId, number>();

  async function look(
    call: VolumeCall,
    path: AbsolutePath,
    effect: 'none' | 'unknown',
    mayBeDead = false,
  ): Promise<Result<void>> {
    const spec = call.spec as CsiVolumeSpec;
    const found = await findDeath(host, { path, spec, mount: call.facts.stagedMount });
    if (!found.ok) return fail({ ...found.failure, effect });
    if (found.value === 'usable' || (mayBeDead && found.value !== 'silent')) return ok(undefined);
    return fail(deathFailure(path, found.value, effect));
  }

  return {
    /**
     * A staged mount that went away leaves an empty directory, and the pod would write to the node's own disk; another
     * device under it is another volume's data (decision 11).
     */
    async holds({ facts: { needs, stagedMount } }, staging) {
      if (!needs.stage || stagedMount === undefined) return ok(undefined);
      const now = await host.lookUpMount(staging);
      if (!now.ok) return fail({ ...now.failure, effect: 'none' });
      if (!now.value.mounted) {
        const message = `the volume was staged, but nothing is mounted at ${staging} now`;
        return fail({ code: 'staged-not-mounted', message, effect: 'none', blocker: staging });
      }
      if (now.value.device === stagedMount.device) return ok(undefined);
      const message = `staged as device ${stagedMount.device}, but ${staging} is device ${now.value.device} now`;
      return fail({ code: 'device-changed', message, effect: 'none', blocker: staging });
    },
    async serves(call, staging) {
      const { spec, facts, refresh } = call;
      if (!facts.needs.stage || facts.stagedMount === undefined) return ok(undefined);
      if (spec.kind === 'csi' && spec.mode === 'Block') return ok(undefined);
      const atMs = stagedAtMs.get(spec.id);
      stagedAtMs.delete(spec.id);
      const isFresh = atMs !== undefined && host.nowMs() - atMs <= FRESH_MS;
      return isFresh ? ok(undefined) : look(call, staging, 'none', refresh);
    },
    async isNew(call, staging, wasThere) {
      const { spec } = call;
      if (spec.kind === 'csi' && spec.mode === 'Block') return ok(undefined);
      if (wasThere) return look(call, staging, 'unknown');
      stagedAtMs.set(spec.id, host.nowMs());
      return ok(undefined);
    },
  };
}
