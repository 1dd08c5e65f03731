/** What CSI volumes are like. */
import type { FieldRule, VolumeTraits } from '../traits/volume-traits.ts';
import type { VolumeDataOwner } from '../layout/volume-data-text.ts';
import {
  CSI_DEFAULTS,
  CSI_PLUGIN,
  type CsiVolumeSpec,
  csiVolumeId,
  isBlock,
  isOncePod,
  type VolumeMode,
} from '../volume.ts';

declare module '../volume.ts' {
  interface VolumeSpecs {
    csi: CsiVolumeSpec;
  }
}

type Rule = FieldRule<CsiVolumeSpec>;

const always = (): boolean => true;
const FIXED: Rule = { fixed: always };
const FIXED_PLACE: Rule = { fixed: always, place: true, excludes: always };
/** Part of the volume's id. */
const IDENTITY: Rule = {};
const OF_THE_NEXT_POD: Rule = {};

/** What is for one pod or for readers is not for the next one. */
function isForFew({ accessModes: [only, ...more] }: CsiVolumeSpec): boolean {
  return more.length === 0 && (only === 'ReadWriteOncePod' || only === 'ReadOnlyMany');
}

/** What of a volume its vol_data.json tells. */
function fromPaper(data: VolumeDataOwner, specName: string, mode: VolumeMode): CsiVolumeSpec {
  const { driver, volumeHandle, lifecycle } = data;
  return {
    kind: 'csi',
    id: csiVolumeId(driver, volumeHandle),
    driver,
    volumeHandle,
    specName,
    fsType: '',
    mountOptions: [],
    volumeAttributes: {},
    accessModes: ['ReadWriteOnce'],
    readOnly: false,
    attachRequired: undefined,
    podInfoOnMount: false,
    ...CSI_DEFAULTS,
    mode,
    lifecycle,
  };
}

export const CSI_TRAITS: VolumeTraits<CsiVolumeSpec> = {
  kind: 'csi',
  plugin: CSI_PLUGIN,
  isShared: true,
  mountToldBy: 'device',
  driver: ({ driver }) => driver,
  stagingPath: (spec, layout) => layout.stagingPath(spec),
  stagingDirectory: ({ driver, volumeHandle }, layout) => layout.deviceDirectory(driver, volumeHandle),
  isDevice: isBlock,
  fileSystem: (spec) => (isBlock(spec) ? undefined : spec),
  isForOnePod: ({ accessModes }) => isOncePod(accessModes),
  isInline: ({ lifecycle }) => lifecycle === 'Ephemeral',
  completed: (spec) => {
    const missing = Object.entries(CSI_DEFAULTS).filter(([field]) => !Object.hasOwn(spec, field));
    return { ...spec, ...Object.fromEntries(missing) };
  },
  shownName: ({ specName }) => specName,
  name: ({ specName, volumeHandle }) => (specName === '' ? volumeHandle : specName),
  handle: ({ volumeHandle }) => volumeHandle,
  persistentVolume: ({ lifecycle, specName }) => (lifecycle === 'Persistent' ? specName : undefined),
  accessModes: ({ accessModes }) => accessModes,
  isNameless: ({ specName }) => specName === '',
  foundTarget: (place, layout) => layout.csiTarget(place),
  fromPaper,
  fields: {
    driver: IDENTITY,
    volumeHandle: IDENTITY,
    mode: { ...FIXED_PLACE, title: 'volumeMode' },
    lifecycle: FIXED_PLACE,
    fsType: FIXED,
    mountOptions: FIXED,
    volumeAttributes: FIXED,
    accessModes: { ...FIXED, excludes: isForFew },
    readOnly: FIXED,
    seLinuxContext: { ...FIXED, excludes: always, inTurn: true, title: 'SELinux context' },
    // No CSIDriver object is as good as one that says nothing of attaching.
    attachRequired: { ...FIXED, ofDriver: true, meaning: ({ attachRequired }) => attachRequired !== false },
    // A place of a device goes by its PersistentVolume's name, one of files by the handle.
    specName: { ...FIXED_PLACE, fixed: ({ mode }) => mode === 'Block', title: 'PersistentVolume' },
    podInfoOnMount: OF_THE_NEXT_POD,
    fsGroupPolicy: OF_THE_NEXT_POD,
    tokensInSecrets: OF_THE_NEXT_POD,
    reachableFrom: OF_THE_NEXT_POD,
    controllerPublishSecret: OF_THE_NEXT_POD,
  },
};
