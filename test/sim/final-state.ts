/**
 * Is the machine what the user wishes, and nothing else? Asked when all faults are healed (INV-7, INV-12, INV-17,
 * INV-18, INV-33).
 */
import { iscsiDiffers, iscsiLost, iscsiStage, sessionsDiffer } from './iscsi-volumes.ts';
import { nfsDiffers, nfsLost } from './nfs-volumes.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import { sha256Hex } from '../../plugins/layout/layout.ts';
import { csiVolumeId, type PublicationKey, type VolumeId } from '../../plugins/volume.ts';
import type { ActualVolume, Tombstone } from '../../reconciler/model/actual-state.ts';
import { fail } from '../../mount/failure.ts';
import type { VolumeRecord } from '../../reconciler/recovery/record.ts';
import { isOfJournal, recordsOn } from './record-in.ts';
import type { Inode } from './file-tree.ts';
import { isDetachTold, knownOf, volumesDiffer } from './final-csi.ts';
import { clusterDiffers } from './cluster/final-cluster.ts';
import { leftOver } from './final-files.ts';
import { usageDiffers } from './filled-directories.ts';
import { localDiffers, localLost, localStageOf } from './local-volumes.ts';
import { isOrphanWaiting, type Place, type Wanted, wantedPlaces } from './final-places.ts';
import { csiOf, type DriverVolume, keyOf, placeIn } from './pod-volume.ts';
import type { PodVolume, SimPod } from './manifests.ts';
import { fieldsShown, hasToken, TOKEN_FILE } from './pod-fields.ts';
import type { Simulation } from './simulate.ts';
import { bindDiffers, bindOf } from './subpaths.ts';
import type { Mount } from './sim-kernel.ts';
import { ROOT } from './sim-paths.ts';
import { TREE } from './volume-service.ts';

/** The first difference, for people; undefined when there is none. */
export function differenceFromWish(sim: Simulation): string | undefined {
  const view = sim.view();
  if (view === undefined) return 'the agent is not running';
  const wanted = wantedPlaces(sim);
  return (
    placesDiffer(sim, wanted) ??
    stagesDiffer(sim, wanted) ??
    strangeMount(sim, wanted) ??
    volumesDiffer(sim, wanted) ??
    sessionsDiffer(sim, wanted.places) ??
    dataLost(sim) ??
    agentDiffers(sim, wanted) ??
    recordsDiffer(sim, wanted) ??
    clusterDiffers(sim, wanted) ??
    leftOver(sim, wanted)
  );
}

function placesDiffer(sim: Simulation, { places }: Wanted): string | undefined {
  for (const place of places) {
    const wrong = placeDiffers(sim, place);
    if (wrong !== undefined) return `${place.target}: ${wrong}`;
    const bind = bindOf(sim, place.pod, place.volume);
    const other = bind === undefined ? undefined : bindDiffers(sim, bind);
    if (other !== undefined) return other;
  }
  return undefined;
}

function placeDiffers(sim: Simulation, { pod, volume, target }: Place): string | undefined {
  const csi = csiOf(pod, volume);
  if (csi !== undefined) return csi.block ? deviceDiffers(sim, target, csi) : diskDiffers(sim, target, csi);
  const stack = sim.kernel.mountsAt(target);
  const at = sim.kernel.walk(target as AbsolutePath);
  if (volume.kind === 'local') return localDiffers(sim, pod, volume, target);
  if (volume.kind === 'iscsi') return iscsiDiffers(sim, pod, volume, target);
  if (volume.kind === 'nfs') return nfsDiffers(sim, volume, target);
  if (volume.kind === 'image')
    return at === 'ENOENT' ? undefined : 'something is where an image has no place';
  if (volume.kind === 'host-path' || (volume.kind === 'empty-dir' && volume.medium === 'disk')) {
    if (stack.length > 0) return 'something is mounted on a plain directory';
    return typeof at === 'string' || at.inode.kind !== 'directory'
      ? `no directory: ${describeWalk(at)}`
      : (groupDiffers(volume.kind === 'host-path' ? undefined : pod.fsGroup?.gid, at.inode) ??
          usageDiffers(sim, pod, volume));
  }
  const only = stack.at(-1);
  if (only === undefined || stack.length > 1) return `${stack.length} layers mounted`;
  const isHuge = volume.kind === 'empty-dir' && volume.medium === 'huge-pages';
  if (only.fileSystem.type !== (isHuge ? 'hugetlbfs' : 'tmpfs'))
    return `a ${only.fileSystem.type} is mounted`;
  const wrongGroup = groupDiffers(pod.fsGroup?.gid, only.root);
  if (wrongGroup !== undefined || volume.kind === 'empty-dir') return wrongGroup;
  const data = contentWanted(sim, pod, volume);
  return data === undefined ? undefined : contentDiffers(only.root, data);
}

