/** The access mode a CSI call carries, mapped as the kubelet maps it (KV-E3, KV-C4). */
import type { AccessMode } from '../../volume.ts';
import { VolumeCapability_AccessMode_Mode as Mode } from '../wire/generated/csi.ts';

/**
 * Only the first of the volume's modes is sent; none is ReadWriteOnce. `singleNodeMultiWriter`: the service that is
 * called (Controller or Node, each for itself) has that capability, without which modes 6 and 7 must not be sent.
 */
export function csiAccessMode(modes: readonly AccessMode[], singleNodeMultiWriter: boolean): Mode {
  const [mode = 'ReadWriteOnce'] = modes;
  switch (mode) {
    case 'ReadWriteOnce':
      return singleNodeMultiWriter ? Mode.SINGLE_NODE_MULTI_WRITER : Mode.SINGLE_NODE_WRITER;
    case 'ReadWriteOncePod':
      return singleNodeMultiWriter ? Mode.SINGLE_NODE_SINGLE_WRITER : Mode.SINGLE_NODE_WRITER;
    case 'ReadOnlyMany':
      return Mode.MULTI_NODE_READER_ONLY;
    case 'ReadWriteMany':
      return Mode.MULTI_NODE_MULTI_WRITER;
  }
}
