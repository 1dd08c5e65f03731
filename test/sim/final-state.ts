/** Is the machine what the user wishes, and nothing else? Asked when all faults are healed (INV-17, INV-18). */
import { sha256Hex } from '../../plugins/layout.ts';
import { parseRecord } from '../../reconciler/record.ts';
import { csiVolumeId } from '../../plugins/volume.ts';
import type { Inode } from './file-tree.ts';
import type { Disk, PodVolume, SimPod } from './manifests.ts';
import type { Simulation } from './simulate.ts';
import type { Mount } from './sim-kernel.ts';
import { ROOT } from './sim-world.ts';

/** The first difference, for people; undefined when there is none. */
export function differenceFromWish(sim: Simulation): string | undefined {
  const view = sim.view();
  if (view === undefined) return 'the agent is not running';
  const wanted = wantedPlaces(sim);
  return (
    placesDiffer(sim, wanted) ??
    stagesDiffer(sim, wanted) ??
    strangeMount(sim, wanted) ??
    driversDiffer(sim, wanted) ??
    dataLost(sim) ??
    agentDiffers(sim) ??
    recordsDiffer(sim, wanted) ??
    leftOver(sim, wanted)
  );
}

interface Place {
  readonly pod: SimPod;
  readonly volume: PodVolume;
  readonly target: string;
}

interface Wanted {
  readonly places: readonly Place[];
  /** Disks in use, by staging path. */
  readonly stages: ReadonlyMap<string, Disk>;
  readonly volumeIds: ReadonlySet<string>;
}

function wantedPlaces(sim: Simulation): Wanted {
  const places: Place[] = [];
  const stages = new Map<string, Disk>();
  const volumeIds = new Set<string>();
  for (const pod of sim.world.pods.values()) {
    for (const volume of pod.volumes) {
      places.push({ pod, volume, target: sim.world.targetOf(pod, volume) });
      if (volume.kind === 'csi') {
        const { driver, handle } = volume.disk;
        stages.set(sim.world.layout.stagingPath(driver, handle), volume.disk);
        volumeIds.add(csiVolumeId(driver, handle));
      } else volumeIds.add(sim.world.specOf(pod, volume).id);
    }
  }
  return { places, stages, volumeIds };
}

function placesDiffer(sim: Simulation, { places }: Wanted): string | undefined {
  for (const place of places) {
    const wrong = placeDiffers(sim, place);
    if (wrong !== undefined) return `${place.target}: ${wrong}`;
  }
  return undefined;
}

function placeDiffers(sim: Simulation, { volume, target }: Place): string | undefined {
  const stack = sim.kernel.mountsAt(target);
  const at = sim.kernel.walk(target as never);
  if (volume.kind === 'host-path' || (volume.kind === 'empty-dir' && volume.medium === 'disk')) {
    if (stack.length > 0) return 'something is mounted on a plain directory';
    return typeof at === 'string' || at.inode.kind !== 'directory'
      ? `no directory: ${describeWalk(at)}`
      : undefined;
  }
  const only = stack.at(-1);
  const layersMax = volume.kind === 'csi' && mayStack(sim, volume.disk) ? Number.MAX_SAFE_INTEGER : 1;
  if (only === undefined || stack.length > layersMax) return `${stack.length} layers mounted`;
  if (volume.kind === 'csi') return diskDiffers(sim, only, volume.disk, volume.readOnly);
  if (only.fileSystem.type !== 'tmpfs') return `a ${only.fileSystem.type} is mounted`;
  if (volume.kind === 'empty-dir') return undefined;
  return contentDiffers(only.root, volume.source.data);
}

function diskDiffers(sim: Simulation, mount: Mount, disk: Disk, readOnly: boolean): string | undefined {
  if (mount.fileSystem !== sim.world.backingOf(disk)?.fileSystem) return 'another volume is mounted';
  return mount.options.includes('ro') === readOnly
    ? undefined
    : `mounted ${mount.options.join()}, wished read-only ${readOnly}`;
}

