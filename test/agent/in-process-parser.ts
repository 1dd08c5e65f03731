/** Manifests read at once and in this process, but by way of the wire. */
import { parseManifestParts } from '../../agent/source/manifests/parse/manifest-child.ts';
import type { ManifestParser } from '../../agent/source/manifests/parse/manifest-parser.ts';
import { fromParts } from '../../agent/source/manifests/parse/manifest-wire.ts';
import { ok } from '../../mount/failure.ts';

export const IN_PROCESS_PARSER: ManifestParser = {
  parse: async (request) => ok(fromParts(structuredClone(parseManifestParts(request)))),
};

/**
 * Answers the same, and works once for the same bytes of the same file: for worlds that read their files again and
 * again. Bytes are known as such: who changes a file puts others in their place.
 */
export function createRememberingParser(): ManifestParser {
  const known = new WeakMap<Uint8Array, Map<string, readonly unknown[]>>();
  return {
    async parse(request) {
      const { origin, bytes, limits } = request;
      const ofBytes = known.get(bytes) ?? new Map<string, readonly unknown[]>();
      known.set(bytes, ofBytes);
      const key = JSON.stringify([origin, limits]);
      const parts = ofBytes.get(key) ?? parseManifestParts(request);
      ofBytes.set(key, parts);
      return ok(fromParts(structuredClone(parts)));
    },
  };
}
