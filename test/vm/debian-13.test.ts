/**
 * A node of the next Debian: its podman has Quadlet, and its kernel is another one than that of the other machines. A
 * boot serves all that needs more packages than a volume does, so what is told of them is in the files beside.
 */
import { test } from 'node:test';
import { tellOfIscsiTarget } from './iscsi-target.ts';
import type { MachineKind } from './machine-image.ts';
import { tellOfNfsServer } from './nfs-server.ts';
import { tellOfUnits } from './quadlet.ts';
import { onVmNode } from './vm-node.ts';

const DEBIAN_13: MachineKind = {
  release: 'trixie',
  packages: [
    'podman',
    'crun',
    'catatonit',
    'busybox-static',
    'nfs-common',
    'nfs-kernel-server',
    'nftables',
    'open-iscsi',
    'tgt',
  ],
};

test('podman runs by Quadlet, and a unit without it, on what is prepared: from boot to reboot to nothing', (t) =>
  onVmNode(t, tellOfUnits, DEBIAN_13));

test('a real NFS server: mounted, proven while it is silent, in nobody’s way, and all converges', (t) =>
  onVmNode(t, tellOfNfsServer, DEBIAN_13));

test('a real iSCSI target: entered with CHAP, formatted, kept over kill -9, and left behind the last volume', (t) =>
  onVmNode(t, tellOfIscsiTarget, DEBIAN_13));
