/** Absolute paths: the one way to make them from text, and what is done with them. */
import { hasAtMostBytes } from './text/byte-bound.ts';

declare const brand: unique symbol;

/** A string that went through its parser. */
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };

/** Absolute, no `.` or `..` component, no NUL, no trailing or double slash, at most 4,095 bytes. */
export type AbsolutePath = Brand<string, 'AbsolutePath'>;

const PATH_BYTES_MAX = 4_095;
/** Neither empty, nor `.` or `..`, without slash and NUL. */
const COMPONENT = /^(?!\.{1,2}$)[^/\0]+$/;
const ABSOLUTE = /^(?:\/(?!\.{1,2}(?:\/|$))[^/\0]+)+$/;

/** The only door to `AbsolutePath` for text from outside; undefined when it is not one. */
export function parseAbsolutePath(text: string): AbsolutePath | undefined {
  const isPath = text === '/' || (hasAtMostBytes(text, PATH_BYTES_MAX) && ABSOLUTE.test(text));
  return isPath ? (text as AbsolutePath) : undefined;
}

/** Appends components that the caller has checked; a bad component is a broken invariant. */
export function below(parent: AbsolutePath, ...components: readonly string[]): AbsolutePath {
  let path = parent === '/' ? '' : (parent as string);
  let isPath = true;
  for (const component of components) {
    path += `/${component}`;
    isPath &&= COMPONENT.test(component);
  }
  if (!isPath || !hasAtMostBytes(path, PATH_BYTES_MAX))
    throw new Error(`broken invariant: not a path component: ${JSON.stringify(components)}`);
  return path === '' ? parent : (path as AbsolutePath);
}

export function parentOf(path: AbsolutePath): AbsolutePath {
  const cut = path.lastIndexOf('/');
  return (cut <= 0 ? '/' : path.slice(0, cut)) as AbsolutePath;
}

/** Its last component; empty for the root. */
export function nameIn(path: AbsolutePath): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** `/`, and each directory down to the path, itself last. */
export function wayTo(path: AbsolutePath): readonly AbsolutePath[] {
  return path === '/' ? [path] : [...wayTo(parentOf(path)), path];
}

export function isBelow(path: AbsolutePath, ancestor: AbsolutePath): boolean {
  return ancestor === '/' || path.startsWith(`${ancestor}/`);
}

/** They are the same, or one lies below the other. */
export function overlap(one: AbsolutePath, other: AbsolutePath): boolean {
  return one === other || isBelow(one, other) || isBelow(other, one);
}
