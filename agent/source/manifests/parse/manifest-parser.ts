/** The port to whatever reads manifests: a child process in the product, the same function at once in tests. */
import type { Result } from '../../../../mount/failure.ts';
import type { ManifestLimits } from './manifest-limits.ts';
import type { FileReading } from './file-reading.ts';

/** One content of one file. */
export interface ParseRequest {
  readonly origin: string;
  readonly bytes: Uint8Array;
  readonly limits: ManifestLimits;
}

export interface ManifestParser {
  /**
   * What the bytes say; bytes that cost more than a file may are `unreadable`, and would be again. A failure is the
   * parser's own, and may be another's fault: nothing is known of the bytes. One at a time.
   */
  parse(request: ParseRequest): Promise<Result<FileReading>>;
}
