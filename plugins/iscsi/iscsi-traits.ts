/** What volumes of kind iscsi are like: a disk of a target, mounted once on this node, for all pods that name it. */
import type { IscsiPlace } from '../layout/iscsi-layout.ts';
import type { FieldRule, VolumeTraits } from '../traits/volume-traits.ts';
import { type AccessMode, isOncePod, type PluginName, type VolumeId } from '../volume.ts';

declare module '../volume.ts' {
  interface VolumeSpecs {
    iscsi: IscsiVolumeSpec;
  }
}

/** `iscsi` of a pod, or a PersistentVolume with `spec.iscsi`. */
export interface IscsiVolumeSpec extends IscsiPlace {
  readonly kind: 'iscsi';
  readonly id: VolumeId;
  /** More ways to the same disk. */
  readonly portals: readonly string[];
  /** What the disk is to hold; empty is whatever is on it, and ext4 where nothing is. */
  readonly fsType: string;
  readonly mountOptions: readonly string[];
  /** Nothing of it is ever written, by no pod. */
  readonly readOnly: boolean;
  /** What a password is needed for; the secret itself is nowhere here. */
  readonly chap: ChapUse;
  readonly accessModes: readonly AccessMode[];
}

export interface ChapUse {
  readonly discovery: boolean;
  readonly session: boolean;
}

export const ISCSI_PLUGIN: PluginName = 'kubernetes.io/iscsi';

const IDENTITY: FieldRule<IscsiVolumeSpec> = {};
const FIXED: FieldRule<IscsiVolumeSpec> = { fixed: () => true };

export const ISCSI_TRAITS: VolumeTraits<IscsiVolumeSpec> = {
  kind: 'iscsi',
  plugin: ISCSI_PLUGIN,
  isShared: true,
  // Whether it is the disk of its target its plugin sees.
  mountToldBy: 'plugin',
  isForOnePod: ({ accessModes }) => isOncePod(accessModes),
  shownName: titleOf,
  name: titleOf,
  accessModes: ({ accessModes }) => accessModes,
  stagingPath: (spec, layout) => layout.iscsiStage(spec),
  fileSystem: (spec) => spec,
  stages: { directory: (layout) => layout.iscsiStages, isGrouped: true, fromName: found },
  fields: {
    portal: IDENTITY,
    iqn: IDENTITY,
    lun: IDENTITY,
    iface: { ...FIXED, place: true, excludes: () => true, title: 'iscsiInterface' },
    portals: FIXED,
    fsType: FIXED,
    mountOptions: FIXED,
    readOnly: { ...FIXED, excludes: () => true, inTurn: true },
    chap: { ...FIXED, meaning: ({ chap }) => `${chap.discovery} ${chap.session}` },
    accessModes: FIXED,
  },
};

/** As the kubelet calls it: the same disk is the same volume, whoever names it. */
export function iscsiVolumeId({ portal, iqn, lun }: Omit<IscsiPlace, 'iface'>): VolumeId {
  return `${ISCSI_PLUGIN}/${portal}:${iqn}:${lun}` as VolumeId;
}

/** People are told this name. */
export function titleOf({ iqn, lun }: Pick<IscsiPlace, 'iqn' | 'lun'>): string {
  return `LUN ${lun} of ${iqn}`;
}

const STAGE = /^iface-([^/]+)\/(.+?:[0-9]{1,5})-((?:iqn|eui|naa)\..+)-lun-([0-9]{1,3})$/;

/** The disk that is staged in a directory of this name, its interface's before it; undefined: no name of ours. */
export function placeFromStage(name: string): IscsiPlace | undefined {
  const [, iface, portal, iqn, lun] = STAGE.exec(name) ?? [];
  if (iface === undefined || portal === undefined || iqn === undefined) return undefined;
  return { iface, portal, iqn, lun: Number(lun) };
}

function found(name: string): IscsiVolumeSpec | undefined {
  const place = placeFromStage(name);
  if (place === undefined) return undefined;
  return {
    kind: 'iscsi',
    id: iscsiVolumeId(place),
    ...place,
    portals: [],
    fsType: '',
    mountOptions: [],
    readOnly: false,
    chap: { discovery: false, session: false },
    accessModes: [],
  };
}
