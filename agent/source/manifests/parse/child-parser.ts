/** Manifests read in a process of their own, so that the agent's loop never waits for one. */
import { fail, ok } from '../../../../mount/failure.ts';
import type { ParserBroker } from '../../../../mount/agent-side/parser-broker.ts';
import type { ManifestParser } from './manifest-parser.ts';
import { unreadable } from './file-reading.ts';
import { fromParts } from './manifest-wire.ts';

export function createChildParser(broker: Pick<ParserBroker, 'parse'>): ManifestParser {
  return {
    async parse(request) {
      const parsing = await broker.parse(request);
      if (parsing.kind === 'parsed') return ok(fromParts(parsing.parts));
      if (parsing.kind === 'exhausted')
        return ok(
          unreadable(`to read it takes more than ${parsing.bound}; it is read again when it changes`),
        );
      const message = 'the process that reads manifests ended';
      return fail({ code: 'broker-lost', message, effect: 'none' });
    },
  };
}
