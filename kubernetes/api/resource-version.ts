/** Order of resourceVersions: decimal text, comparable within one resource (Kubernetes 1.35). Never made a number. */

const WELL_FORMED = /^[1-9]\d{0,63}$/;

export function isResourceVersion(text: unknown): text is string {
  return typeof text === 'string' && WELL_FORMED.test(text);
}

/** Negative when `a` is older than `b`. Both are well-formed. */
export function compareResourceVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
