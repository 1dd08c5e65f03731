/**
 * What a volume of any kind has besides its place in a pod: parts of it that are bound for single containers. They come
 * after the volume and go before it, in the same two verbs, so that nobody can forget the one for the other (DL-04).
 */
import { done, fail, ok, type Result } from '../../mount/failure.ts';
import type { Turns } from '../../mount/process/turns.ts';
import { type Ground, strangerFailure } from '../../mount/ground.ts';
import { type AbsolutePath, below, type Host, type MountIdentity, parentOf } from '../../mount/host.ts';
import type { Mounter } from '../../mount/mounter.ts';
import type { Layout } from '../layout/layout.ts';
import type { PublicationCall, VolumePlugin } from '../plugin.ts';
import { doubtful, noLongerWanted } from '../steps.ts';
import type { VolumeTraits } from '../traits/volume-traits.ts';
import { RECONSTRUCTED, type VolumeSpec } from '../volume.ts';
import { isNamedBy, isOfNamesake } from './bind-owner.ts';
import { type MountInTheWay, placeSubpaths, removeSubpaths } from './subpath-binds.ts';

export interface SubpathParts {
  readonly host: Host;
  readonly layout: Layout;
  readonly ground: Pick<Ground, 'refuseStranger'>;
  readonly mounter: Mounter;
  readonly traits: VolumeTraits;
  /**
   * One for all kinds: who looks at a bind and takes it down does so while nobody else binds or unbinds in its
   * directory, which two volumes of one name share.
   */
  readonly turns: Turns;
}

/** Each look that finds a mount to be taken down is followed by one that does not find it any more. */
const LOOKS_MAX = 1_000;
const MACHINE = '/' as AbsolutePath;

/**
 * Wraps `publish` and `unpublish`. Guarantees: `ok` from publish means that what is at each part now is bound in its
 * place, and nothing else of the volume is bound for the pod; `ok` from unpublish means that nothing of it is left
 * bound. While a bind cannot be taken down, the volume is not unpublished. What is not written down is found: teardown
 * reads the binds from the disk. Binds of a namesake are told by what the kernel shows, and stay. Places without parts
 * cost nothing.
 */
export function bindSubpaths(parts: SubpathParts, plugin: VolumePlugin): VolumePlugin {
  const binds = new SubpathBinds(parts);
  const { isUpToDate } = plugin;
  return {
    ...plugin,
    // An agent may have died between new files and their binds, and only a publish looks at those.
    ...(isUpToDate === undefined
      ? {}
      : { isUpToDate: async (call) => call.publication.subpaths === undefined && isUpToDate(call) }),
    async publish(call) {
      const published = await plugin.publish(call);
      if (!published.ok || call.publication.subpaths === undefined) return published;
      const bound = await binds.place(call, published.value.mount);
      // The volume is there and its parts are not all: it is neither as it was nor as it is wanted.
      return bound.ok ? published : doubtful<never>(bound);
    },
    async unpublish(call) {
      if (isBind(parts.layout, call.spec)) {
        // Found when nobody had it: by now it is the volume's whose record names it, and goes with that one.
        const path = parts.layout.target(call.spec, call.publication);
        return parts.turns(parentOf(parentOf(path)), async () => {
          const isNamed = (call.namesakes?.() ?? []).some((one) => isNamedBy(parts.layout, path, one));
          return isNamed ? done : plugin.unpublish(call);
        });
      }
      if (!mayHaveBinds(call)) return plugin.unpublish(call);
      if (call.expected !== undefined) return fail(LOOK_FIRST);
      // The volume's own turn may come when it is wanted again, and its parts are there still.
      if (!call.stillWanted()) return noLongerWanted();
      const removed = await binds.remove(call);
      return removed.ok ? doubtful(await plugin.unpublish(call)) : removed;
    },
  };
}

/** A bind that nobody explains is an orphan by itself. */
function isBind(layout: Layout, spec: VolumeSpec): boolean {
  return spec.kind === 'orphan' && layout.ownerOf(spec.path)?.kind === 'subpath';
}

/** Nobody knows what a volume had that was found on disk. */
function mayHaveBinds({ publication: { subpaths, origin } }: PublicationCall): boolean {
  return subpaths !== undefined || origin === RECONSTRUCTED;
}

/** The look at the volume's own place comes before anything of it is taken down. */
const LOOK_FIRST = {
  code: 'mount-foreign',
  message: 'the place has binds, which go first',
  effect: 'none',
  isUnexpected: true,
} as const;

interface Looks {
  readonly path: AbsolutePath;
  /** Whatever is bound there has to go: the wish has these places for parts of this volume. */
  readonly claimed: readonly AbsolutePath[];
  /** One step over the binds; it is given those of other volumes, and answers what is mounted and has to go. */
  readonly step: (foreign: readonly AbsolutePath[]) => Promise<Result<MountInTheWay | undefined>>;
}

