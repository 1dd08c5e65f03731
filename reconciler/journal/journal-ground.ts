/** A journal is neither written nor looked for in what somebody mounted over its directory. */
import type { Result } from '../../mount/failure.ts';
import { type Ground, refuseStrangerOver } from '../../mount/ground.ts';
import { type AbsolutePath, below, type Host } from '../../mount/host.ts';
import { FILE_NAMES } from './journal-reading.ts';

export interface GroundParts {
  readonly host: Pick<Host, 'mountPlaceOf' | 'overwriteFile'>;
  /** It is there that the journal lies. */
  readonly directory: AbsolutePath;
  readonly ground: Pick<Ground, 'expectedRound' | 'refuseStranger'>;
}

/** Writes over what is there. Where it is known what the directory lies in, the look whether it does is no call. */
export async function overwriteOnGround(
  parts: GroundParts,
  path: AbsolutePath,
  at: number,
  content: Uint8Array,
): Promise<Result<void>> {
  const { host, ground } = parts;
  const within = ground.expectedRound(path);
  if (within !== undefined) {
    const written = await host.overwriteFile(path, at, content, within);
    if (written.ok || written.failure.code !== 'mount-foreign') return written;
  }
  // Where nobody is found who covers it, the ground itself was mounted anew, or he has just gone.
  const firm = await refuseStranger(parts);
  return firm.ok ? host.overwriteFile(path, at, content, ground.expectedRound(path)) : firm;
}

/** A failure says who covers the directory, or why that cannot be seen; its effect is `none`. */
export function refuseStranger(parts: GroundParts): Promise<Result<void>> {
  return refuseStrangerOver(parts, below(parts.directory, FILE_NAMES[0]));
}
