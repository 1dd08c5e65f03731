/** How much a directory of manifests may hold. Beyond a bound a file is unknown, never silently cut. */
export interface ManifestLimits {
  readonly fileBytesMax: number;
  /** The bound of all files together; the smaller ones have room first. */
  readonly allBytesMax: number;
  readonly linesMax: number;
  /** Mappings and lists inside each other, in one document. */
  readonly depthMax: number;
  readonly documentsMax: number;
  /** Documents and items of lists, in one file. */
  readonly fileObjectsMax: number;
  /** Texts, numbers, mappings and lists in one object. */
  readonly valuesMax: number;
  /** Entries of the directory, manifests or not. */
  readonly filesMax: number;
}

/**
 * Far above any node's need (110 pods), and so small that a file is read in seconds and what it says is taken over in
 * milliseconds.
 */
export const DEFAULT_MANIFEST_LIMITS: ManifestLimits = {
  fileBytesMax: 1_048_576,
  allBytesMax: 268_435_456,
  linesMax: 131_072,
  depthMax: 64,
  documentsMax: 1_000,
  fileObjectsMax: 4_000,
  valuesMax: 10_000,
  filesMax: 10_000,
};
