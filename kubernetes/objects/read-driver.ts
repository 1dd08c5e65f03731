/** CSIDriver objects: what the cluster says about a driver. */
import type { FsGroupPolicy } from '../../plugins/volume.ts';
import { readMetadata } from './read-metadata.ts';
import { DRIVER_NAME } from '../fields/object-name.ts';
import type { CsiDriver, LifecycleMode, TokenRequest } from './objects.ts';
import { type FieldReader, quoted } from '../fields/field-reader.ts';

const FS_GROUP_POLICIES: readonly FsGroupPolicy[] = ['ReadWriteOnceWithFSType', 'File', 'None'];
const LIFECYCLE_MODES: readonly LifecycleMode[] = ['Persistent', 'Ephemeral'];
const TOKEN_SECONDS_MIN = 600;
const TOKEN_SECONDS_MAX = 2 ** 32;

/** Defaults as the API server sets them: attach is required unless the driver says otherwise. */
export function readCsiDriver(reader: FieldReader): CsiDriver {
  const { name } = readMetadata(reader, DRIVER_NAME);
  const spec = reader.key('spec');
  const modes = spec.key('volumeLifecycleModes').list();
  return {
    kind: 'CSIDriver',
    name,
    attachRequired: spec.key('attachRequired').flag(true),
    podInfoOnMount: spec.key('podInfoOnMount').flag(false),
    fsGroupPolicy: spec.key('fsGroupPolicy').oneOf(FS_GROUP_POLICIES, 'ReadWriteOnceWithFSType'),
    lifecycleModes:
      modes.length === 0
        ? ['Persistent']
        : [...new Set(modes.map((one) => one.requiredOneOf(LIFECYCLE_MODES, 'Persistent')))],
    requiresRepublish: spec.key('requiresRepublish').flag(false),
    tokenRequests: readTokenRequests(spec.key('tokenRequests')),
    seLinuxMount: spec.key('seLinuxMount').flag(false),
    serviceAccountTokenInSecrets: spec.key('serviceAccountTokenInSecrets').flag(false),
  };
}

/** The audience is the key under which the driver finds its token: each at most once. */
function readTokenRequests(reader: FieldReader): readonly TokenRequest[] {
  const audiences = new Set<string>();
  return reader.list().map((one) => {
    const audience = one.key('audience').text() ?? '';
    if (audiences.has(audience))
      one.key('audience').refuse(`${quoted(audience)} is the audience of an earlier request`);
    audiences.add(audience);
    const right = `seconds from ${TOKEN_SECONDS_MIN} to ${TOKEN_SECONDS_MAX}`;
    const expirationSeconds = one
      .key('expirationSeconds')
      .integer(TOKEN_SECONDS_MIN, TOKEN_SECONDS_MAX, right);
    return { audience, expirationSeconds };
  });
}
