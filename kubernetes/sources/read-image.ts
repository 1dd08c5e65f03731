/** A volume that is the files of an OCI image (KEP-4639). */
import type { FieldReader } from '../fields/field-reader.ts';

/** What starts the containers mounts it, read-only; `pullPolicy` is empty where the pod leaves it to that. */
export interface ImageSource {
  readonly kind: 'image';
  readonly reference: string;
  readonly pullPolicy: PullPolicy | '';
}

type PullPolicy = (typeof PULL_POLICIES)[number];

const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'] as const;

/** It has a registry (an IPv6 address, too), a path, a tag and a digest, and becomes a word of a command line. */
const REFERENCE = /^[A-Za-z0-9[][-A-Za-z0-9._:/@+[\]]{0,1023}$/;
const RIGHT_REFERENCE = 'a reference to an image, such as quay.io/example/data:1, at most 1,024 characters';

export function readImage(source: FieldReader): ImageSource {
  return {
    kind: 'image',
    reference: source.key('reference').requiredText((text) => REFERENCE.test(text), RIGHT_REFERENCE),
    pullPolicy: source.key('pullPolicy').oneOf<PullPolicy | ''>(['', ...PULL_POLICIES], ''),
  };
}
