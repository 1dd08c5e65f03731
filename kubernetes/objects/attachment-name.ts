/** The name that whoever attaches and whoever uses a volume both make by themselves. Pure. */
import { createHash } from 'node:crypto';

interface Handle {
  readonly driver: string;
  readonly volumeHandle: string;
}

/** The VolumeAttachment of a volume and a node has this name, on which all have agreed (pkg/volume/csi). */
export function attachmentNameOf({ driver, volumeHandle }: Handle, nodeName: string): string {
  return `csi-${createHash('sha256').update(`${volumeHandle}${driver}${nodeName}`).digest('hex')}`;
}

/** `attachmentNameOf` of one node, which makes the hash once for each object: it is asked for again and again. */
export function createAttachmentNames(nodeName: string): (handle: Handle) => string {
  const names = new WeakMap<Handle, string>();
  return (handle) => {
    const known = names.get(handle);
    if (known !== undefined) return known;
    const name = attachmentNameOf(handle, nodeName);
    names.set(handle, name);
    return name;
  };
}
