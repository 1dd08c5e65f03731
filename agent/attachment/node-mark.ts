/** What the agent writes on its Node object beside the list of volumes in use: annotations, each with its reason. */
import type { ApiObjectEnvelope } from '../../kubernetes/api/api-object.ts';
import { compareResourceVersions } from '../../kubernetes/api/resource-version.ts';
import { nodeVolumes } from '../../kubernetes/objects/attachment-sight.ts';
import { isSameList } from './in-use-names.ts';

type Marks = Readonly<Record<string, string>>;

/** Says that the attach/detach controller, and not this node, attaches. Read by the controller. */
const MANAGED_BY_CONTROLLER = 'volumes.kubernetes.io/controller-managed-attach-detach';
/** Another value each time: the Node has a new version then. */
const TOUCHED = 'mooring.dev/touched';
/**
 * The uid of the Node whose list an agent has written. A Node that was made anew, and one that was written from a copy,
 * has not its own uid there: what its list does not name may stand all the same.
 */
const REPORTED = 'mooring.dev/reported';

/** They are written with each list. */
export function reportMarks({ uid }: ApiObjectEnvelope): Marks {
  return { [MANAGED_BY_CONTROLLER]: 'true', [REPORTED]: uid };
}

export function touchMark(value: string): Marks {
  return { [TOUCHED]: value };
}

export function isManaged(node: ApiObjectEnvelope): boolean {
  return Object.hasOwn(annotationsOf(node), MANAGED_BY_CONTROLLER);
}

/** This life or an earlier one has written the list of this very Node: what stands since before is on it. */
export function isReportedNode(node: ApiObjectEnvelope): boolean {
  return annotationsOf(node)[REPORTED] === node.uid;
}

/** The Node is as it was written, in a later version: an admission webhook may change what it lets through. */
export function isKept(
  answer: ApiObjectEnvelope,
  before: ApiObjectEnvelope,
  inUse: readonly string[],
): boolean {
  const isLater = compareResourceVersions(answer.resourceVersion, before.resourceVersion) > 0;
  return isLater && isManaged(answer) && isSameList(nodeVolumes(answer.value).inUse, inUse);
}

function annotationsOf({ value }: ApiObjectEnvelope): Readonly<Record<string, unknown>> {
  const { annotations } = (value['metadata'] ?? {}) as { readonly annotations?: unknown };
  return typeof annotations === 'object' && annotations !== null ? { ...annotations } : {};
}
