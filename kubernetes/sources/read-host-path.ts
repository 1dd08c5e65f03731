/** A path of the machine as a volume: of a pod, or behind a claim. */
import type { AbsolutePath } from '../../mount/absolute-path.ts';
import type { HostPathType } from '../../plugins/volume.ts';
import type { FieldReader } from '../fields/field-reader.ts';
import { readHostPath } from '../fields/host-path.ts';

export interface HostPathSource {
  readonly kind: 'host-path';
  readonly path: AbsolutePath;
  readonly type: HostPathType;
}

const TYPES: readonly HostPathType[] = [
  '',
  'DirectoryOrCreate',
  'Directory',
  'FileOrCreate',
  'File',
  'Socket',
  'CharDevice',
  'BlockDevice',
];

export function readHostPathSource(source: FieldReader): HostPathSource {
  return {
    kind: 'host-path',
    path: readHostPath(source.key('path')),
    type: source.key('type').oneOf(TYPES, ''),
  };
}
