/** What a pod's volume shows as files: the words of the manifest, read, before other objects are looked at. */
import type { NodeResource } from './node-resource.ts';

/** A Secret or ConfigMap shown as files; modes are permission bits, 0 to 0o777. */
export interface ContentSource {
  readonly kind: 'secret' | 'config-map';
  readonly name: string;
  readonly optional: boolean;
  readonly defaultMode: number;
  /** Undefined: every key, under its own name. */
  readonly items: readonly ContentItem[] | undefined;
}

/** One key of the object, and the file it becomes. */
export interface ContentItem {
  readonly key: string;
  /** Relative, below the volume's root. */
  readonly path: string;
  /** Undefined: the volume's defaultMode. */
  readonly mode: number | undefined;
}

/** Fields of the pod itself shown as files; of two with one path the later one counts, as in the kubelet. */
export interface DownwardSource {
  readonly kind: 'downward-api';
  readonly defaultMode: number;
  readonly files: readonly DownwardFile[];
}

/** One field of the pod, and the file it becomes. */
export interface DownwardFile {
  /** Relative, below the volume's root, without `.` and empty components. */
  readonly path: string;
  /** Undefined: the volume's defaultMode. */
  readonly mode: number | undefined;
  readonly value: DownwardValue;
}

export type DownwardValue =
  | { readonly kind: 'text'; readonly text: string }
  /** The container has no limit: it may have what the node gives to pods, in `divisor`s of the resource's unit. */
  | { readonly kind: 'allocatable'; readonly resource: NodeResource; readonly divisor: bigint };
