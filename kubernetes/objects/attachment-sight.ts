/** What a cluster says of attached volumes: VolumeAttachments, and the lists of a Node. Pure and total. */
import { isMapping, mappingIn, textsIn } from '../fields/plain-value.ts';

/** A VolumeAttachment as it is judged. */
export interface AttachmentSight {
  readonly uid: string;
  readonly nodeName: string;
  /** The driver. */
  readonly attacher: string;
  /** Deletion was asked for: it is being detached. */
  readonly deleted: boolean;
  readonly attached: boolean;
  /** What is handed to the driver when the volume is staged and published. */
  readonly publishContext: Readonly<Record<string, string>>;
  /** Why the last try to attach has failed; undefined when none has. For people. */
  readonly attachError: string | undefined;
  /** The gRPC code of that, where whoever attaches tells it (KEP-4876). */
  readonly attachErrorCode?: number | undefined;
  readonly attachErrorTime?: string | undefined;
  readonly detachError: string | undefined;
}

/** What a Node's status says of volumes, by their unique names. */
export interface NodeVolumes {
  /** What this node says. */
  readonly inUse: readonly string[];
  /** What whoever attaches says. */
  readonly attached: ReadonlySet<string>;
}

/** Undefined when it cannot be understood: what it says is then not known. */
export function attachmentSight(
  uid: string,
  value: Readonly<Record<string, unknown>>,
): AttachmentSight | undefined {
  const { metadata, spec, status = {} } = value;
  if (!isMapping(metadata) || !isMapping(spec) || !isMapping(status)) return undefined;
  const { nodeName, attacher } = spec;
  const { attached = false, attachmentMetadata = {}, attachError, detachError } = status;
  if (typeof nodeName !== 'string' || typeof attacher !== 'string' || typeof attached !== 'boolean')
    return undefined;
  if (!isMapping(attachmentMetadata)) return undefined;
  const entries = Object.entries(attachmentMetadata);
  if (!entries.every((entry): entry is [string, string] => typeof entry[1] === 'string')) return undefined;
  return {
    uid,
    nodeName,
    attacher,
    deleted: metadata['deletionTimestamp'] !== undefined,
    attached,
    publishContext: Object.fromEntries(entries),
    attachError: errorIn(attachError),
    attachErrorCode: codeIn(attachError),
    attachErrorTime: timeIn(attachError),
    detachError: errorIn(detachError),
  };
}

/** Each volume of a look asks for the same lists, which are as long as there are volumes. */
const readVolumes = new WeakMap<object, NodeVolumes>();

/** An entry that is no text is none. The same object is read once: nobody changes one. */
export function nodeVolumes(node: Readonly<Record<string, unknown>>): NodeVolumes {
  const known = readVolumes.get(node);
  if (known !== undefined) return known;
  const volumes = readNodeVolumes(node);
  readVolumes.set(node, volumes);
  return volumes;
}

function readNodeVolumes(node: Readonly<Record<string, unknown>>): NodeVolumes {
  const status = mappingIn(node['status']);
  const attached = Array.isArray(status['volumesAttached']) ? status['volumesAttached'] : [];
  const names = attached.map((one) => (isMapping(one) ? one['name'] : undefined));
  return { inUse: textsIn(status['volumesInUse']), attached: new Set(textsIn(names)) };
}

/** Who has written the list of volumes in use, but those of this name; undefined when nobody is said to have. */
export function otherWriterOf(node: Readonly<Record<string, unknown>>, own: string): string | undefined {
  const metadata = mappingIn(node['metadata']);
  const managers: readonly unknown[] = Array.isArray(metadata['managedFields'])
    ? metadata['managedFields']
    : [];
  for (const one of managers) {
    if (!isMapping(one) || !isMapping(one['fieldsV1'])) continue;
    const status = one['fieldsV1']['f:status'];
    const { manager } = one;
    const has = isMapping(status) && Object.hasOwn(status, 'f:volumesInUse');
    if (has && typeof manager === 'string' && manager !== own) return manager;
  }
  return undefined;
}

function errorIn(error: unknown): string | undefined {
  if (!isMapping(error)) return undefined;
  return typeof error['message'] === 'string' ? error['message'] : 'no message';
}

function codeIn(error: unknown): number | undefined {
  const code = isMapping(error) ? error['errorCode'] : undefined;
  return Number.isInteger(code) ? (code as number) : undefined;
}

function timeIn(error: unknown): string | undefined {
  const time = isMapping(error) ? error['time'] : undefined;
  return typeof time === 'string' ? time : undefined;
}
