/** NFS volumes as they are written, alike in a PersistentVolume and in a pod. */
import type { FieldReader } from '../fields/field-reader.ts';
import { readNfsExport } from '../fields/nfs-export.ts';
import type { NfsSource } from './objects.ts';

export function readNfsSource(nfs: FieldReader): NfsSource {
  return { kind: 'nfs', ...readNfsExport(nfs), readOnly: nfs.key('readOnly').flag(false) };
}
