/** Which build this is: set by build.ts; a run from source says so. */

declare const MOORING_VERSION: string | undefined;
declare const MOORING_COMMIT: string | undefined;

export interface BuildVersion {
  readonly version: string;
  /** Git commit the bundle was built from, with `-dirty` when the tree had changes. */
  readonly commit: string;
}

export const BUILD: BuildVersion = {
  version: typeof MOORING_VERSION === 'string' ? MOORING_VERSION : '0.0.0-source',
  commit: typeof MOORING_COMMIT === 'string' ? MOORING_COMMIT : 'unknown',
};
