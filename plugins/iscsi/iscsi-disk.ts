/** The disk of a volume: the way to it found or made, its identity proven, its session ended behind the last one. */
import { done, fail, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, type DeviceNumber, type Host, isBelow } from '../../mount/host.ts';
import {
  type IscsiDisk,
  type IscsiLogin,
  type IscsiSession,
  type IscsiWay,
  isSameWay,
} from '../../mount/block-devices.ts';
import type { IscsiPlace } from '../layout/iscsi-layout.ts';
import type { Layout } from '../layout/layout.ts';
import type { VolumeCall } from '../plugin.ts';
import { doubtful, inOrder } from '../steps.ts';
import { chapSettings } from './chap.ts';
import { type ChosenDisk, chooseWay } from './disk-ways.ts';
import { type IscsiVolumeSpec, placeFromStage, titleOf } from './iscsi-traits.ts';
import { type SessionNote, SessionNotes } from './session-notes.ts';

export interface IscsiDisksParts {
  readonly host: Host;
  readonly layout: Layout;
}

/** udev makes a link here for each disk that comes. */
const LINKS = '/dev/disk/by-path' as AbsolutePath;
const MAPS = '/dev/mapper' as AbsolutePath;
const MULTIPATH_DAEMON = '/run/multipathd.pid' as AbsolutePath;
/** As long as the kubelet waits. */
const DISK_MS_MAX = 30_000;
const MAP_MS_MAX = 10_000;
/** A login through each portal, at one time, and both waits. */
const CONNECT_MS_MAX = 5 * 60_000;

/** Its callers see to it that one thing at a time is done of one target. */
export class IscsiDisks {
  readonly #host: Host;
  readonly #layout: Layout;
  readonly #notes: SessionNotes;

  constructor({ host, layout }: IscsiDisksParts) {
    this.#host = host;
    this.#layout = layout;
    this.#notes = new SessionNotes(host, layout);
  }

  /**
   * Logs in where nobody has; one way that is open is enough. Effect `unknown` of all that fails. `mounted`: the device
   * of what is mounted already, which is chosen if it still is the disk.
   */
  async connect(
    spec: IscsiVolumeSpec,
    call: VolumeCall,
    mounted: string | undefined,
  ): Promise<Result<ChosenDisk>> {
    call.step({ kind: 'working', deadlineMs: CONNECT_MS_MAX });
    const sessions = await this.#host.readIscsiSessions();
    if (!sessions.ok) return doubtful<never>(sessions);
    const chap = chapSettings(spec.chap, call.secrets.stage?.reveal() ?? {});
    call.progress('logging in');
    const entered = await Promise.all(
      waysOf(spec).map((way) => this.#enter({ ...way, ...chap }, sessions.value)),
    );
    const refused = entered.find((one) => !one.ok);
    const isOpen = entered.some((one) => one.ok);
    if (!isOpen && refused?.ok === false) return doubtful<never>(refused);
    call.progress('waiting for the disk');
    const disk = await this.#await(spec, call, mounted);
    // What the silent way would have shown is not known.
    return doubtful(disk.ok || refused?.ok !== false ? disk : refused);
  }

  async #enter(login: IscsiLogin, sessions: readonly IscsiSession[]): Promise<Result<void>> {
    const found = sessions.find((one) => isSameWay(one, login));
    if (found !== undefined) return this.#noteFound(found);
    const earlier = await this.#notes.find(login);
    if (!earlier.ok) return earlier;
    const noted = await this.#notes.write(login);
    if (!noted.ok) return noted;
    const entered = await this.#host.logInToIscsi(login);
    if (entered.ok) return entered.value === 'made' ? this.#noteMade(login) : this.#notes.remove(login);
    if (entered.failure.effect !== 'none') return entered;
    const forgotten = await this.#notes.giveUp(login, earlier.value);
    return forgotten.ok ? entered : forgotten;
  }

