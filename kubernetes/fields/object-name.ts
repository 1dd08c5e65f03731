/** The rules for names in manifests that become path components or keys, each with the words that explain it. */
import { isDriverName, isObjectName, parsePodUid } from '../../plugins/volume.ts';

const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const DATA_KEY = /^[-._a-zA-Z0-9]{1,253}$/;

/** A rule and what to say after "expected". */
export type NameRule = readonly [keeps: (text: string) => boolean, right: string];

/** Names of objects (DNS-1123 subdomain). */
export const OBJECT_NAME: NameRule = [
  isObjectName,
  'a name of lower-case letters, digits, "-" and ".", at most 253, beginning and ending with a letter or digit',
];

/** Namespaces and the volumes of a pod (DNS-1123 label). */
export const LABEL_NAME: NameRule = [
  (text) => LABEL.test(text),
  'a name of lower-case letters, digits and "-", at most 63, beginning and ending with a letter or digit',
];

/** Names of CSI drivers (CSI, GetPluginInfo). */
export const DRIVER_NAME: NameRule = [
  isDriverName,
  'the name of a CSI driver: letters, digits, "-" and ".", at most 63 (such as hostpath.csi.k8s.io)',
];

/** Uids, ours and those that others have written. */
export const OBJECT_UID: NameRule = [
  (text) => parsePodUid(text) !== undefined,
  'a uid of letters, digits, "-", "." and "_", at most 128',
];

/** Keys of Secrets and ConfigMaps become file names; those that begin with `..` are the atomic writer's own. */
export const CONTENT_KEY: NameRule = [
  (text) => DATA_KEY.test(text) && text !== '.' && !text.startsWith('..'),
  'a key of letters, digits, "-", "_" and ".", at most 253, not "." and not beginning with ".."',
];