/** The text of a file, or whether a text will do. */
type TextWanted = string | ((text: string) => boolean);

/** By file; undefined for a volume whose content is nobody's wish. */
function contentWanted(
  { tokens, cluster }: Simulation,
  pod: SimPod,
  volume: PodVolume,
): Readonly<Record<string, TextWanted>> | undefined {
  if (volume.kind === 'downward-api' || volume.kind === 'projected') {
    // Whichever of those that the server has issued for the pod, and that is good still.
    const isGood = (text: string): boolean => cluster?.tokens.isGood(text, pod.uid) === true;
    const wanted = cluster === undefined ? tokens.textFor(pod.uid) : isGood;
    const token = hasToken(volume) ? { [TOKEN_FILE]: wanted } : {};
    return { ...token, ...fieldsShown(pod, volume) };
  }
  return volume.kind === 'secret' || volume.kind === 'config-map' ? volume.source.data : undefined;
}

function groupDiffers(gid: number | undefined, inode: Inode): string | undefined {
  return gid === undefined || inode.gid === gid ? undefined : `the group is ${inode.gid}, not ${gid}`;
}

function diskDiffers(sim: Simulation, target: string, csi: DriverVolume): string | undefined {
  const stack = sim.kernel.mountsAt(target);
  const top: Mount | undefined = stack.at(-1);
  const layersMax = mayStack(sim, csi) ? Number.MAX_SAFE_INTEGER : 1;
  if (top === undefined || stack.length > layersMax) return `${stack.length} layers mounted`;
  if (top.fileSystem !== sim.world.storage.backingOf(csi)?.fileSystem) return 'another volume is mounted';
  return top.options.includes('ro') === csi.readOnly
    ? undefined
    : `mounted ${top.options.join()}, wished read-only ${csi.readOnly}`;
}

/** The pod's link leads to the volume's own device; that is bound to a place of ours, and held open there, once. */
function deviceDiffers(sim: Simulation, link: string, csi: DriverVolume): string | undefined {
  const { kernel, world } = sim;
  const backing = world.storage.backingOf(csi);
  const shown = world.backingShown(link as AbsolutePath);
  if (backing?.device === undefined || shown !== backing)
    return `the link leads to ${shown?.handle ?? 'no device'}`;
  if (!kernel.devices.has(backing.device)) return `device ${backing.device} is not there`;
  return undefined;
}

function contentDiffers(root: Inode, data: Readonly<Record<string, TextWanted>>): string | undefined {
  const link = root.entries.get('..data');
  const generation = link === undefined ? undefined : root.entries.get(link.linkText);
  if (generation === undefined) return 'no generation is visible';
  for (const [name, value] of Object.entries(data)) {
    const file = generation.entries.get(name);
    const text = file === undefined ? undefined : Buffer.from(file.content).toString();
    const isAsWished = text !== undefined && (typeof value === 'string' ? text === value : value(text));
    if (!isAsWished) return `file ${name} is not as wished`;
    if (root.entries.get(name)?.kind !== 'symlink') return `${name} is not shown`;
  }
  const generations = [...root.entries.keys()].filter((name) => name.startsWith('..') && name !== '..data');
  return generations.length === 1 ? undefined : `generations left: ${generations.join()}`;
}

function stagesDiffer(sim: Simulation, { stages }: Wanted): string | undefined {
  for (const [path, volume] of stages) {
    const driver = sim.world.storage.driverOf(volume.driver);
    const stack = sim.kernel.mountsAt(path);
    const known = knownOf(sim, volume);
    if (stack.length === 0 && known?.stagedMount !== undefined && known.staged.kind === 'present')
      return `${path}: noted as mounted, and nothing is`;
    const flips = sim.plan.drivers.some(({ name, flips: may }) => name === volume.driver && may);
    if (flips || (stack.length === 0 && isBelieved(sim, volume))) continue;
    const layers = driver?.nature.stages === true && driver.nature.stageMounts && !volume.block ? 1 : 0;
    if (stack.length !== layers && !(layers > 0 && stack.length > 0 && mayStack(sim, volume)))
      return `${path}: ${stack.length} layers mounted, not ${layers}`;
    if (layers === 1 && stack[0]?.fileSystem !== sim.world.storage.backingOf(volume)?.fileSystem)
      return `${path}: another volume`;
  }
  return undefined;
}

