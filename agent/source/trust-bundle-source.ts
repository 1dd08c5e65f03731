/** Where the certificates come from that a projected volume asks for (ClusterTrustBundle, certificates.k8s.io). */
import type { Failure } from '../../mount/failure.ts';
import type { Cancel } from '../../mount/host.ts';
import type { TrustBundles } from '../../kubernetes/objects/content-source.ts';
import { refuse } from '../../kubernetes/fields/refuse.ts';

export type TrustBundleAnswer =
  /** One PEM text of all of them, each once, and which state of them it is. */
  | { readonly kind: 'bundle'; readonly pem: string; readonly revision: string }
  /** There is no such bundle, or it cannot be known. */
  | { readonly kind: 'none'; readonly failure: Failure };

export interface TrustBundleSource {
  /** What is at hand now: never waits. Whoever gets `none` asks again when the source has changed. */
  bundleFor(bundles: TrustBundles): TrustBundleAnswer;
  /** Called when another answer may be given for somebody. */
  onChange(listener: () => void): Cancel;
}

/** Stand-alone: nobody has any. By `reference-missing`. */
export const NO_TRUST_BUNDLES: TrustBundleSource = {
  bundleFor: (bundles) => {
    const title = 'name' in bundles ? bundles.name : `of signer ${bundles.signerName}`;
    const message =
      `the volume wants ClusterTrustBundle ${title}, and only the API server of a cluster has such bundles: put the ` +
      'certificates into a ConfigMap and make that the source, or write optional: true for an empty file';
    return { kind: 'none', failure: refuse('reference-missing', message).failure };
  },
  onChange: () => () => {},
};
