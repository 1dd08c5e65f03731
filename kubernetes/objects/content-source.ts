/** What a pod's volume shows as files: the words of the manifest, read, before other objects are looked at. */
import type { NodeResource } from '../fields/node-resource.ts';

/**
 * A Secret or ConfigMap shown as files; modes are permission bits, 0 to 0o777. Of two items with one path the later one
 * counts, and both keys have to be there, as in the kubelet.
 */
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
  /** Relative, below the volume's root, without `.` and empty components. */
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

/** Files of several sources in one volume; of two with one path that of the later source counts, as in the kubelet. */
export interface ProjectedSource {
  readonly kind: 'projected';
  /** Each with the volume's defaultMode: none has its own. */
  readonly sources: readonly Projection[];
}

export type Projection = ContentSource | DownwardSource | TokenProjection | TrustBundleProjection;

/** A token of the pod's service account, bound to the pod, as a file that is refreshed before the token expires. */
export interface TokenProjection {
  readonly kind: 'service-account-token';
  /** Empty: the issuer's own audience. */
  readonly audience: string;
  /** 600 to 2^32. */
  readonly expirationSeconds: number;
  readonly path: string;
  readonly defaultMode: number;
}

/** Certificates of a ClusterTrustBundle, or of all that a signer has, as one PEM file. */
export interface TrustBundleProjection {
  readonly kind: 'cluster-trust-bundle';
  readonly bundles: TrustBundles;
  /** Where there are no bundles the file is empty. */
  readonly optional: boolean;
  readonly path: string;
  readonly defaultMode: number;
}

/** Without a selector a signer's bundles are none, with an empty one all. */
export type TrustBundles =
  | { readonly name: string }
  | { readonly signerName: string; readonly labels: LabelSelector | undefined };

/** metav1.LabelSelector: what all of its parts select. */
export interface LabelSelector {
  readonly matchLabels: Readonly<Record<string, string>>;
  readonly matchExpressions: readonly LabelRule[];
}

export interface LabelRule {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values: readonly string[];
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