/**
 * Staged without a mount, as far as anybody was told. One that came behind that lie, by a call given up long before,
 * and went the same way between two looks, is nobody's to miss (seed 23612).
 */
function isBelieved(sim: Simulation, volume: DriverVolume): boolean {
  const isLiedAbout = sim.world.storage.backingOf(volume)?.stageLied === true;
  return isLiedAbout && knownOf(sim, volume)?.stagedMount === undefined;
}

/** A driver that has mounted twice is not to be healed by its caller; taking it down has to work (ST-16). */
function mayStack(sim: Simulation, { driver }: { readonly driver: string }): boolean {
  return sim.plan.drivers.some(
    ({ name, fates, locks }) => name === driver && ((fates.stack ?? 0) > 0 || !locks),
  );
}

function strangeMount(sim: Simulation, { places, stages, unexplained }: Wanted): string | undefined {
  const targets = new Set([...places.map(({ target }) => target), ...unexplained]);
  for (const { pod, volume } of places) {
    const bind = bindOf(sim, pod, volume);
    if (bind !== undefined) targets.add(bind.target);
    targets.add(sim.world.mountPointOf(pod, volume));
    const stage =
      volume.kind === 'local'
        ? localStageOf(sim.world.layout, volume)
        : volume.kind === 'iscsi'
          ? iscsiStage(sim.world.layout, volume)
          : undefined;
    if (stage !== undefined) targets.add(stage);
    const { published } = sim.world.layout.blockPublication(placeIn(pod, volume));
    if (csiOf(pod, volume)?.block === true) targets.add(published);
  }
  const stranger = sim.kernel.mounts().find(({ target }) => {
    return target.startsWith(`${ROOT}/`) && !targets.has(target) && !stages.has(target);
  });
  return stranger === undefined ? undefined : `${stranger.target}: still mounted`;
}

/** DL-01: whatever happened, what pods wrote is there. */
function dataLost(sim: Simulation): string | undefined {
  for (const disk of sim.world.storage.disks) {
    const root = sim.world.storage.backingOf(disk)?.fileSystem.root;
    const read = (name: string) => Buffer.from(root?.entries.get(name)?.content ?? []).toString();
    if (read('identity') !== disk.handle) return `${disk.handle}: its data is gone`;
    if (read('counter') !== String(sim.world.counters.get(disk.handle) ?? 0))
      return `${disk.handle}: its counter is wrong`;
    const strange = [...(root?.entries.keys() ?? [])].find(
      (name) => name !== 'identity' && name !== 'counter' && name !== TREE,
    );
    if (strange !== undefined) return `${disk.handle}: ${strange} was written into it`;
  }
  for (const [key, path] of sim.world.keepsakes) {
    if (typeof sim.kernel.walk(path) === 'string') return `${key}: what the pod wrote is gone`;
  }
  return localLost(sim) ?? nfsLost(sim) ?? iscsiLost(sim);
}

function agentDiffers(sim: Simulation, { waiting }: Wanted): string | undefined {
  const view = sim.view();
  if (view === undefined) return undefined;
  const { reconciler } = view;
  const obstacle = reconciler.obstacles().find(({ kind, code, volume, publication = '' }) => {
    // The volume is another pod's, for as long as that one wants it.
    if (code === 'volume-in-use') return !waiting.has(publication);
    if (isOrphanWaiting(volume, [publication], waiting) || isUndetachable(sim, volume)) return false;
    const known = reconciler
      .actual()
      .get(volume as VolumeId)
      ?.publications.get(publication as PublicationKey);
    const isAgain = kind === 'running' || kind === 'waiting-turn';
    return !isAgain || known?.presence.kind !== 'present' || !isRepublishing(sim);
  });
  if (obstacle !== undefined) return `obstacle: ${JSON.stringify(obstacle)}`;
  for (const volume of reconciler.actual().values()) {
    // The call that is being made now, a republish mostly, is nothing to wait for.
    if (volume.tombstones?.some((one) => isWaitedFor(one, volume)) === true)
      return `${volume.spec.id}: a call may still take effect`;
    if (volume.quarantine !== undefined) return `${volume.spec.id} is in quarantine`;
    for (const [key, { presence }] of volume.publications) {
      if (isOrphanWaiting(volume.spec.id, [key], waiting)) continue;
      if (presence.kind !== 'present') return `${key} is ${presence.kind}`;
    }
  }
  return reconciler.idle() || isRepublishing(sim) ? undefined : 'the reconciler is not idle';
}

