/**
 * What a volume of any kind has besides its place in a pod: parts of it that are bound for single containers. They come
 * after the volume and go before it, in the same two verbs, so that nobody can forget the one for the other (DL-04).
 */
import { done, fail, type Result } from '../../mount/failure.ts';
import { type Ground, strangerFailure } from '../../mount/ground.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import type { Mounter } from '../../mount/mounter.ts';
import type { Layout } from '../layout/layout.ts';
import type { PublicationCall, VolumePlugin } from '../plugin.ts';
import { doubtful } from '../steps.ts';
import type { VolumeTraits } from '../traits/volume-traits.ts';
import { RECONSTRUCTED } from '../volume.ts';
import { placeSubpaths, removeSubpaths } from './subpath-binds.ts';

export interface SubpathParts {
  readonly host: Host;
  readonly layout: Layout;
  readonly ground: Pick<Ground, 'refuseStranger'>;
  readonly mounter: Mounter;
  readonly traits: VolumeTraits;
}

/** Each look that finds a mount to be taken down is followed by one that does not find it any more. */
const UNMOUNTS_MAX = 1_000;

/**
 * Wraps `publish` and `unpublish`. Guarantees: `ok` from publish means that what is at each part now is bound in its
 * place, and nothing else below the volume's directory of binds; `ok` from unpublish means that nothing of them is
 * left. While a bind cannot be taken down, the volume is not unpublished. What is not written down is found: teardown
 * reads the binds from the disk. Places without parts cost nothing.
 */
export function bindSubpaths(parts: SubpathParts, plugin: VolumePlugin): VolumePlugin {
  const binds = new SubpathBinds(parts);
  return {
    ...plugin,
    async publish(call) {
      const published = await plugin.publish(call);
      if (!published.ok || call.publication.subpaths === undefined) return published;
      const bound = await binds.place(call);
      // The volume is there and its parts are not all: it is neither as it was nor as it is wanted.
      return bound.ok ? published : doubtful<never>(bound);
    },
    async unpublish(call) {
      if (!mayHaveBinds(call)) return plugin.unpublish(call);
      if (call.expected !== undefined) return fail(LOOK_FIRST);
      if (!call.stillWanted()) return plugin.unpublish(call);
      const removed = await binds.remove(call);
      return removed.ok ? doubtful(await plugin.unpublish(call)) : removed;
    },
  };
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

class SubpathBinds {
  readonly #parts: SubpathParts;

  constructor(parts: SubpathParts) {
    this.#parts = parts;
  }

  async place({ spec, publication }: PublicationCall): Promise<Result<void>> {
    const { host, layout, traits } = this.#parts;
    const path = layout.subpathDirectory(publication);
    const subpaths = publication.subpaths ?? [];
    const places = {
      path,
      root: layout.target(spec, publication),
      followsLinks: traits.isInPlace === true,
      // What the wish brings has no place for more, and what is only read none at all.
      makesMissing: !publication.readOnly && traits.hasContent !== true,
      subpaths: subpaths.map((one) => ({ ...one, target: layout.subpath(publication, one) })),
    };
    return this.#until(path, () => host.perform(placeSubpaths, places));
  }

  async remove({ publication }: PublicationCall): Promise<Result<void>> {
    const { host, layout } = this.#parts;
    const path = layout.subpathDirectory(publication);
    const { subpaths: above } = layout.podFolders(publication.pod.uid);
    return this.#until(path, () => host.perform(removeSubpaths, { path, above }));
  }

  /** Repeats the step until it finds nothing mounted that has to go. */
  async #until(
    path: AbsolutePath,
    step: () => Promise<Result<AbsolutePath | undefined>>,
  ): Promise<Result<void>> {
    const grounded = await this.#refuseStranger(path);
    if (!grounded.ok) return grounded;
    for (let unmounts = 0; unmounts < UNMOUNTS_MAX; unmounts += 1) {
      const found = await step();
      if (!found.ok) return unmounts === 0 ? found : doubtful<never>(found);
      if (found.value === undefined) return done;
      const gone = await this.#unmount(found.value);
      if (!gone.ok) return unmounts === 0 ? gone : doubtful(gone);
    }
    const message = `still something mounted after ${UNMOUNTS_MAX} unmounts: ${path}`;
    return fail({ code: 'mount-stacked', message, effect: 'unknown', blocker: path });
  }

  async #refuseStranger(path: AbsolutePath): Promise<Result<void>> {
    const place = await this.#parts.host.mountPlaceOf(path);
    if (!place.ok) return fail({ ...place.failure, effect: 'none' });
    return this.#parts.ground.refuseStranger(path, place.value.within);
  }

  /** One bind of ours lies there, and a layer of another file system over it is somebody else's. */
  async #unmount(target: AbsolutePath): Promise<Result<void>> {
    const { host, mounter } = this.#parts;
    const table = await host.readMountTable(target);
    if (!table.ok) return fail({ ...table.failure, effect: 'none' });
    const stack = table.value.named(target);
    const top = stack.at(-1);
    if (top !== undefined && stack.some(({ device }) => device !== top.device))
      return fail(strangerFailure(target, top));
    return mounter.unmount(target);
  }
}
