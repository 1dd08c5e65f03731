/** What the agent writes on its Node object beside the list of volumes in use: annotations, each with its reason. */
import type { ApiObjectEnvelope } from '../../kubernetes/api/api-object.ts';
import { compareResourceVersions } from '../../kubernetes/api/resource-version.ts';
import type { ComparedPatch, Field } from '../../kubernetes/api/write-object.ts';
import { nodeVolumes } from '../../kubernetes/objects/attachment-sight.ts';
import { isSameList } from './in-use-names.ts';

const ANNOTATIONS = ['metadata', 'annotations'] as const;
const IN_USE = ['status', 'volumesInUse'] as const;

type Marks = Readonly<Record<string, string>>;

/** Says that the attach/detach controller, and not this node, attaches. Read by the controller. */
const MANAGED_BY_CONTROLLER = 'volumes.kubernetes.io/controller-managed-attach-detach';
/** Another value with each write, which counts only while the one is there that was seen before. */
const TOUCHED = 'mooring.dev/touched';
const MARK = [...ANNOTATIONS, TOUCHED] as const;
/**
 * The uid of the Node whose list an agent has written. A Node that was made anew, and one that was written from a copy,
 * has not its own uid there: what its list does not name may stand all the same.
 */
const REPORTED = 'mooring.dev/reported';

/**
 * The write of the list, which counts while the mark and the list are as they were seen. By the version of the Node it
 * would be refused each time when the attach/detach controller has told of another volume, ten times in a second while
 * a node comes up or is drained.
 */
export function listPatch(
  seen: ApiObjectEnvelope,
  inUse: readonly string[],
  mark: string,
): Omit<ComparedPatch, 'path'> {
  const annotations = { [MANAGED_BY_CONTROLLER]: 'true', [REPORTED]: seen.uid, [TOUCHED]: mark };
  const list = { compared: [IN_USE, listOf(seen)], change: [IN_USE, inUse] } as const;
  // A Node may have none at all, and a field can only be set in what is there.
  if (annotationsIn(seen) === undefined)
    return {
      before: seen,
      compared: [[ANNOTATIONS, undefined], list.compared],
      change: [[ANNOTATIONS, annotations], list.change],
    };
  const marks = Object.entries(annotations).map(([name, value]): Field => [[...ANNOTATIONS, name], value]);
  return {
    before: seen,
    compared: [[MARK, markOf(seen)], list.compared],
    change: [...marks, list.change],
  };
}

/** What a write of the list compares is the same in both; undefined: there is no Node. */
export function isSameReport(a: ApiObjectEnvelope | undefined, b: ApiObjectEnvelope | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  const isSame = a.uid === b.uid && markOf(a) === markOf(b);
  return isSame && JSON.stringify(listOf(a)) === JSON.stringify(listOf(b));
}

export function markOf(node: ApiObjectEnvelope): string | undefined {
  const mark = annotationsOf(node)[TOUCHED];
  return typeof mark === 'string' ? mark : undefined;
}

/** A write that changes nothing else: the Node has a new version then. */
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

/**
 * The Node is as it was written, in a later version: an admission webhook may change what it lets through, and without
 * the mark a write that comes late would count.
 */
export function isKept(
  answer: ApiObjectEnvelope,
  before: ApiObjectEnvelope,
  { inUse, mark }: { readonly inUse: readonly string[]; readonly mark: string },
): boolean {
  const isLater = compareResourceVersions(answer.resourceVersion, before.resourceVersion) > 0;
  const isMarked = isManaged(answer) && markOf(answer) === mark;
  return isLater && isMarked && isSameList(nodeVolumes(answer.value).inUse, inUse);
}

/** As the server has it, which compares it so. */
function listOf({ value }: ApiObjectEnvelope): unknown {
  const { volumesInUse } = (value['status'] ?? {}) as { readonly volumesInUse?: unknown };
  return volumesInUse;
}

function annotationsOf(node: ApiObjectEnvelope): Readonly<Record<string, unknown>> {
  return annotationsIn(node) ?? {};
}

function annotationsIn({ value }: ApiObjectEnvelope): Readonly<Record<string, unknown>> | undefined {
  const { annotations } = (value['metadata'] ?? {}) as { readonly annotations?: unknown };
  return typeof annotations === 'object' && annotations !== null ? { ...annotations } : undefined;
}
