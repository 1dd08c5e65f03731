/** How much a directory of manifests may hold. Beyond a bound a file is unknown, never silently cut. */
export interface ManifestLimits {
  readonly fileBytesMax: number;
  /** Mappings and lists inside each other, in one document. */
  readonly depthMax: number;
  readonly documentsMax: number;
  /** Entries of the directory, manifests or not. */
  readonly filesMax: number;
  /** Objects wanted at one time, over all files. */
  readonly objectsMax: number;
}

/** Far above any node's need (110 pods), and small enough to be read in seconds. */
export const DEFAULT_MANIFEST_LIMITS: ManifestLimits = {
  fileBytesMax: 1_048_576,
  depthMax: 64,
  documentsMax: 1_000,
  filesMax: 10_000,
  objectsMax: 50_000,
};
