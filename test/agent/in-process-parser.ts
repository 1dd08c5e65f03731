/** Manifests read at once and in this process, but by way of the wire. */
import { parseManifestParts } from '../../agent/source/manifests/manifest-child.ts';
import type { ManifestParser } from '../../agent/source/manifests/manifest-parser.ts';
import { fromParts } from '../../agent/source/manifests/manifest-wire.ts';
import { ok } from '../../mount/failure.ts';

export const IN_PROCESS_PARSER: ManifestParser = {
  parse: async (request) => ok(fromParts(structuredClone(parseManifestParts(request)))),
};

/** Answers the same, and works once for the same request: for worlds that read their files again and again. */
export function createRememberingParser(): ManifestParser {
  const known = new Map<string, ReturnType<typeof parseManifestParts>>();
  return {
    async parse(request) {
      const { origin, bytes, limits } = request;
      const key = JSON.stringify([origin, Buffer.from(bytes).toString('latin1'), limits]);
      const parts = known.get(key) ?? parseManifestParts(request);
      known.set(key, parts);
      return ok(fromParts(structuredClone(parts)));
    },
  };
}
