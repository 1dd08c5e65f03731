/** What changes an object: creation, merge patches of it and of its status, deletion. */
import { type ApiAnswer, invalid, refusal } from './api-answer.ts';
import type { ApiTarget } from './api-path.ts';
import {
  at,
  isMapping,
  isSameJson,
  type Json,
  jsonPatch,
  mergePatch,
  metadataOf,
  nameOf,
} from './json-object.ts';
import type { ObjectStore } from './object-store.ts';

export function createObject(store: ObjectStore, target: ApiTarget, body: Json): ApiAnswer {
  const { collection, resource, kind, apiVersion, namespace } = target;
  const name = metadataOf(body)['name'];
  if (typeof name !== 'string' || name === '') return invalid(`${resource} needs a name`);
  if (store.get(collection, name) !== undefined) return refusal(409, `${resource} "${name}" already exists`);
  const { uid: _, resourceVersion: __, ...metadata } = metadataOf(body);
  const whole = { ...metadata, ...(namespace === undefined ? {} : { namespace }) };
  return { status: 201, body: store.create(collection, { ...body, kind, apiVersion, metadata: whole }) };
}

/**
 * RFC 7386, or RFC 6902 where it is an array. What another request writes is left as it is: the status of an object, or
 * all but its status.
 */
export function patchObject(store: ObjectStore, target: ApiTarget, patch: unknown): ApiAnswer {
  const { collection, name = '', resource, part, hasStatus } = target;
  const before = store.get(collection, name);
  if (before === undefined || (part === 'status' && !hasStatus))
    return refusal(404, `${resource} "${name}" not found`);
  const refused = refusedPrecondition(at(patch, 'metadata'), before, `${resource} "${name}"`);
  if (refused !== undefined) return refused;
  const merged = Array.isArray(patch) ? jsonPatch(before, patch) : (mergePatch(before, patch) as Json);
  if (merged === undefined) return invalid('the patch does not apply: something that it tests is otherwise');
  if (nameOf(merged) !== name) return invalid('metadata.name: field is immutable');
  const { spec, status } = before;
  const next = part === 'status' ? { ...merged, spec } : hasStatus ? { ...merged, status } : merged;
  // A node writes how large a claim is, and its conditions (NodeRestriction).
  if (resource === 'persistentvolumeclaims' && !isSameJson(withoutVersion(before), withoutVersion(next)))
    return refusal(403, `persistentvolumeclaims "${name}" is forbidden: its status alone`);
  const problem = resource === 'csinodes' ? changedDriver(before, next) : undefined;
  if (problem !== undefined) return invalid(problem);
  return { status: 200, body: store.replace(collection, next) };
}

export function deleteObject(store: ObjectStore, target: ApiTarget, options: Json): ApiAnswer {
  const { collection, name = '', resource } = target;
  const before = store.get(collection, name);
  if (before === undefined) return refusal(404, `${resource} "${name}" not found`);
  const refused = refusedPrecondition(at(options, 'preconditions'), before, `${resource} "${name}"`);
  if (refused !== undefined) return refused;
  store.remove(collection, name);
  const left = store.get(collection, name);
  return { status: 200, body: left ?? { kind: 'Status', apiVersion: 'v1', status: 'Success' } };
}

function withoutVersion(object: Json): Json {
  const { resourceVersion: _, ...metadata } = metadataOf(object);
  return { ...object, metadata, status: {} };
}

function refusedPrecondition(wanted: Json, before: Json, what: string): ApiAnswer | undefined {
  const now = metadataOf(before);
  for (const key of ['uid', 'resourceVersion'] as const)
    if (wanted[key] !== undefined && wanted[key] !== now[key])
      return refusal(
        409,
        `${what}: the object has been modified; ${key} ${String(wanted[key])} is not its own`,
      );
  return undefined;
}

/** An entry of a CSINode never becomes another one under its name, but for what can be attached at most. */
function changedDriver(before: Json, after: Json): string | undefined {
  const known = new Map(driversOf(before).map((one) => [one['name'], one]));
  const other = driversOf(after).find((one) => {
    const was = known.get(one['name']);
    return was !== undefined && !isSameJson({ ...was, allocatable: 0 }, { ...one, allocatable: 0 });
  });
  return other === undefined ? undefined : `spec.drivers: ${String(other['name'])} is immutable`;
}

function driversOf(csiNode: Json): readonly Json[] {
  const { drivers } = at(csiNode, 'spec');
  return Array.isArray(drivers) ? drivers.filter(isMapping) : [];
}
