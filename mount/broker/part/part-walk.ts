/**
 * From the root of a volume to a part of it, in a tree that a hostile container changes meanwhile (CVE-2017-1002101,
 * CVE-2021-25741). Path brokers only.
 *
 * Each component is opened below an open directory and never through a link; a link is read, and its text is walked in
 * the same way. What is above the root is never opened, so there is no moment at which a rename could lead there.
 */
import { closeSync, fstatSync, mkdirSync, readlinkSync } from 'node:fs';
import { codeOfErrno, errnoOf, failErrno } from '../../errno.ts';
import { type Effect, fail, ok, type Result } from '../../failure.ts';
import { printable } from '../../text/printable.ts';
import { MODE_BITS } from '../file/path-facts.ts';
import { childIn, openPath, type OpenPath } from '../path/path-walk.ts';

/** As Linux: path_resolution(7) gives up with ELOOP after 40. */
const LINKS_MAX = 40;
/** Components walked in all, those of links included; each on the way keeps a descriptor open. */
const COMPONENTS_MAX = 255;
const SHOWN_BYTES_MAX = 256;

export interface OpenPart {
  /** Whoever asked for it closes it. */
  readonly place: OpenPath;
  /** Something on the way was made. */
  readonly effect: Effect;
}

/** Opens what is at the part, whatever it is but a link. `root` stays open. */
export function openPart(root: OpenPath, part: string, makesMissing: boolean): Result<OpenPart> {
  const walk = new PartWalk(root, part, makesMissing);
  try {
    const failed = walk.run();
    if (failed !== undefined && !failed.ok) return fail({ ...failed.failure, effect: walk.effect });
    return ok({ place: walk.take(), effect: walk.effect });
  } finally {
    walk.close();
  }
}

class PartWalk {
  effect: Effect = 'none';
  readonly #part: string;
  readonly #makesMissing: boolean;
  readonly #mode: number;
  readonly #root: OpenPath;
  /** Below the root, the deepest last. */
  readonly #way: OpenPath[] = [];
  readonly #pending: Component[];
  #links = 0;

  constructor(root: OpenPath, part: string, makesMissing: boolean) {
    this.#root = root;
    this.#part = part;
    this.#makesMissing = makesMissing;
    this.#mode = fstatSync(root.descriptor).mode & MODE_BITS;
    this.#pending = [...componentsOf(part, false)];
  }

  /** Undefined: it has arrived. */
  run(): Result<never> | undefined {
    for (let walked = 0; walked < COMPONENTS_MAX; walked += 1) {
      const component = this.#pending.shift();
      if (component === undefined) return undefined;
      const failed = component.name === '..' ? this.#climb() : this.#enter(component);
      if (failed !== undefined) return failed;
    }
    return this.#unsafe(`it has more than ${COMPONENTS_MAX} components, those of links included`);
  }

  /** The place that was reached; its descriptor is the caller's from now on. */
  take(): OpenPath {
    return this.#way.pop() ?? openPath(childIn(this.#root, '.'));
  }

  close(): void {
    for (const { descriptor } of this.#way) closeSync(descriptor);
  }

  get #here(): OpenPath {
    return this.#way.at(-1) ?? this.#root;
  }

  #climb(): Result<never> | undefined {
    const left = this.#way.pop();
    if (left === undefined) return this.#unsafe('a link on it leads out of the volume');
    closeSync(left.descriptor);
    return undefined;
  }

  #enter(component: Component): Result<never> | undefined {
    const { name, isFromLink } = component;
    const child = childIn(this.#here, name);
    let place: OpenPath;
    try {
      place = openPath(child);
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') return failErrno(error, `walk to ${shown(name)}`, 'none');
      if (!this.#makesMissing || isFromLink) return this.#missing(component);
      const made = this.#make(child.path, component);
      if (made !== undefined) return made;
      // It is walked to like any other: somebody may have put a link in its place by now.
      this.#pending.unshift(component);
      return undefined;
    }
    this.#way.push(place);
    if (!fstatSync(place.descriptor).isSymbolicLink()) return undefined;
    this.#way.pop();
    closeSync(place.descriptor);
    return this.#follow(child.path, component);
  }

  #make(path: string, component: Component): Result<never> | undefined {
    try {
      mkdirSync(path, this.#mode);
      this.effect = 'unknown';
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === 'EROFS') return this.#missing(component);
      if (errno !== 'EEXIST') return failErrno(error, `mkdir ${shown(component.name)}`, 'none');
    }
    return undefined;
  }

  #follow(path: string, component: Component): Result<never> | undefined {
    this.#links += 1;
    if (this.#links > LINKS_MAX) return this.#unsafe(`it leads through more than ${LINKS_MAX} links`);
    let text: string;
    try {
      text = readlinkSync(path);
    } catch (error) {
      // It is no link any more, or gone: it is looked at again.
      if (!['path-missing', 'path-wrong-kind'].includes(codeOfErrno(errnoOf(error))))
        return failErrno(error, `read the link ${shown(component.name)}`, 'none');
      this.#pending.unshift(component);
      return undefined;
    }
    if (text.startsWith('/')) return this.#unsafe(`the link ${shown(component.name)} on it is absolute`);
    this.#pending.unshift(...componentsOf(text, true));
    return undefined;
  }

  #missing({ name, isFromLink }: Component): Result<never> {
    const what = shown(name);
    const because = isFromLink
      ? `a link on it leads to ${what}, which is not there`
      : `${what} is not there, and nothing is made in this volume, which can only be read`;
    return fail({ code: 'subpath-missing', message: `${shown(this.#part)}: ${because}`, effect: 'none' });
  }

  #unsafe(because: string): Result<never> {
    return fail({ code: 'subpath-unsafe', message: `${shown(this.#part)}: ${because}`, effect: 'none' });
  }
}

/** Nothing is made because a link names it. */
interface Component {
  readonly name: string;
  readonly isFromLink: boolean;
}

function componentsOf(text: string, isFromLink: boolean): readonly Component[] {
  const names = text.split('/').filter((one) => one !== '' && one !== '.');
  return names.map((name) => ({ name, isFromLink }));
}

/** A container chooses the names. */
function shown(text: string): string {
  return JSON.stringify(printable(text, SHOWN_BYTES_MAX));
}