class SubpathBinds {
  readonly #parts: SubpathParts;

  constructor(parts: SubpathParts) {
    this.#parts = parts;
  }

  async place(call: PublicationCall, mount: MountIdentity | undefined): Promise<Result<void>> {
    if (call.publication.subpaths?.length === 0) return this.remove(call);
    const { host, layout, traits } = this.#parts;
    const { spec, publication } = call;
    const path = layout.subpathDirectory(publication);
    const places = {
      path,
      root: layout.target(spec, publication),
      rootMountId: mount?.mountId,
      followsLinks: traits.isInPlace === true,
      // What the wish brings has no place for more, and what is only read none at all.
      makesMissing: !publication.readOnly && traits.hasContent !== true,
      subpaths: (publication.subpaths ?? []).map((one) => ({
        ...one,
        target: layout.subpath(publication, one),
      })),
    };
    const claimed = places.subpaths.map(({ target }) => target);
    const grounded = await this.#refuseStrangers([path, ...claimed.map(parentOf)]);
    if (!grounded.ok) return grounded;
    return this.#until(call, {
      path,
      claimed,
      step: (foreign) => host.perform(placeSubpaths, { ...places, foreign }),
    });
  }

  async remove(call: PublicationCall): Promise<Result<void>> {
    const { host, layout } = this.#parts;
    const path = layout.subpathDirectory(call.publication);
    const { subpaths: above } = layout.podFolders(call.publication.pod.uid);
    const grounded = await this.#refuseStrangers([path]);
    if (!grounded.ok) return grounded;
    return this.#until(call, {
      path,
      claimed: [],
      step: (foreign) => host.perform(removeSubpaths, { path, above, foreign }),
    });
  }

  #until(call: PublicationCall, looks: Looks): Promise<Result<void>> {
    return this.#parts.turns(looks.path, () => this.#repeat(call, looks));
  }

  /** Repeats the step until it finds nothing mounted that has to go. */
  async #repeat(call: PublicationCall, { path, claimed, step }: Looks): Promise<Result<void>> {
    const foreign: AbsolutePath[] = [];
    let unmounts = 0;
    for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
      const found = await step(foreign);
      if (!found.ok) return unmounts === 0 ? found : doubtful<never>(found);
      if (found.value === undefined) return done;
      const gone = await this.#unmount(call, found.value, claimed.includes(found.value.target));
      if (!gone.ok) return unmounts === 0 ? gone : doubtful<never>(gone);
      if (gone.value === 'foreign') foreign.push(found.value.target);
      if (gone.value === 'gone') unmounts += 1;
    }
    const message = `still something mounted after ${LOOKS_MAX} looks: ${path}`;
    return fail({ code: 'mount-stacked', message, effect: 'unknown', blocker: path });
  }

  /** Nothing of ours is mounted at the directories or above: a bind below would be made in somebody's file system. */
  async #refuseStrangers(directories: readonly AbsolutePath[]): Promise<Result<void>> {
    const { host, ground } = this.#parts;
    for (const directory of new Set(directories)) {
      const place = await host.mountPlaceOf(directory);
      if (!place.ok) return fail({ ...place.failure, effect: 'none' });
      const { mountId, within } = place.value;
      const refused = await ground.refuseStranger(below(directory, '*'), mountId ?? within);
      if (!refused.ok) return refused;
    }
    return done;
  }

  /**
   * One bind lies there, and a layer of another file system over it is somebody else's. Where another mount is seen by
   * now than the one that has to go, nobody has said of that one that it has to: `other` (seed 588155240).
   */
  async #unmount(
    call: PublicationCall,
    { target, mountId }: MountInTheWay,
    isClaimed: boolean,
  ): Promise<Result<'gone' | 'other' | 'foreign'>> {
    const { host, layout, mounter } = this.#parts;
    const namesakes = isClaimed ? [] : (call.namesakes?.() ?? []).filter(({ spec }) => !isBind(layout, spec));
    const isDoubted = namesakes.length > 0;
    // A namesake may be a directory of the machine's, anywhere.
    const table = await host.readMountTable(isDoubted ? MACHINE : target);
    if (!table.ok) return fail({ ...table.failure, effect: 'none' });
    const stack = table.value.named(target);
    const top = stack.at(-1);
    if (top !== undefined && stack.some(({ device }) => device !== top.device))
      return fail(strangerFailure(target, top));
    if (table.value.at(target).at(-1)?.mountId !== mountId) return ok('other');
    if (isDoubted && isOfNamesake(table.value, layout, target, call, namesakes)) return ok('foreign');
    const gone = await mounter.unmountOnly(target, mountId, { isRemote: true });
    return gone.ok ? ok('gone') : gone;
  }
}