/**
 * A stage that was given up, of a volume that is of the other mode by now: it is given back when the volume is down,
 * because a driver may take one staging path for the other (docs/ARCHITECTURE.md, limits). So is an attach under
 * another node id than the one that it is attached under by now.
 */
function isWaitedFor({ operation, node, spec, untilMs }: Tombstone, volume: ActualVolume): boolean {
  const { spec: now, attached, attachedNode } = volume;
  if (untilMs === undefined) return false;
  if (operation === 'attach' || operation === 'detach')
    return attached.kind === 'absent' || node === undefined || node === attachedNode;
  const isOfOtherMode = spec?.kind === 'csi' && now.kind === 'csi' && spec.mode !== now.mode;
  return operation !== 'stage' || !isOfOtherMode;
}

/** A healed driver answers sooner. One that was asked before may be given up, and then its effect is waited for. */
const REPUBLISH_MS_MAX = 30_000;

/** Only what is there is published again, because its driver wishes it. */
function isRepublishing({ plan, world, life }: Simulation): boolean {
  if (!plan.drivers.some(({ republishes }) => republishes)) return false;
  const running = life?.agent.view().reconciler.running() ?? [];
  const nowMs = life?.host.nowMs() ?? 0;
  const keys = new Set(
    [...world.pods.values()].flatMap((pod) => pod.volumes.map((volume) => keyOf(pod, volume))),
  );
  return running.every(
    ({ operation, begunMs = nowMs }) =>
      operation.kind === 'publish' && keys.has(operation.publication) && nowMs - begunMs <= REPUBLISH_MS_MAX,
  );
}

function recordsDiffer(sim: Simulation, { volumeIds, waiting }: Wanted): string | undefined {
  const directory = sim.kernel.walk(sim.world.layout.records);
  if (typeof directory === 'string') return `records: ${directory}`;
  const reported = new Set((sim.view()?.unreadableRecords ?? []).map(({ file }) => file));
  const expected = new Map([...volumeIds].map((id) => [`${sha256Hex(id)}.json`, id]));
  const records = recordsOn(sim.kernel, sim.world.layout);
  const names = [...directory.inode.entries.keys()].filter((name) => !isOfJournal(name));
  for (const name of new Set([...records.keys(), ...names])) {
    const id = expected.get(name);
    expected.delete(name);
    const parsed = records.get(name) ?? TAKEN_OVER;
    // Half a replacement: the next write, or the next start, takes it away.
    if (name.startsWith('.') && directory.inode.entries.has(name.slice(1, -'.tmp'.length))) continue;
    if (reported.has(name) && (id === undefined || !parsed.ok)) continue;
    if (id === undefined && parsed.ok && isOfWaiting(parsed.value, waiting)) continue;
    if (id === undefined && parsed.ok && isUndetachable(sim, parsed.value.spec.id)) continue;
    if (id === undefined) return `record ${name} is left over`;
    if (!parsed.ok) return `record ${name}: ${parsed.failure.message}`;
    if (parsed.value.spec.id !== id) return `record ${name} is of ${parsed.value.spec.id}`;
  }
  const [missing] = expected.values();
  return missing === undefined ? undefined : `no record of ${missing}`;
}

/** Attached by a driver that has no controller service any more, of which that is told. */
function isUndetachable(sim: Simulation, volume: string): boolean {
  return sim.world.storage.disks.some(
    (disk) => csiVolumeId(disk.driver, disk.handle) === volume && isDetachTold(sim, disk),
  );
}

/** It has nothing but places that go when a pod that waits for its turn has it (seed 136151892). */
function isOfWaiting({ spec, publications }: VolumeRecord, waiting: Wanted['waiting']): boolean {
  return (
    publications.length > 0 && publications.every((one) => isOrphanWaiting(spec.id, [one.spec.key], waiting))
  );
}

/** A file beside a journal, which went when its volume was written there, unless it is damaged and told. */
const TAKEN_OVER = fail({ code: 'record-unreadable', message: 'it is beside a journal', effect: 'none' });

function describeWalk(at: unknown): string {
  return typeof at === 'string' ? at : 'another kind of file';
}
