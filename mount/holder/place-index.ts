/** Which of many places a path lies in: by what is mounted where, so that no file has to be asked. Pure. */
import { nameOfRoot } from '../text/root-name.ts';
import type { PlaceHolder } from './place-holder.ts';

/** A place, and the part of a file system that is there. */
export interface IndexedPlace {
  readonly path: string;
  /** `major:minor`, as in mountinfo. */
  readonly device: string;
  /** As in mountinfo: of a directory that is no mount point, its path in the file system. */
  readonly root: string;
  /**
   * The same is mounted in another pod as well, and stays there: who was given it need not have it from here, so that
   * says nothing.
   */
  readonly isShared: boolean;
  /** Where else the same is mounted by us or for us: who has a copy of that has nothing of this. */
  readonly elsewhere: readonly string[];
}

/** A line of the table of another namespace. */
export interface ForeignMount {
  readonly device: string;
  readonly root: string;
  readonly target: string;
  /** It goes when a mount of ours does. */
  readonly followsOurs: boolean;
}

export interface ForeignHold {
  readonly place: IndexedPlace;
  readonly target: string;
  readonly how: Exclude<PlaceHolder['how'], 'uses'>;
}

export class PlaceIndex {
  readonly #byPath = new Map<string, IndexedPlace>();
  readonly #byRoot = new Map<string, IndexedPlace[]>();

  constructor(places: readonly IndexedPlace[]) {
    for (const place of places) {
      this.#byPath.set(place.path, place);
      const key = `${place.device} ${place.root}`;
      this.#byRoot.set(key, [...(this.#byRoot.get(key) ?? []), place]);
    }
  }

  /** The place that a path of our own namespace is, or lies in. */
  ownPlaceOf(path: string): IndexedPlace | undefined {
    for (const above of upwards(path)) {
      const place = this.#byPath.get(above);
      if (place !== undefined) return place;
    }
    return undefined;
  }

  /** The mounts by which another namespace has a place, and would have it when it is gone from ours. */
  holdsOf(mounts: readonly ForeignMount[]): readonly ForeignHold[] {
    return mounts
      .filter(({ followsOurs }) => !followsOurs)
      .flatMap(({ device, root, target }) =>
        this.#of(device, root, target).map((place) => {
          const isCopy = root === place.root && target.endsWith(place.path);
          return { place, target, how: isCopy ? 'copy' : 'bound' };
        }),
      );
  }

  /** The places that a path of another namespace is, or lies in. */
  foreignPlacesOf(path: string, mounts: ReadonlyMap<string, ForeignMount>): readonly IndexedPlace[] {
    for (const above of upwards(path)) {
      const mount = mounts.get(above);
      if (mount === undefined) continue;
      const rest = above === '/' ? path : path.slice(above.length);
      return this.#of(mount.device, joined(mount.root, rest), path);
    }
    return [];
  }

  /** A place is a directory of what is mounted there, and not all of it. */
  isAbovePlaces({ device, root }: Pick<ForeignMount, 'device' | 'root'>): boolean {
    const start = root === '/' ? root : `${nameOfRoot(root)}/`;
    return [...this.#byPath.values()].some(
      (place) => place.device === device && place.root !== root && place.root.startsWith(start),
    );
  }

  /** `seenAt`: one volume is the same part of one file system in each of its pods, and only the path tells whose. */
  #of(device: string, root: string, seenAt: string): readonly IndexedPlace[] {
    for (const above of upwards(nameOfRoot(root))) {
      const places = this.#byRoot.get(`${device} ${above}`);
      if (places === undefined) continue;
      const exact = places.filter(({ path }) => seenAt.includes(path));
      if (exact.length > 0) return exact;
      return places.filter(
        ({ isShared, elsewhere }) => !isShared && !elsewhere.some((other) => seenAt.includes(other)),
      );
    }
    return [];
  }
}

/** What of the mounted file system is at the rest of a path behind its mount point. */
export function joined(root: string, rest: string): string {
  if (rest === '' || rest === '/') return root;
  return root === '/' ? rest : `${root}${rest}`;
}

/** The path, and all above it. */
function* upwards(path: string): Generator<string> {
  let at = path;
  while (at !== '/' && at !== '') {
    yield at;
    at = at.slice(0, at.lastIndexOf('/'));
  }
  yield '/';
}