function contentDiffers(root: Inode, data: Readonly<Record<string, string>>): string | undefined {
  const link = root.entries.get('..data');
  const generation = link === undefined ? undefined : root.entries.get(link.linkText);
  if (generation === undefined) return 'no generation is visible';
  for (const [name, value] of Object.entries(data)) {
    const file = generation.entries.get(name);
    if (file === undefined || Buffer.from(file.content).toString() !== value)
      return `file ${name} is not as wished`;
    if (root.entries.get(name)?.kind !== 'symlink') return `${name} is not shown`;
  }
  const generations = [...root.entries.keys()].filter((name) => name.startsWith('..') && name !== '..data');
  return generations.length === 1 ? undefined : `generations left: ${generations.join()}`;
}

function stagesDiffer(sim: Simulation, { stages }: Wanted): string | undefined {
  for (const [path, disk] of stages) {
    const driver = sim.world.driverOf(disk);
    const stack = sim.kernel.mountsAt(path);
    const flips = sim.plan.drivers.some(({ name, flips: may }) => name === disk.driver && may);
    if (flips) continue;
    const layers = driver?.nature.stages === true && driver.nature.stageMounts ? 1 : 0;
    if (stack.length !== layers && !(layers > 0 && stack.length > 0 && mayStack(sim, disk)))
      return `${path}: ${stack.length} layers mounted, not ${layers}`;
    if (layers === 1 && stack[0]?.fileSystem !== sim.world.backingOf(disk)?.fileSystem)
      return `${path}: another volume`;
  }
  return undefined;
}

function takesTurns(sim: Simulation, disk: Disk): boolean {
  return sim.plan.drivers.some(({ name, locks }) => name === disk.driver && locks);
}

/** A driver that has mounted twice is not to be healed by its caller; taking it down has to work (ST-16). */
function mayStack(sim: Simulation, disk: Disk): boolean {
  return sim.plan.drivers.some(
    ({ name, fates, locks }) => name === disk.driver && ((fates.stack ?? 0) > 0 || !locks),
  );
}

function strangeMount(sim: Simulation, { places, stages }: Wanted): string | undefined {
  const targets = new Set(places.map(({ target }) => target));
  const stranger = sim.kernel.mounts().find(({ target }) => {
    return target.startsWith(`${ROOT}/`) && !targets.has(target) && !stages.has(target);
  });
  return stranger === undefined ? undefined : `${stranger.target}: still mounted`;
}

/** What drivers and storage hold: nothing more than the wish, nothing less. */
function driversDiffer(sim: Simulation, { places }: Wanted): string | undefined {
  if (sim.world.recordsDamaged) return undefined;
  for (const disk of sim.world.disks) {
    const backing = sim.world.backingOf(disk);
    const driver = sim.world.driverOf(disk);
    // A call that a driver without locks finishes late undoes what was settled since; nobody can tell.
    if (backing === undefined || driver === undefined || !takesTurns(sim, disk)) continue;
    const targets = places
      .filter(({ volume }) => volume.kind === 'csi' && volume.disk === disk)
      .map(({ target }) => target);
    const extra = [...backing.resources].find((target) => !targets.includes(target));
    if (extra !== undefined) return `${disk.handle}: the driver was never told to unpublish ${extra}`;
    if (targets.length === 0 && backing.stagedAt.size > 0)
      return `${disk.handle}: the driver was never told to unstage it`;
    if (targets.length === 0 && backing.attachment !== undefined) return `${disk.handle}: still attached`;
    if (targets.length > 0 && driver.nature.attaches && backing.attachment === undefined)
      return `${disk.handle}: not attached`;
  }
  return undefined;
}

/** DL-01: whatever happened, what pods wrote is there. */
function dataLost(sim: Simulation): string | undefined {
  for (const disk of sim.world.disks) {
    const root = sim.world.backingOf(disk)?.fileSystem.root;
    const read = (name: string) => Buffer.from(root?.entries.get(name)?.content ?? []).toString();
    if (read('identity') !== disk.handle) return `${disk.handle}: its data is gone`;
    if (read('counter') !== String(sim.world.counters.get(disk.handle) ?? 0))
      return `${disk.handle}: its counter is wrong`;
    const strange = [...(root?.entries.keys() ?? [])].find(
      (name) => name !== 'identity' && name !== 'counter',
    );
    if (strange !== undefined) return `${disk.handle}: ${strange} was written into it`;
  }
  for (const [key, path] of sim.world.keepsakes) {
    if (typeof sim.kernel.walk(path) === 'string') return `${key}: what the pod wrote is gone`;
  }
  return undefined;
}

