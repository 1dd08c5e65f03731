/**
 * Stands before every verb that sets up or takes down a mount: whose file system does one see there now? A mount that
 * was proven to be the volume's is never given up for another one, nothing is done through somebody else's, and nothing
 * of his is taken away.
 */
import { bounded, done, fail, type Failure, ok, type Result } from '../../mount/failure.ts';
import {
  type AbsolutePath,
  type Host,
  type MountIdentity,
  type MountPlace,
  parentOf,
} from '../../mount/host.ts';
import { type Ground, strangerFailure } from '../../mount/ground.ts';
import { isProven, nameOfMount, sightOf } from '../../mount/mount-sight.ts';
import type { MountEntry, MountTable } from '../../mount/mount-table.ts';
import { isOwnTmpfs } from '../../mount/mounter.ts';
import { createOwnLook, isInDoubt } from './own-look.ts';
import type { Layout } from '../layout/layout.ts';
import type { PublicationCall, VolumeCall, VolumePlugin } from '../plugin.ts';
import { doubtful } from '../steps.ts';
import { lookAtPlaces } from '../../mount/expected-place.ts';
import { volumeDataIn } from '../layout/volume-data.ts';
import { RECONSTRUCTED, isBlock, type PublicationSpec, type VolumeSpec } from '../volume.ts';

export interface MountGuardParts {
  readonly host: Host;
  readonly layout: Layout;
  readonly ground: Ground;
}

/** A place, and what is known of it. */
interface Watched {
  readonly spec: VolumeSpec;
  readonly path: AbsolutePath;
  /** Proven in this boot. */
  readonly proven: MountIdentity | undefined;
  /** Whether it is there still was in doubt before. */
  readonly isDoubted: true | undefined;
  /** What the volume of a publication is staged as in this boot. */
  readonly staged: MountIdentity | undefined;
  /** Nothing of ours is ever mounted there. */
  readonly isPlain?: boolean;
}

/** What was mounted there when it was looked at. */
interface Look {
  readonly mountId: number | undefined;
}

const NOTHING_MOUNTED: Look = { mountId: undefined };

/**
 * Wraps `stage`, `publish`, `expand`, `unpublish` and `unstage`. Guarantees: one look that costs the same at any
 * table size; the table is read only when what it shows is not what was proven, or when that was in doubt.
 * `mount-stacked`: something lies over the mount itself; `mount-foreign`: over a directory above it, or where nothing
 * of ours was proven; both name it, by type, source and mount id, have effect `none`, and nothing was called.
 *
 * A second layer of the volume's own file system is its driver's (some mount twice), and so is one that came
 * while we called, unless the volume is known to be of another kind of device, or it lies over another file system.
 */
