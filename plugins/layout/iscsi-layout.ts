/** Identity to path for disks of iSCSI targets, as the kubelet has it, and for what the agent notes of sessions. */
import { type AbsolutePath, below } from '../../mount/host.ts';
import { INTERFACE, ISCSI_STAGES, SESSIONS } from './component.ts';

/** What decides where a disk is staged. */
export interface IscsiPlace {
  /** `host:port`, of IPv6 in brackets. */
  readonly portal: string;
  readonly iqn: string;
  readonly lun: number;
  readonly iface: string;
}

export interface IscsiLayout {
  /** `plugins/kubernetes.io/iscsi`: the file systems of iSCSI, by interface. */
  readonly iscsiStages: AbsolutePath;
  /** `plugins/kubernetes.io/iscsi/iface-<interface>/<portal>-<iqn>-lun-<n>` */
  iscsiStage(place: IscsiPlace): AbsolutePath;
  /** `<root>/mooring/sessions`: the sessions of iSCSI that the agent has begun, or was about to. */
  readonly sessionNotes: AbsolutePath;
  sessionNote(name: string): AbsolutePath;
}

export function iscsiLayout(plugins: AbsolutePath, own: AbsolutePath): IscsiLayout {
  const iscsiStages = below(plugins, ...ISCSI_STAGES);
  const sessionNotes = below(own, SESSIONS);
  return {
    iscsiStages,
    iscsiStage: ({ portal, iqn, lun, iface }) =>
      below(iscsiStages, INTERFACE + iface, `${portal}-${iqn}-lun-${lun}`),
    sessionNotes,
    sessionNote: (name) => below(sessionNotes, `${name}.json`),
  };
}
