/** What the agent writes on its Node object: the list of volumes in use, and annotations, each with its reason. */
import type { ApiResult } from '../../kubernetes/api/api-failure.ts';
import type { ApiObjectEnvelope } from '../../kubernetes/api/api-object.ts';
import type { ApiTransport } from '../../kubernetes/api/api-transport.ts';
import { compareResourceVersions } from '../../kubernetes/api/resource-version.ts';
import {
  type ComparedPatch,
  type Field,
  patchCompared,
  patchObject,
} from '../../kubernetes/api/write-object.ts';
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

/** The list of volumes in use as it is to be, for the Node that was seen. */
export interface ListWrite {
  readonly seen: ApiObjectEnvelope;
  readonly inUse: readonly string[];
  /** Another one than the Node has. */
  readonly mark: string;
}

/**
 * Writes the list where the mark and the list are as they were seen. By the version of the Node the write would be
 * refused each time when the attach/detach controller has told of another volume, ten times in a second while a node
 * comes up or is drained (D-140). The version counts where the comparison fails: the server compares a text by its
 * bytes, and one that it writes otherwise than we do must not stop all lists.
 */
export async function writeList(
  transport: ApiTransport,
  path: string,
  write: ListWrite,
): Promise<ApiResult<ApiObjectEnvelope>> {
  const { seen, inUse, mark } = write;
  const annotations = { [MANAGED_BY_CONTROLLER]: 'true', [REPORTED]: seen.uid, [TOUCHED]: mark };
  const compared = await patchCompared(transport, { path, ...comparedWrite(write, annotations) });
  if (compared.ok || compared.failure.code !== 'invalid') return compared;
  const change = { status: { volumesInUse: inUse } };
  return patchObject(transport, { path, before: seen, annotations, change });
}

function comparedWrite({ seen, inUse }: ListWrite, annotations: Marks): Omit<ComparedPatch, 'path'> {
  const list = { compared: [IN_USE, listOf(seen)], change: [IN_USE, inUse] } as const;
  // A Node may have no annotations at all, and a field can only be set in what is there.
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
export function isKept(answer: ApiObjectEnvelope, { seen, inUse, mark }: ListWrite): boolean {
  const isLater = compareResourceVersions(answer.resourceVersion, seen.resourceVersion) > 0;
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