function agentDiffers(sim: Simulation): string | undefined {
  const view = sim.view();
  if (view === undefined) return undefined;
  const [obstacle] = view.reconciler.obstacles();
  if (obstacle !== undefined) return `obstacle: ${JSON.stringify(obstacle)}`;
  if (!view.reconciler.idle()) return 'the reconciler is not idle';
  for (const volume of view.reconciler.actual().values()) {
    for (const [key, { presence }] of volume.publications)
      if (presence.kind !== 'present') return `${key} is ${presence.kind}`;
  }
  return undefined;
}

function recordsDiffer(sim: Simulation, { volumeIds }: Wanted): string | undefined {
  const directory = sim.kernel.walk(sim.world.layout.records);
  if (typeof directory === 'string') return `records: ${directory}`;
  const reported = new Set((sim.view()?.unreadableRecords ?? []).map(({ file }) => file));
  const expected = new Map([...volumeIds].map((id) => [`${sha256Hex(id)}.json`, id]));
  for (const [name, inode] of directory.inode.entries) {
    const id = expected.get(name);
    expected.delete(name);
    const parsed = parseRecord(Buffer.from(inode.content).toString());
    // Half a replacement: the next write, or the next start, takes it away.
    if (name.startsWith('.') && directory.inode.entries.has(name.slice(1, -'.tmp'.length))) continue;
    if (reported.has(name) && (id === undefined || !parsed.ok)) continue;
    if (id === undefined) return `record ${name} is left over`;
    if (!parsed.ok) return `record ${name}: ${parsed.failure.message}`;
    if (parsed.value.spec.id !== id) return `record ${name} is of ${parsed.value.spec.id}`;
  }
  const [missing] = expected.values();
  return missing === undefined ? undefined : `no record of ${missing}`;
}

/** Every file and directory below the root has a reason. */
function leftOver(sim: Simulation, wanted: Wanted): string | undefined {
  const keep = new Set<string>();
  const keepWithParents = (path: string): void => {
    for (let at = path; at.length > ROOT.length; at = at.slice(0, at.lastIndexOf('/'))) keep.add(at);
  };
  const { layout } = sim.world;
  for (const { pod, volume, target } of wanted.places) {
    if (volume.kind === 'host-path') continue;
    keepWithParents(target);
    if (volume.kind === 'csi') keep.add(`${target.slice(0, target.lastIndexOf('/'))}/vol_data.json`);
    const marker = volume.kind === 'empty-dir' ? volume.name : `wrapped_${volume.name}`;
    if (volume.kind !== 'csi')
      keepWithParents(`${layout.pods}/${pod.uid}/plugins/kubernetes.io~empty-dir/${marker}/ready`);
  }
  for (const [path] of wanted.stages) {
    keepWithParents(path);
    keep.add(`${path.slice(0, path.lastIndexOf('/'))}/vol_data.json`);
  }
  for (const driver of sim.plan.drivers) {
    keepWithParents(`${layout.plugins}/${driver.name}/csi.sock`);
    keepWithParents(`${layout.registry}/${driver.name}-reg.sock`);
    keepWithParents(`${layout.plugins}/kubernetes.io/csi/${driver.name}`);
  }
  for (const path of [layout.pods, layout.registry, layout.records]) keepWithParents(path);
  const root = sim.kernel.walk(ROOT);
  return typeof root === 'string' ? 'the root is gone' : strangerBelow(sim, ROOT, root.inode, keep);
}

function strangerBelow(
  sim: Simulation,
  path: string,
  directory: Inode,
  keep: ReadonlySet<string>,
): string | undefined {
  for (const [name, child] of directory.entries) {
    const at = `${path}/${name}`;
    if (at.startsWith(`${sim.world.layout.records}/`)) continue;
    if (!keep.has(at)) return `${at} is left over`;
    // A volume's content, on disk or mounted, is nobody's business here.
    if (child.mountsOn > 0 || isVolumeRoot(at)) continue;
    const below = strangerBelow(sim, at, child, keep);
    if (below !== undefined) return below;
  }
  return undefined;
}

function isVolumeRoot(path: string): boolean {
  return (
    /\/volumes\/kubernetes\.io~(?:empty-dir|secret|configmap)\/[^/]+$/.test(path) || path.endsWith('/mount')
  );
}

function describeWalk(at: unknown): string {
  return typeof at === 'string' ? at : 'another kind of file';
}
