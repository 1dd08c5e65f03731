/** The safety net: now and then belief is compared with what the kernel shows, and everything is planned again. */
import type { Belief } from '../model/belief.ts';
import type { Cancel, Host } from '../../mount/host.ts';
import type { Ground } from '../../mount/ground.ts';
import type { MountTable } from '../../mount/mount-table.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import { isCoverFailure } from '../model/actual-state.ts';
import { createFileSystemLook } from './file-system-look.ts';
import type { Log } from '../../mount/process/log.ts';
import { lookAtDevices, type ShownDevices, type ShownVolume } from '../recovery/pod-device.ts';
import type { verifyMounts } from '../recovery/verify.ts';

export interface ResyncParts {
  readonly host: Host;
  readonly layout: Layout;
  readonly ground: Pick<Ground, 'strangerOver'>;
  readonly verify: typeof verifyMounts;
  readonly log: Log;
  readonly everyMs: number;
  /** What is not mounted as believed becomes unsure. */
  readonly belief: Belief;
  readonly isBusy: (volume: VolumeId) => boolean;
  readonly onDoubt: (volume: VolumeId) => void;
  /** `changed`: an operation of these has ended since it was asked for. */
  readonly onTable: (table: MountTable, changed: ReadonlySet<VolumeId>) => void;
  /** What lay over it is gone: whatever waited for that need not wait. */
  readonly onRegained: (volume: VolumeId) => void;
  readonly onEnd: () => void;
}

export interface Resync {
  start(): void;
  stop(): void;
  /** An operation of the volume ended: a table asked for before may be older than it. */
  changed(volume: VolumeId): void;
}

export function createResync(parts: ResyncParts): Resync {
  const { host, layout, log, belief, ground, verify } = parts;
  const actual = belief.volumes;
  const lookAtFileSystems = createFileSystemLook({
    host,
    layout,
    log,
    belief,
    isBusy: parts.isBusy,
    onFound: parts.onDoubt,
  });
  let changedWhileReading = new Set<VolumeId>();
  let cancel: Cancel = () => {};
  let stopped = false;

  function schedule(): void {
    cancel = host.timer(parts.everyMs, () => {
      void compare().then(() => {
        if (!stopped) schedule();
      });
    });
  }

  async function compare(): Promise<void> {
    const changed = new Set<VolumeId>();
    changedWhileReading = changed;
    const table = await host.readMountTable(layout.root);
    // Without a table there is nothing to judge a device by.
    const shown = await lookAtDevices(host, layout, table.ok ? believedPresent() : []);
    if (stopped) return;
    if (table.ok) {
      distrustLost(table.value, shown, changed);
      parts.onTable(table.value, changed);
    } else log.warn('mount table unreadable', { code: table.failure.code });
    parts.onEnd();
    lookAtFileSystems();
  }

  function believedPresent(): readonly ShownVolume[] {
    return [...actual.values()].map(({ spec, publications }) => {
      const present = [...publications.values()].filter(({ presence }) => presence.kind === 'present');
      return { spec, places: present.map((one) => one.spec) };
    });
  }

  function distrustLost(table: MountTable, shown: ShownDevices, changed: ReadonlySet<VolumeId>): void {
    for (const [id, before] of actual) {
      if (changed.has(id) || parts.isBusy(id)) continue;
      const { volume, losses, regained } = verify(before, table, shown, layout, ground);
      for (const { publication, failure } of losses) {
        const { code, message, blocker } = failure;
        log.warn(isCoverFailure(failure) ? 'mount covered' : 'mount lost', {
          volume: id,
          publication,
          code,
          message,
          blocker,
        });
      }
      if (volume === before) continue;
      belief.observe(volume);
      if (regained) log.info('mount seen again', { volume: id });
      if (regained) parts.onRegained(id);
      else if (losses.length > 0) parts.onDoubt(id);
    }
  }

  return {
    start: schedule,
    stop() {
      stopped = true;
      cancel();
    },
    changed: (volume) => changedWhileReading.add(volume),
  };
}