  /** The login of an agent that died then may have made it: from now on nothing else is taken for that. */
  async #noteFound(session: IscsiSession): Promise<Result<void>> {
    const notes = await this.#notes.readOf(session.iqn);
    if (!notes.ok) return notes;
    const isBegun = notes.value.some(
      (one) => isSameWay(one, session) && one.bootId === this.#host.bootId && one.number === undefined,
    );
    return isBegun ? this.#notes.write(session, session.number) : done;
  }

  /** Who ends it by hand and logs in again has another one, which is his. */
  async #noteMade(login: IscsiLogin): Promise<Result<void>> {
    const sessions = await this.#host.readIscsiSessions();
    if (!sessions.ok) return sessions;
    const made = sessions.value.find((one) => isSameWay(one, login));
    return made === undefined ? done : this.#notes.write(login, made.number);
  }

  /** Is it still the disk of this number? What was looked at before the mount may be another by now. */
  async prove(spec: IscsiVolumeSpec, device: DeviceNumber): Promise<Result<void>> {
    const disks = await this.#disksOf(spec);
    if (!disks.ok) return disks;
    if (disks.value.some((one) => one.device === device || one.map?.device === device)) return done;
    const message = `device ${device} was mounted, and ${titleOf(spec)} is another one now`;
    return fail({ code: 'device-changed', message, effect: 'unknown' });
  }

  async #await(
    spec: IscsiVolumeSpec,
    call: VolumeCall,
    mounted: string | undefined,
  ): Promise<Result<ChosenDisk>> {
    const look = () => this.#chosen(spec, mounted);
    const found = await look();
    if (!found.ok) return found;
    if (found.value !== undefined) return this.#joined(spec, found.value, call);
    const scanned = await this.#scan(spec);
    if (!scanned.ok) return scanned;
    const come = await this.#until(LINKS, DISK_MS_MAX, call, look);
    if (!come.ok) return come;
    return come.value === undefined ? this.#missing(spec) : this.#joined(spec, come.value, call);
  }

  async #missing(spec: IscsiVolumeSpec): Promise<Result<never>> {
    const sessions = await this.#host.readIscsiSessions();
    if (!sessions.ok) return sessions;
    const isOpen = sessions.value.some((one) => one.isLoggedIn && isWayOf(spec, one));
    const message = isOpen
      ? `${titleOf(spec)} has not come within ${DISK_MS_MAX / 1_000} s, though its target has let us in`
      : `the session with ${spec.iqn} waits for its portal`;
    const code = isOpen ? 'path-missing' : 'target-unreachable';
    return fail({ code, message, effect: 'unknown', blocker: spec.portal });
  }

  /** The target may have got the disk later than the session. */
  async #scan(spec: IscsiVolumeSpec): Promise<Result<void>> {
    const sessions = await this.#host.readIscsiSessions();
    if (!sessions.ok) return sessions;
    for (const session of sessions.value.filter((one) => one.isLoggedIn && isWayOf(spec, one))) {
      const scanned = await this.#host.scanIscsi(session);
      if (!scanned.ok) return scanned;
    }
    return done;
  }

  /** Several ways are joined by multipathd, which takes a moment; without it the first one is taken. */
  async #joined(spec: IscsiVolumeSpec, disk: ChosenDisk, call: VolumeCall): Promise<Result<ChosenDisk>> {
    const disks = await this.#disksOf(spec);
    if (!disks.ok) return disks;
    if (disks.value.length < 2 || disks.value.some(({ map }) => map !== undefined)) return ok(disk);
    const daemon = await this.#host.inspect(MULTIPATH_DAEMON);
    if (!daemon.ok || daemon.value.kind !== 'file') return daemon.ok ? ok(disk) : daemon;
    const joined = await this.#until(MAPS, MAP_MS_MAX, call, async () => {
      const now = await this.#disksOf(spec);
      return now.ok ? ok(now.value.find(({ map }) => map !== undefined)?.map) : now;
    });
    return joined.ok ? ok(joined.value ?? disk) : joined;
  }

  async #chosen(spec: IscsiVolumeSpec, mounted: string | undefined): Promise<Result<ChosenDisk | undefined>> {
    const sessions = await this.#host.readIscsiSessions();
    if (!sessions.ok) return sessions;
    const { iqn, lun } = spec;
    const disks = sessions.value.filter((one) => one.iqn === iqn).flatMap((session) => session.disks);
    const all = disks.filter((disk) => disk.lun === lun);
    return chooseWay(this.#host, { open: openDisks(spec, sessions.value), all }, mounted);
  }

  async #disksOf(spec: IscsiVolumeSpec): Promise<Result<readonly IscsiDisk[]>> {
    const sessions = await this.#host.readIscsiSessions();
    return sessions.ok ? ok(openDisks(spec, sessions.value)) : sessions;
  }

  /** Looks at each hint; undefined when the time is over or nobody wants it any more. */
  async #until<T>(
    directory: AbsolutePath,
    waitMs: number,
    call: VolumeCall,
    look: () => Promise<Result<T | undefined>>,
  ): Promise<Result<T | undefined>> {
    let wake: () => void = () => {};
    let isOver = false;
    let isHinted = true;
    const nudge = (): void => {
      isHinted = true;
      wake();
    };
    const unwatch = this.#host.watch(directory, nudge);
    const cancel = this.#host.timer(waitMs, () => {
      isOver = true;
      nudge();
    });
    try {
      for (;;) {
        if (!isHinted) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
        isHinted = false;
        const wasOver = isOver || !call.stillWanted();
        const found = await look();
        if (!found.ok || found.value !== undefined || wasOver) return found;
      }
    } finally {
      unwatch();
      cancel();
    }
  }

  /** Behind the last volume of the target here: ends the sessions that the agent has begun, and no other. */
  async leave({ iqn }: Pick<IscsiPlace, 'iqn'>): Promise<Result<void>> {
    const used = await this.#isUsed(iqn);
    if (!used.ok || used.value) return used.ok ? done : used;
    const notes = await this.#notes.readOf(iqn);
    if (!notes.ok) return notes;
    return inOrder(...notes.value.map((note) => () => this.#end(note)));
  }

  async #isUsed(iqn: string): Promise<Result<boolean>> {
    const stages = this.#layout.iscsiStages;
    const table = await this.#host.readMountTable(stages);
    if (!table.ok) return table;
    const staged = table.value.entries.filter(({ target }) => isBelow(target, stages));
    return ok(staged.some(({ target }) => placeFromStage(target.slice(stages.length + 1))?.iqn === iqn));
  }

  async #end(note: SessionNote): Promise<Result<void>> {
    const sessions = await this.#host.readIscsiSessions();
    if (!sessions.ok) return sessions;
    const session = sessions.value.find((one) => isSameWay(one, note));
    // One of another boot is gone; what is there by now somebody else has begun.
    const isOurs =
      session === undefined ||
      (note.bootId === this.#host.bootId && (note.number ?? session.number) === session.number);
    return inOrder(
      () => (session === undefined || !isOurs ? Promise.resolve(done) : this.#release(session)),
      () => (isOurs ? this.#host.logOutOfIscsi(note) : Promise.resolve(done)),
      () => this.#notes.remove(note),
    );
  }

  /** `device-in-use` while anybody has a disk of the session, in any mount namespace. */
  async #release({ disks, iqn }: IscsiSession): Promise<Result<void>> {
    const maps = new Map(disks.flatMap(({ map }) => (map === undefined ? [] : [[map.device, map] as const])));
    for (const { device, node } of maps.values()) {
      const free = await this.#refuseUsers(iqn, device);
      if (!free.ok) return free;
      const removed = await this.#host.removeMultipath(node);
      if (!removed.ok) return removed;
    }
    for (const { device } of disks) {
      const free = await this.#refuseUsers(iqn, device);
      if (!free.ok) return free;
    }
    return done;
  }

  async #refuseUsers(iqn: string, device: DeviceNumber): Promise<Result<void>> {
    const users = await this.#host.findDeviceUsers(device);
    if (!users.ok) return users;
    const [blocker] = users.value;
    if (blocker === undefined) return done;
    const message = `there is no log-out from ${iqn}: device ${device} is used by ${users.value.join(', ')}`;
    return fail({ code: 'device-in-use', message, effect: 'unknown', blocker });
  }
}

function waysOf({ iqn, iface, portal, portals }: IscsiVolumeSpec): readonly IscsiWay[] {
  return [...new Set([portal, ...portals])].map((one) => ({ iqn, iface, portal: one }));
}

/** The disk by the ways that answer, in the order in which they are wished. */
function openDisks(spec: IscsiVolumeSpec, sessions: readonly IscsiSession[]): readonly IscsiDisk[] {
  const open = sessions.filter(({ isLoggedIn }) => isLoggedIn);
  const inOrderOfWish = waysOf(spec).flatMap((way) => open.filter((one) => isSameWay(one, way)));
  return inOrderOfWish.flatMap(({ disks }) => disks.filter(({ lun }) => lun === spec.lun));
}

function isWayOf(spec: IscsiVolumeSpec, way: IscsiWay): boolean {
  return waysOf(spec).some((one) => isSameWay(one, way));
}
