/** The manifests as the agent reads them: from the directory that is trusted, with an operator's word on it. */
import { done } from '../../../mount/failure.ts';
import type { Host } from '../../../mount/host.ts';
import type { Log } from '../../../mount/process/log.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import type { Config } from '../../config/config.ts';
import type { NodeSight, ObjectsSource } from '../objects-source.ts';
import { createDirectoryTrust } from './directory-trust.ts';
import type { ManifestParser } from './parse/manifest-parser.ts';
import { createManifestSource } from './manifest-source.ts';

export interface TrustedManifestsParts {
  readonly host: Host;
  readonly parser: ManifestParser;
  readonly config: Pick<Config, 'root' | 'manifests' | 'resyncMs' | 'settleMs' | 'vanishedHoldMs'>;
  readonly log: Log;
}

export function createTrustedManifests({ host, parser, config, log }: TrustedManifestsParts): ObjectsSource {
  let node: NodeSight = { stake: () => 'unknown', missing: () => 0, refuseStranger: async () => done };
  const trust = createDirectoryTrust({
    host,
    directory: config.manifests,
    note: createLayout(config.root).source,
    // What was just read is no wish of the node's yet.
    stake: () => (source.mayWantPods() ? 'something' : node.stake()),
    refuseStranger: (path) => node.refuseStranger(path),
    log,
  });
  const source = createManifestSource({
    host,
    directory: config.manifests,
    parser,
    resyncMs: config.resyncMs,
    settleMs: config.settleMs,
    trust,
    missing: () => node.missing(),
    holdMs: config.vanishedHoldMs,
  });
  return {
    name: source.name,
    start(sight) {
      node = sight;
      return source.start();
    },
    stop: () => source.stop(),
    current: () => source.current(),
    onChange: (listener) => source.onChange(listener),
    keeping: {
      replaced: () => trust.replaced(),
      async accept(sight) {
        const accepted = await trust.accept(sight);
        // Not written down it is accepted all the same, by this process.
        if (accepted.ok || trust.replaced() === undefined) source.accepted();
        return accepted;
      },
      forget: (pods) => source.forget(pods),
    },
  };
}