export function guardMounts({ host, layout, ground }: MountGuardParts, plugin: VolumePlugin): VolumePlugin {
  async function judge(watched: Watched, { mountId, within }: MountPlace): Promise<Result<Look>> {
    const { path, proven } = watched;
    const grounded = await ground.refuseStranger(path, within);
    if (!grounded.ok) return grounded;
    const isAsProven = mountId === proven?.mountId && !isInDoubt(watched);
    if (isAsProven || (proven === undefined && isBlock(watched.spec))) return ok({ mountId });
    const table = await host.readMountTable(layout.root);
    if (!table.ok) return fail({ ...table.failure, effect: 'none' });
    const strange =
      proven === undefined
        ? await judgeUnproven(watched, table.value)
        : judgeProven(watched, proven, table.value);
    return strange === undefined ? ok({ mountId }) : fail(strange);
  }

  function judgeProven(
    { path, spec }: Watched,
    proven: MountIdentity,
    table: MountTable,
  ): Failure | undefined {
    const sight = sightOf(table, path, proven);
    if (sight.kind === 'seen') return undefined;
    if (sight.kind === 'covered') return strangerFailure(path, sight.by);
    const { shown } = sight;
    if (shown === undefined || spec.kind !== 'csi' || isBlock(spec)) return undefined;
    // Mounted again by its driver, late, it may have another number; it is of the same kind.
    return isOfKind(shown, proven) ? undefined : strangeThere(path, shown);
  }

  /** Found and not proven: a call before a crash may have made it, a kubelet before us, or somebody else. */
  async function judgeUnproven(
    { path, spec, staged, isPlain }: Watched,
    table: MountTable,
  ): Promise<Failure | undefined> {
    const stack = table.at(path);
    const top = stack.at(-1);
    if (top === undefined) return undefined;
    if (stack.some(({ device }) => device !== top.device)) return strangerFailure(path, top);
    if (spec.kind !== 'csi')
      return isPlain || (top.fsType === 'tmpfs' && !isOwnTmpfs(top)) ? strangeThere(path, top) : undefined;
    if (staged !== undefined && !isOfKind(top, staged)) return strangeThere(path, top);
    if (top.fsType !== 'tmpfs' || top.root !== '/') return undefined;
    // Nothing that lasts is kept in memory; what an inline volume's driver mounted has its papers beside it.
    if (spec.lifecycle === 'Persistent' && staged?.device !== top.device) return strangeThere(path, top);
    const papers = await host.inspect(volumeDataIn(parentOf(path)));
    return papers.ok && papers.value.kind === 'absent' ? strangeThere(path, top) : undefined;
  }

  function placeOf(
    { spec, facts, mount, isDoubted }: Pick<PublicationCall, 'spec' | 'facts' | 'mount' | 'isDoubted'>,
    publication: PublicationSpec,
  ): readonly Watched[] {
    if (spec.kind === 'host-path') return [];
    const common = { spec, isDoubted, staged: facts.needs.stage ? facts.stagedMount : undefined };
    const place = { ...common, path: layout.mountPoint(spec, publication), proven: mount };
    // Found on disk, its medium is a guess.
    const isPlain =
      spec.kind === 'empty-dir' && spec.medium === 'disk' && publication.origin !== RECONSTRUCTED;
    if (!isBlock(spec)) return [{ ...place, isPlain }];
    const { link, published } = layout.blockPublication(publication);
    return [place, ...[link, published].map((path) => ({ ...common, path, proven: undefined }))];
  }

  async function lookAll(places: readonly Watched[]): Promise<Result<Look>> {
    const [first] = places;
    if (first === undefined) return ok(NOTHING_MOUNTED);
    const asked = { path: first.path, places: places.map(({ path }) => path) };
    const seen = await host.perform(lookAtPlaces, asked);
    if (!seen.ok) return fail({ ...seen.failure, effect: 'none' });
    for (const [index, at] of seen.value.entries()) {
      const judged = await judge(places[index] ?? first, at);
      if (!judged.ok) return judged;
    }
    return ok({ mountId: seen.value[0]?.mountId });
  }

  /** After an OK: is what is there now the volume? What came meanwhile, and is what was proven, costs no look. */
  async function judgeMade(
    place: Watched | undefined,
    made: MountIdentity | undefined,
    before: Look,
  ): Promise<Result<void>> {
    if (place?.spec.kind !== 'csi' || made === undefined || isBlock(place.spec)) return done;
    const known = place.proven ?? place.staged;
    if (known === undefined) return judgeFirst(place, made, before);
    if (known.device === made.device) return done;
    if (majorOf(known.device) === majorOf(made.device) && known.fsType === undefined) return done;
    const table = await host.readMountTable(layout.root);
    if (!table.ok) return doubtful<never>(table);
    const top = table.value.at(place.path).at(-1);
    if (top === undefined || !isProven(top, made) || isOfKind(top, known)) return done;
    return fail({ ...strangeThere(place.path, top), effect: 'unknown' });
  }

  /**
   * Nothing is known of the volume yet, and somebody may have mounted there since the look: seen when his mount lies
   * over another file system. One that the driver finds in an empty place cannot be told from the driver's own.
   */
  async function judgeFirst({ path }: Watched, made: MountIdentity, before: Look): Promise<Result<void>> {
    const isOver = before.mountId !== undefined && before.mountId !== made.mountId;
    if (!isOver && made.fsType !== 'tmpfs') return done;
    const table = await host.readMountTable(layout.root);
    if (!table.ok) return doubtful<never>(table);
    const stack = table.value.at(path);
    const top = stack.at(-1);
    const isAlone = top === undefined || stack.every(({ device }) => device === top.device);
    return isAlone ? done : fail({ ...strangerFailure(path, top), effect: 'unknown' });
  }

  /** What is still mounted after a teardown may be somebody else's, which came meanwhile or lay below. */
  async function blame(place: Watched | undefined, failure: Failure): Promise<Failure> {
    const isLeft = failure.code === 'unpublished-still-mounted' || failure.code === 'unstaged-still-mounted';
    if (!isLeft || place?.proven === undefined) return failure;
    const table = await host.readMountTable(layout.root);
    const stranger = table.ok ? judgeProven(place, place.proven, table.value) : undefined;
    return stranger === undefined ? failure : { ...failure, ...stranger, effect: failure.effect };
  }

  async function guarded<T>(
    places: readonly (Watched | undefined)[],
    verb: () => Promise<Result<T>>,
    judgeAfter: (made: T, before: Look) => Promise<Result<void>> = async () => done,
  ): Promise<Result<T>> {
    const seen = await lookAll(places.filter((place) => place !== undefined));
    if (!seen.ok) return seen;
    const result = await verb();
    if (!result.ok) return fail(await blame(places[0], result.failure));
    const judged = await judgeAfter(result.value, seen.value);
    return judged.ok ? result : judged;
  }

  const orLook = createOwnLook(ground, plugin);
  return {
    ...plugin,
    stage: (call) => {
      const place = stageOf(layout, call);
      return guarded(
        [place],
        () => plugin.stage(call),
        ({ stagedMount }, before) => judgeMade(place, stagedMount, before),
      );
    },
    publish: (call) => {
      const places = placeOf(call, call.publication);
      const look = () =>
        guarded(
          [...places, stageOf(layout, call)],
          () => plugin.publish(call),
          ({ mount }, before) => judgeMade(places[0], mount, before),
        );
      return orLook(places[0], call, plugin.publish, look);
    },
    unpublish: (call) => {
      const places = placeOf(call, call.publication);
      const look = () => guarded(places, () => plugin.unpublish(call));
      return orLook(places[0], call, plugin.unpublish, look);
    },
    unstage: (call) => guarded([stageOf(layout, call)], () => plugin.unstage(call)),
    ...(plugin.expand === undefined ? {} : { expand: guardedExpand(plugin.expand) }),
  };

  function guardedExpand(expand: NonNullable<VolumePlugin['expand']>): NonNullable<VolumePlugin['expand']> {
    return (call) => {
      const places = call.publication === undefined ? [] : placeOf(call, call.publication);
      return guarded([...places, stageOf(layout, call)], () => expand(call));
    };
  }
}

function stageOf(layout: Layout, { spec, facts }: VolumeCall): Watched | undefined {
  if (spec.kind !== 'csi' || !facts.needs.stage) return undefined;
  const { stagedMount: proven, isStageDoubted: isDoubted } = facts;
  return { spec, path: layout.stagingPath(spec), proven, isDoubted, staged: undefined };
}

function strangeThere(path: AbsolutePath, top: MountEntry): Failure {
  return bounded({
    code: 'mount-foreign',
    message: `what is mounted at ${path} is not the volume: ${nameOfMount(top)}`,
    effect: 'none',
    blocker: nameOfMount(top),
  });
}

/** Could it be a mount of the same volume: on a block device where that was on one, and of the same type if known? */
function isOfKind(entry: MountEntry, { device, fsType }: MountIdentity): boolean {
  if (entry.device === device) return true;
  return majorOf(entry.device) === majorOf(device) && (fsType === undefined || entry.fsType === fsType);
}

function majorOf(device: string): string {
  return device.slice(0, device.indexOf(':'));
}
