/** The parser of manifests in virtual time: slow in some seeds, and sometimes gone in the middle of a file. */
import type { ManifestParser } from '../../agent/source/manifests/parse/manifest-parser.ts';
import { fail } from '../../mount/failure.ts';
import type { Host } from '../../mount/host.ts';
import type { Random } from './random.ts';

/** What it is like in one seed. */
export interface ParserNature {
  readonly latencyMsMax: number;
  /** How often each file is lost. */
  readonly lost: number;
}

const SHARE = 0.1;
const LOST = fail({ code: 'broker-lost', message: 'the process that reads manifests ended', effect: 'none' });

/** Undefined: it answers at once. `random` is a stream of its own, so that the other seeds keep their stories. */
export function drawParser(random: Random): ParserNature | undefined {
  if (!random.chance(SHARE)) return undefined;
  return { latencyMsMax: random.pick([20, 1_000, 20_000]), lost: random.pick([0, 0.1, 0.5]) };
}

export interface SimParserParts {
  /** Who parses in truth; this one is only slow. */
  readonly parser: ManifestParser;
  readonly host: Pick<Host, 'timer'>;
  readonly random: Random;
  readonly nature: ParserNature;
  /** When not, it answers at once. */
  readonly stormy: () => boolean;
}

export function createSimParser({ parser, host, random, nature, stormy }: SimParserParts): ManifestParser {
  return {
    async parse(request) {
      if (!stormy()) return parser.parse(request);
      await new Promise<void>((resolve) => {
        host.timer(random.below(nature.latencyMsMax), resolve);
      });
      return random.chance(nature.lost) ? LOST : parser.parse(request);
    },
  };
}
