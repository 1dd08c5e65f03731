/**
 * Volumes on disks of iSCSI targets, and what must be true of them and of the sessions when all is healed. Drawn from a
 * stream of their own, and off in most seeds, so that those of before keep theirs.
 */
import { type AbsolutePath, parentOf } from '../../mount/host.ts';
import { temporaryPath } from '../../mount/temporary-file.ts';
import { iscsiVolumeId } from '../../plugins/iscsi/iscsi-traits.ts';
import type { IscsiPlace } from '../../plugins/layout/iscsi-layout.ts';
import { type Layout, sha256Hex } from '../../plugins/layout/layout.ts';
import { inodesOf } from './file-tree.ts';
import type { Place } from './final-places.ts';
import { NAMESPACE, type SimPod } from './manifests.ts';
import type { Random } from './random.ts';
import { CONTENT, keyOf, TARGETS } from './sim-targets.ts';
import type { Simulation } from './simulate.ts';
import type { Plan } from './swarm.ts';
import { CANARY } from './trace.ts';
import type { EffectFaults, EffectKind } from './weather.ts';

export interface IscsiVolume {
  readonly kind: 'iscsi';
  readonly name: string;
  readonly disk: Disk;
  readonly readOnly: boolean;
}

interface Disk {
  readonly iqn: string;
  readonly portals: readonly string[];
  readonly lun: number;
  /** Written in its pods; otherwise behind a claim of this name. */
  readonly specName: string | undefined;
}

export interface IscsiPlan {
  /** Probability that a pod has such a volume. */
  readonly share: number;
  /** Mean time between two turns of a portal. */
  readonly everyMs: number;
}

export const NO_ISCSI: IscsiPlan = { share: 0, everyMs: 0 };

/** The share of the seeds that have such volumes. */
const SEEDS_SHARE = 0.15;
const SECRET = 'iscsi-chap';
const EFFECTS: readonly EffectKind[] = ['iscsi', 'readIscsi', 'findDeviceUsers'];
/** Pods name the last one themselves. */
const DISKS: readonly Disk[] = TARGETS.flatMap(({ iqn, portals, luns }) =>
  luns.map((lun) => {
    const specName = lun === 1 ? undefined : `iscsi-${iqn.slice(-1)}-${lun}`;
    return { iqn, portals, lun, specName };
  }),
);

export function withIscsi(plan: Plan, random: Random): Plan {
  const share = random.chance(SEEDS_SHARE) ? random.pick([0.4, 0.8]) : 0;
  const everyMs = random.pick([10_000, 40_000]);
  const effects = new Map(plan.weather.effects);
  const isStormy = random.chance(0.5);
  for (const kind of EFFECTS) {
    const rate = (): number => (random.chance(0.5) ? random.pick([0.02, 0.1, 0.3]) : 0);
    const faults: EffectFaults = { refused: rate(), doubtful: rate(), slow: rate() / 3, hung: 0 };
    if (share > 0 && isStormy && !effects.has(kind)) effects.set(kind, faults);
  }
  return share === 0 ? plan : { ...plan, weather: { ...plan.weather, effects }, iscsi: { share, everyMs } };
}

export function drawIscsiVolume(random: Random, name: string): IscsiVolume {
  return { kind: 'iscsi', name, disk: random.pick(DISKS), readOnly: random.chance(0.2) };
}

export function iscsiNameOf({ name, disk }: IscsiVolume): string {
  return disk.specName ?? name;
}

export function iscsiPlaceOf({ disk: { iqn, lun, portals } }: Pick<IscsiVolume, 'disk'>): IscsiPlace {
  return { iqn, lun, portal: portals[0] ?? '', iface: 'default' };
}

export function iscsiStage(layout: Layout, volume: Pick<IscsiVolume, 'disk'>): AbsolutePath {
  return layout.iscsiStage(iscsiPlaceOf(volume));
}

export function iscsiSource({ disk, readOnly }: IscsiVolume): object {
  if (disk.specName === undefined) return { iscsi: sourceOf(disk) };
  return { persistentVolumeClaim: { claimName: `claim-${disk.specName}`, readOnly } };
}

function sourceOf({ iqn, lun, portals: [targetPortal, ...portals] }: Disk): object {
  return { targetPortal, portals, iqn, lun, chapAuthSession: true, secretRef: { name: SECRET } };
}

