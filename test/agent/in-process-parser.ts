/** Manifests read at once and in this process, but by way of the wire. */
import { parseManifestParts } from '../../agent/source/manifests/parse/manifest-child.ts';
import type { ManifestParser, ParseRequest } from '../../agent/source/manifests/parse/manifest-parser.ts';
import { fromParts } from '../../agent/source/manifests/parse/manifest-wire.ts';
import { ok } from '../../mount/failure.ts';
import { plainCopy } from '../plain-copy.ts';

type Parts = readonly unknown[];

export const IN_PROCESS_PARSER: ManifestParser = {
  parse: async (request) => ok(fromParts(plainCopy<Parts>(parseManifestParts(request)))),
};

/** Files that many worlds have alike, and those of a few worlds. */
const REMEMBERED_MAX = 2_000;

/**
 * Answers the same, and works once for the same content of a file of the same name: for worlds that read their files
 * again and again, and that have many files in common. What was asked for longest ago is forgotten.
 */
export const REMEMBERING_PARSER: ManifestParser = createRememberingParser(parseManifestParts, REMEMBERED_MAX);

/** `parse` is pure. */
export function createRememberingParser(
  parse: (request: ParseRequest) => Parts,
  rememberedMax: number,
): ManifestParser {
  const known = new Map<string, Parts>();
  return {
    async parse(request) {
      const { origin, bytes, limits } = request;
      const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
      const key = `${JSON.stringify([origin, limits])} ${content}`;
      const parts = known.get(key) ?? parse(request);
      known.delete(key);
      known.set(key, parts);
      const [oldest] = known.keys();
      if (known.size > rememberedMax && oldest !== undefined) known.delete(oldest);
      return ok(fromParts(plainCopy(parts)));
    },
  };
}
