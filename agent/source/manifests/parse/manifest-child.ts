/** What the parser's process does with a manifest. It alone loads the YAML package, and it logs nothing. */
import type { Parse } from '../../../../mount/broker/broker-protocol.ts';
import type { ParseRequest } from './manifest-parser.ts';
import { readManifestFile } from './manifest-reading.ts';
import { toParts } from './manifest-wire.ts';

export const parseManifestParts: Parse = (request) => {
  const { origin, bytes, limits } = request as ParseRequest;
  return toParts(readManifestFile(origin, bytes, limits));
};