export function iscsiObjects(): readonly object[] {
  const keys = { 'node.session.auth.username': 'me', 'node.session.auth.password': `${CANARY}-chap` };
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: NAMESPACE, name: SECRET },
    stringData: keys,
  };
  const named = DISKS.flatMap((disk) => (disk.specName === undefined ? [] : [{ disk, name: disk.specName }]));
  return [
    secret,
    ...named.flatMap(({ disk, name }) => {
      const accessModes = ['ReadWriteMany'];
      const claim = { namespace: NAMESPACE, name: `claim-${name}` };
      const storage = { storage: '1Gi' };
      return [
        {
          apiVersion: 'v1',
          kind: 'PersistentVolume',
          metadata: { name },
          spec: { capacity: storage, accessModes, claimRef: claim, iscsi: sourceOf(disk) },
        },
        {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          metadata: claim,
          spec: { accessModes, volumeName: name, resources: { requests: storage } },
        },
      ];
    }),
  ];
}

/** The file system of the disk itself, once, read-only where that is wished, and with a group all files have it. */
export function iscsiDiffers(
  { kernel }: Simulation,
  pod: SimPod,
  { disk, readOnly }: IscsiVolume,
  target: string,
): string | undefined {
  const stack = kernel.mountsAt(target);
  const only = stack.at(-1);
  if (only === undefined || stack.length > 1) return `${stack.length} layers mounted`;
  const content = kernel.targets.disk(disk.iqn, disk.lun)?.content;
  if (content === undefined || typeof content === 'string' || only.fileSystem !== content)
    return 'something else than the disk is mounted';
  const isInline = disk.specName === undefined;
  const wished = readOnly && !isInline;
  if (only.options.includes('ro') !== wished)
    return `mounted ${only.options.join()}, wished read-only ${wished}`;
  if (pod.fsGroup === undefined || wished) return undefined;
  const { root } = content;
  const other = inodesOf(root).find(({ gid }) => gid !== root.gid);
  return other === undefined ? undefined : `"${other.name}" has the group ${other.gid}, not ${root.gid}`;
}

/** Those of the agent are of targets that a pod has; what an administrator has is his. */
export function sessionsDiffer({ kernel }: Simulation, places: readonly Place[]): string | undefined {
  const wanted = targetsOf(places);
  const left = kernel.targets.sessions().find(({ by, iqn }) => by === 'agent' && !wanted.has(iqn));
  return left === undefined ? undefined : `the session with ${left.iqn} at ${left.portal} is left`;
}

function targetsOf(places: readonly Place[]): ReadonlySet<string> {
  return new Set(places.flatMap(({ volume }) => (volume.kind === 'iscsi' ? [volume.disk.iqn] : [])));
}

/** What may be below the root besides the places of volumes. */
export function iscsiKept({ world, plan }: Simulation, places: readonly Place[]): readonly AbsolutePath[] {
  if (plan.iscsi.share === 0) return [];
  const { layout } = world;
  const wanted = targetsOf(places);
  const notes = TARGETS.filter(({ iqn }) => wanted.has(iqn)).flatMap(({ iqn, portals }) =>
    portals.map((portal) => layout.sessionNote(sha256Hex(`default ${portal} ${iqn}`))),
  );
  const intents = DISKS.map((disk) =>
    layout.formatIntent(`iscsi-${sha256Hex(iscsiVolumeId(iscsiPlaceOf({ disk })))}`),
  );
  const shared = [layout.sessionNotes, parentOf(layout.iscsiStage(iscsiPlaceOf({ disk: DISKS[0] as Disk })))];
  return [...shared, ...notes, ...intents, ...[...notes, ...intents].map(temporaryPath)];
}

/** DL-01: whatever happened, what was on a disk is there, and nothing else. */
export function iscsiLost({ kernel, plan }: Simulation): string | undefined {
  for (const { iqn, lun } of plan.iscsi.share > 0 ? DISKS : []) {
    const content = kernel.targets.disk(iqn, lun)?.content;
    if (content === undefined || typeof content === 'string') continue;
    const names = [...content.root.entries.keys()].join();
    const wished = content.label === keyOf(iqn, lun) ? CONTENT : '';
    if (names !== wished) return `${keyOf(iqn, lun)}: there is ${names === '' ? 'nothing' : names}`;
  }
  return undefined;
}
