/**
 * Targets of iSCSI beside a machine in memory: their disks with what is on them, portals that refuse and fall silent,
 * and an administrator who has sessions of his own.
 */
import { fail, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, below } from '../../mount/host.ts';
import type { IscsiDisk, IscsiLogin, IscsiSession, IscsiWay } from '../../mount/block-devices.ts';
import { type Layout, sha256Hex } from '../../plugins/layout/layout.ts';
import { plant } from './file-tree.ts';
import type { LocalDisk } from './local-disks.ts';
import type { Random } from './random.ts';
import { type PortalMood, SimInitiator, type SimSession, type SimTarget } from './sim-initiator.ts';
import type { SimKernel } from './sim-kernel.ts';
import type { Plan } from './swarm.ts';
import type { Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';

export const TARGETS: readonly SimTarget[] = [
  { iqn: 'iqn.2026-11.example:a', portals: ['10.0.0.1:3260', '10.0.0.2:3260'], luns: [0, 1] },
  { iqn: 'iqn.2026-11.example:b', portals: ['10.0.0.3:3260'], luns: [0] },
];
/** Its only disk is blank at first. */
const BLANK_TARGET = 'iqn.2026-11.example:b';
export const CONTENT = 'identity';
const DEV = '/dev' as AbsolutePath;
const LINKS = '/dev/disk/by-path' as AbsolutePath;
const STAY_MS_MAX = 120_000;
const DISK_LATE_MS_MAX = 45_000;

export interface SimTargetsParts {
  readonly plan: Plan;
  readonly random: Random;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly layout: Layout;
  readonly stormy: () => boolean;
  readonly isAgentBusy: () => boolean;
  readonly violate: (invariant: string, text: string) => void;
}

export class SimTargets {
  readonly #kernel: SimKernel;
  readonly #initiator: SimInitiator;
  readonly #disks = new Map<string, LocalDisk>();
  readonly #nodes = new Set<string>();
  #parts: SimTargetsParts | undefined;
  #isPowerLost = false;

  constructor(kernel: SimKernel) {
    this.#kernel = kernel;
    this.#initiator = new SimInitiator({
      plug: (iqn, portal, lun) => this.#plug(iqn, portal, lun),
      unplug: (disk) => this.#unplug(disk),
    });
  }

  /** From now on they are there; portals have moods. */
  run(parts: SimTargetsParts): void {
    if (parts.plan.iscsi.share === 0) return;
    this.#parts = parts;
    for (const target of TARGETS) {
      this.#initiator.addTarget(target);
      for (const lun of target.luns) this.#disks.set(keyOf(target.iqn, lun), this.#makeDisk(target.iqn, lun));
    }
    this.#moodSoon();
    this.#adminSoon();
  }

  #makeDisk(iqn: string, lun: number): LocalDisk {
    const label = keyOf(iqn, lun);
    if (iqn === BLANK_TARGET) return { path: label as AbsolutePath, content: 'blank' };
    const content = this.#kernel.makeFileSystem('ext4', label, false);
    plant(content.root, CONTENT, label);
    return { path: label as AbsolutePath, content };
  }

  // What the machine does.

  read(): readonly IscsiSession[] {
    return this.#initiator.read();
  }

  sessions(): readonly SimSession[] {
    return this.#initiator.sessions();
  }

  disk(iqn: string, lun: number): LocalDisk | undefined {
    return this.#disks.get(keyOf(iqn, lun));
  }

  /** Is it the node of a disk of theirs, or was it, before a session was ended behind the agent's back? */
  isNode(path: string): boolean {
    return this.#nodes.has(path);
  }

  logIn(login: IscsiLogin): Result<'made' | 'found'> {
    const answer = this.#initiator.answer(login);
    if (answer === 'found') return ok('found');
    const random = this.#parts?.random;
    if (answer !== undefined || random === undefined) {
      const isKnown = answer !== 'target-unreachable' || random?.chance(0.5) === true;
      const code = answer ?? 'target-refused';
      return fail({ code, message: login.portal, effect: isKnown ? 'none' : 'unknown' });
    }
    const session = this.#initiator.begin(login, 'agent', false);
    this.#bringDisks(session);
    return ok('made');
  }

  /** They come at once, late, or not before somebody looks for them. */
  #bringDisks(session: SimSession): void {
    const { random, time } = this.#parts ?? {};
    for (const lun of this.#initiator.targets.get(session.iqn)?.luns ?? []) {
      const fate = random?.next() ?? 0;
      if (fate < 0.6) this.#initiator.addDisk(session, lun);
      else if (fate < 0.85)
        time?.after(random?.between(10, DISK_LATE_MS_MAX) ?? 0, () => this.#initiator.addDisk(session, lun));
    }
  }

  scan(number: number): void {
    const session = this.sessions().find((one) => one.number === number);
    if (session === undefined || this.#parts?.random.chance(0.3) === true) return;
    this.#bringAll(session);
  }

  #bringAll(session: SimSession): void {
    for (const lun of this.#initiator.targets.get(session.iqn)?.luns ?? [])
      this.#initiator.addDisk(session, lun);
  }

  logOut(way: IscsiWay): void {
    const session = this.#initiator.find(way);
    if (session === undefined) return;
    if (session.by === 'admin')
      this.#parts?.violate('session', `the agent has ended the session of somebody else at ${way.portal}`);
    this.#initiator.end(session);
  }

  #plug(iqn: string, portal: string, lun: number): Pick<IscsiDisk, 'node' | 'device'> {
    const kernel = this.#kernel;
    const device = kernel.devices.add(keyOf(iqn, lun));
    const node = below(DEV, `sd-${device.replace(':', '-')}`);
    for (const path of ['/dev', '/dev/disk', LINKS]) kernel.makeDirectory(path as AbsolutePath, 0o755);
    kernel.removeFile(node);
    kernel.makeDeviceNode(node, device);
    this.#nodes.add(node);
    const disk = this.disk(iqn, lun);
    if (disk !== undefined) kernel.localDisks.plug(node, disk);
    const link = below(LINKS, `ip-${portal}-iscsi-${iqn}-lun-${lun}`);
    kernel.removeFile(link);
    kernel.makeLink(link, node);
    return { node, device };
  }

  #unplug({ node, device }: IscsiDisk): void {
    const kernel = this.#kernel;
    kernel.localDisks.unplug(node);
    if (this.#isPowerLost) return;
    const [user] = kernel.usersOf(device);
    if (user !== undefined) this.#parts?.violate('in-use', `a session ends under ${user}`);
    kernel.devices.remove(device);
    kernel.removeFile(node);
  }

  losePower(): void {
    this.#isPowerLost = true;
    this.#initiator.losePower();
    this.#isPowerLost = false;
  }

  // What happens to it.

  #moodSoon(): void {
    const { plan, random, time, trace, stormy } = this.#parts as SimTargetsParts;
    time.after(Math.ceil(-Math.log(1 - random.next()) * plan.iscsi.everyMs), () => {
      if (!stormy()) return;
      const portal = random.pick(TARGETS.flatMap(({ portals }) => portals));
      this.#setMood(portal, random.pick(['serves', 'refuses', 'silent']));
      trace.add(`the portal ${portal} ${this.#initiator.moods.get(portal)}`);
      time.after(random.between(500, STAY_MS_MAX), () => {
        if (!stormy()) return;
        this.#setMood(portal, 'serves');
        this.#moodSoon();
      });
    });
  }

  #setMood(portal: string, mood: PortalMood): void {
    this.#initiator.moods.set(portal, mood);
    for (const session of this.sessions())
      if (session.portal === portal) session.isLoggedIn = mood !== 'silent';
  }

  /** An administrator logs in, and out again where nobody uses a disk of the session; ours he makes his own so. */
  #adminSoon(): void {
    const { plan, random, time, trace, stormy, isAgentBusy } = this.#parts as SimTargetsParts;
    time.after(Math.ceil(-Math.log(1 - random.next()) * 4 * plan.iscsi.everyMs), () => {
      if (!stormy()) return;
      this.#adminSoon();
      const target = random.pick(TARGETS);
      const way = { iqn: target.iqn, portal: random.pick(target.portals), iface: 'default' };
      const session = this.#initiator.find(way);
      const mood = this.#initiator.moods.get(way.portal) ?? 'serves';
      // What he does in the moment between a look and a login of an agent that dies then is not told apart.
      if (session === undefined && !this.#isNoted(way) && !isAgentBusy() && mood === 'serves') {
        trace.add(`an administrator logs in to ${way.portal}`);
        this.#bringDisks(this.#initiator.begin(way, 'admin', false));
      } else if (session !== undefined && !this.#isUsed(session) && !isAgentBusy() && this.#isTold(session)) {
        trace.add(`an administrator logs out of ${way.portal}, where ${session.by} was`);
        this.#initiator.end(session);
        if (session.by === 'agent' && mood === 'serves')
          this.#bringDisks(this.#initiator.begin(way, 'admin', false));
      }
    });
  }

  /** A login of the agent whose number is not written down yet is not told from one of the administrator. */
  #isTold(session: SimSession): boolean {
    const { layout } = this.#parts as SimTargetsParts;
    const note = this.#kernel.walk(layout.sessionNote(sha256Hex(nameOf(session))));
    const text = typeof note === 'string' ? '' : Buffer.from(note.inode.content).toString();
    return session.by === 'admin' || text.includes(`"number":${session.number}`);
  }

  #isUsed({ disks }: SimSession): boolean {
    return disks.some(({ device }) => this.#kernel.usersOf(device).length > 0);
  }

  /** What is written under somebody's mount is not looked for. */
  #isNoted(way: IscsiWay): boolean {
    const { layout } = this.#parts as SimTargetsParts;
    const note = layout.sessionNote(sha256Hex(nameOf(way)));
    return this.#kernel.isUnderStranger(note) || typeof this.#kernel.walk(note) !== 'string';
  }

  heal(): void {
    if (this.#parts === undefined) return;
    for (const { portals } of TARGETS) for (const portal of portals) this.#setMood(portal, 'serves');
    for (const session of this.sessions()) this.#bringAll(session);
    for (const disk of this.#disks.values()) if (disk.content === 'half') disk.content = 'blank';
  }
}

function nameOf({ iface, portal, iqn }: IscsiWay): string {
  return `${iface} ${portal} ${iqn}`;
}

export function keyOf(iqn: string, lun: number): string {
  return `${iqn} ${lun}`;
}
