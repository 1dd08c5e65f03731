/** Where the certificates come from that a projected volume asks for (ClusterTrustBundle, certificates.k8s.io). */
import type { Failure } from '../../mount/failure.ts';
import type { Cancel } from '../../mount/host.ts';
import type { TrustBundles } from '../../kubernetes/objects/content-source.ts';
import { refuse } from '../../kubernetes/fields/refuse.ts';

export type TrustBundleAnswer =
  /** One PEM text of all of them, each once, and which state of them it is. */
  | { readonly kind: 'bundle'; readonly pem: string; readonly revision: string }
  /** There is no such bundle. */
  | { readonly kind: 'none'; readonly failure: Failure }
  /** There may be one, and it is not known. */
  | { readonly kind: 'unknown'; readonly failure: Failure };

export interface TrustBundleSource {
  /** What is at hand now: never waits. Whoever gets `none` asks again when the source has changed. */
  bundleFor(bundles: TrustBundles): TrustBundleAnswer;
  /** Called when another answer may be given for somebody. */
  onChange(listener: () => void): Cancel;
}

/** Stand-alone: nobody has any. By `reference-missing`. */
const NO_TRUST_BUNDLES: TrustBundleSource = {
  bundleFor: (bundles) => {
    const why = 'and only the API server of a cluster has such bundles';
    return { kind: 'none', failure: refused(bundles, why, ', or write optional: true for an empty file') };
  },
  onChange: () => () => {},
};

/** In a cluster: somebody may have them, and they are not asked for. By `reference-missing`. */
const UNREAD_TRUST_BUNDLES: TrustBundleSource = {
  bundleFor: (bundles) => {
    return { kind: 'unknown', failure: refused(bundles, 'and this version reads none of a cluster') };
  },
  onChange: () => () => {},
};

/** Who has them where nobody else is named, by who attaches volumes: this machine alone, or a cluster. */
export function ownTrustBundles(attachment: 'called' | 'granted'): TrustBundleSource {
  return attachment === 'called' ? NO_TRUST_BUNDLES : UNREAD_TRUST_BUNDLES;
}

function refused(bundles: TrustBundles, why: string, besides = ''): Failure {
  const title = 'name' in bundles ? bundles.name : `of signer ${bundles.signerName}`;
  const message =
    `the volume wants ClusterTrustBundle ${title}, ${why}: put the certificates into a ConfigMap and make that the ` +
    `source${besides}`;
  return refuse('reference-missing', message).failure;
}
