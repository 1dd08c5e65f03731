/** The volumes of this node as their drivers know them: which secrets each has, and whether it may have had others. */
import type { VolumeHere } from '../../plugins/csi/csi-plugin.ts';
import { driverOf } from '../../plugins/kinds/volume-questions.ts';
import type { VolumeSecrets } from '../../plugins/plugin.ts';
import type { VolumeSpec } from '../../plugins/volume.ts';
import type { Reconciler } from '../../reconciler/reconciler.ts';
import { unwantedSecrets } from '../resolve/csi-secrets.ts';
import type { DesiredFeed } from './desired-feed.ts';

export interface VolumesHere {
  /** Those of a volume, wanted or not. */
  secretsOf(spec: VolumeSpec): VolumeSecrets;
  /** Every volume of this driver, or of any, of which something stands, or may stand. */
  list(driver?: string): readonly VolumeHere[];
}

/** `reconciler`: undefined before the state was rebuilt, and then nothing is here. */
export function createVolumesHere(
  feed: Pick<DesiredFeed, 'source'>,
  reconciler: () => Pick<Reconciler, 'actual' | 'desired'> | undefined,
): VolumesHere {
  function secretsOf(spec: VolumeSpec): VolumeSecrets {
    const wanted = reconciler()?.desired().volumes.get(spec.id);
    return wanted?.secrets ?? unwantedSecrets(feed.source.current(), spec);
  }
  return {
    secretsOf,
    list(driver) {
      return [...(reconciler()?.actual().values() ?? [])].flatMap(({ spec, isInherited }) => {
        const of = driverOf(spec);
        if (of === undefined || of !== (driver ?? of)) return [];
        return [{ spec, secrets: secretsOf(spec), facts: { isInherited } }];
      });
    },
  };
}
