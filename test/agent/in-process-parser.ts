/** Manifests read at once and in this process, but by way of the wire. */
import { parseManifestParts } from '../../agent/manifest-child.ts';
import type { ManifestParser } from '../../agent/manifest-parser.ts';
import { fromParts } from '../../agent/manifest-wire.ts';
import { ok } from '../../mount/failure.ts';

export const IN_PROCESS_PARSER: ManifestParser = {
  parse: async (request) => ok(fromParts(structuredClone(parseManifestParts(request)))),
};
