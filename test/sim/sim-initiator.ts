/** Targets in the network of a machine in memory, and the sessions of its kernel with them. */
import type { AbsolutePath, DeviceNumber } from '../../mount/host.ts';
import {
  type IscsiDisk,
  type IscsiLogin,
  type IscsiSession,
  type IscsiWay,
  isSameWay,
} from '../../mount/block-devices.ts';

export interface SimTarget {
  readonly iqn: string;
  readonly portals: readonly string[];
  readonly luns: readonly number[];
}

/** How a portal answers. */
export type PortalMood = 'serves' | 'refuses' | 'silent';

export interface SimSession extends IscsiSession {
  isLoggedIn: boolean;
  disks: readonly IscsiDisk[];
  readonly by: 'agent' | 'admin';
}

export interface InitiatorParts {
  plug(iqn: string, portal: string, lun: number): Pick<IscsiDisk, 'node' | 'device'>;
  unplug(disk: IscsiDisk): void;
}

export class SimInitiator {
  readonly #parts: InitiatorParts;
  readonly targets = new Map<string, SimTarget>();
  readonly moods = new Map<string, PortalMood>();
  /** What the agent has said to portals. */
  readonly logins: IscsiLogin[] = [];
  readonly #sessions: SimSession[] = [];
  #numbers = 0;

  constructor(parts: InitiatorParts) {
    this.#parts = parts;
  }

  addTarget(target: SimTarget): void {
    this.targets.set(target.iqn, target);
  }

  read(): readonly IscsiSession[] {
    return this.#sessions.map(({ by: _, ...session }) => session);
  }

  sessions(): readonly SimSession[] {
    return this.#sessions;
  }

  find(way: IscsiWay): SimSession | undefined {
    return this.#sessions.find((one) => isSameWay(one, way));
  }

  /** Why there is no new session; undefined: there is one, as soon as it is begun. */
  answer(login: IscsiLogin): 'found' | 'target-refused' | 'target-unreachable' | undefined {
    this.logins.push(login);
    if (this.find(login) !== undefined) return 'found';
    const mood = this.moods.get(login.portal) ?? 'serves';
    if (mood === 'silent') return 'target-unreachable';
    const isOffered = this.targets.get(login.iqn)?.portals.includes(login.portal) === true;
    return mood === 'serves' && isOffered ? undefined : 'target-refused';
  }

  /** `isWhole`: all of its disks are there at once. */
  begin({ iqn, portal, iface }: IscsiWay, by: SimSession['by'], isWhole = true): SimSession {
    this.#numbers += 1;
    const session: SimSession = {
      number: this.#numbers,
      iqn,
      portal,
      iface,
      by,
      isLoggedIn: true,
      disks: [],
    };
    this.#sessions.push(session);
    for (const lun of isWhole ? (this.targets.get(iqn)?.luns ?? []) : []) this.addDisk(session, lun);
    return session;
  }

  /** It comes, once. */
  addDisk(session: SimSession, lun: number): void {
    if (!this.#sessions.includes(session) || session.disks.some((one) => one.lun === lun)) return;
    const { iqn, portal } = session;
    session.disks = [...session.disks, { lun, ...this.#parts.plug(iqn, portal, lun) }];
  }

  end(session: SimSession): void {
    this.#sessions.splice(this.#sessions.indexOf(session), 1);
    for (const disk of session.disks) this.#parts.unplug(disk);
  }

  /** multipathd has joined all ways to a disk. */
  join(iqn: string, lun: number, map: { readonly node: AbsolutePath; readonly device: DeviceNumber }): void {
    for (const session of this.#sessions.filter((one) => one.iqn === iqn))
      session.disks = session.disks.map((disk) => (disk.lun === lun ? { ...disk, map } : disk));
  }

  hasMap(node: AbsolutePath): boolean {
    return this.#sessions.some(({ disks }) => disks.some(({ map }) => map?.node === node));
  }

  removeMap(node: AbsolutePath): void {
    for (const session of this.#sessions)
      session.disks = session.disks.map(({ map, ...disk }) =>
        map === undefined || map.node === node ? disk : { ...disk, map },
      );
  }

  losePower(): void {
    for (const session of [...this.#sessions]) this.end(session);
  }
}
