/**
 * Stands before every verb that sets up or takes down a mount: whose file system does one see there now? A mount that
 * was proven to be the volume's is never given up for another one, nothing is done through somebody else's, and nothing
 * of his is taken away.
 */
import { done, fail, type Failure, type Result } from '../../mount/failure.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import type { VolumeCall, VolumePlugin } from '../plugin.ts';
import { type Look, MountJudge, type MountJudgeParts } from './mount-judge.ts';
import { createOwnLook, expectedAt } from './own-look.ts';
import { placesOf, stageOf, type WatchedPlace } from './watched-place.ts';

/**
 * Wraps `stage`, `publish`, `expand`, `unpublish` and `unstage`. Guarantees: one look that costs the same at any
 * table size; the table is read only when what it shows is not what was proven, or when that was in doubt.
 * `mount-stacked`: something lies over the mount itself; `mount-foreign`: over a directory above it, or where nothing
 * of ours was proven; both name it, by type, source and mount id. `mount-lost`: what is to be grown is not there. All
 * have effect `none`, and nothing was called.
 *
 * A second layer of the volume's own file system is its driver's (some mount twice), and so is one that came
 * while we called, unless the volume is known to be of another kind of device, or it lies over another file system.
 */
export function guardMounts(parts: MountJudgeParts, plugin: VolumePlugin): VolumePlugin {
  const { ground } = parts;
  const judge = new MountJudge(parts);
  const guarded = createGuarded(judge);

  /** Where the plugin `looksFirst`, its own first call is the look; where that sees something else, we look as ever. */
  async function climbing<Call extends VolumeCall, T>(
    all: readonly (WatchedPlace | undefined)[],
    call: Call,
    verb: (call: Call) => Promise<Result<T>>,
    judgeAfter: (made: T, before: Look) => Promise<Result<void>>,
  ): Promise<Result<T>> {
    const looksFirst = plugin.looksFirst?.(call.spec) === true;
    // What was judged is what the verb has to find: a cover that goes in between bares what lies below it.
    const look = () =>
      guarded(
        all,
        async (before) => final(await verb(looksFirst ? { ...call, expectedAll: before } : call)),
        judgeAfter,
      );
    const expectedAll = looksFirst ? expectedAt(ground, all) : undefined;
    if (expectedAll === undefined) return look();
    const result = await verb({ ...call, expectedAll });
    if (!result.ok)
      return result.failure.isUnexpected === true ? look() : fail(await judge.blame(all[0], result.failure));
    const judged = await judgeAfter(result.value, expectedAll);
    return judged.ok ? result : judged;
  }

  const orLook = createOwnLook(ground, plugin);
  return {
    ...plugin,
    stage: (call) => {
      const place = stageOf(parts, call);
      return climbing([place], call, plugin.stage, ({ stagedMount }, before) =>
        judge.after(place, stagedMount, before),
      );
    },
    publish: (call) => {
      const places = placesOf(parts, call, call.publication);
      const look = () =>
        climbing([...places, stageOf(parts, call)], call, plugin.publish, ({ mount }, before) =>
          judge.after(places[0], mount, before),
        );
      return orLook(places[0], call, plugin.publish, look);
    },
    unpublish: (call) => {
      const places = placesOf(parts, call, call.publication);
      const look = () => guarded(places, () => plugin.unpublish(call));
      return orLook(places[0], call, plugin.unpublish, look);
    },
    unstage: (call) => guarded([stageOf(parts, call)], () => plugin.unstage(call)),
    ...(plugin.expand === undefined ? {} : { expand: guardedExpand(plugin.expand) }),
  };

  function guardedExpand(expand: NonNullable<VolumePlugin['expand']>): NonNullable<VolumePlugin['expand']> {
    return (call) => {
      const places = call.publication === undefined ? [] : placesOf(parts, call, call.publication);
      const [place, ...others] = [...places, stageOf(parts, call)].filter((one) => one !== undefined);
      return guarded([place, ...others], async ([before]) => {
        if (place?.proven === undefined || before?.mountId !== undefined) return expand(call);
        return fail(goneFrom(place.path));
      });
    };
  }
}

function createGuarded(judge: MountJudge) {
  return async <T>(
    places: readonly (WatchedPlace | undefined)[],
    verb: (before: Look) => Promise<Result<T>>,
    judgeAfter: (made: T, before: Look) => Promise<Result<void>> = async () => done,
  ): Promise<Result<T>> => {
    const seen = await judge.look(places.filter((place) => place !== undefined));
    if (!seen.ok) return seen;
    const result = await verb(seen.value);
    if (!result.ok) return fail(await judge.blame(places[0], result.failure));
    const judged = await judgeAfter(result.value, seen.value);
    return judged.ok ? result : judged;
  };
}

/** Nobody looks once more. */
function final<T>(result: Result<T>): Result<T> {
  if (result.ok) return result;
  const { isUnexpected: _, ...failure } = result.failure;
  return fail(failure);
}

/** Published anew it may be grown; until then a driver that looks at the path finds the file system of the node. */
function goneFrom(path: AbsolutePath): Failure {
  const message = `${path} is not mounted any more, so the volume is not grown there`;
  return { code: 'mount-lost', message, effect: 'none', blocker: path };
}
