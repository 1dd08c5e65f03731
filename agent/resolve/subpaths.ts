/** The parts of one volume that the containers of a pod get instead of all of it. Pure. */
import { isUtf8 } from 'node:buffer';
import { ok, type Result } from '../../mount/failure.ts';
import type { Container, Variable, VolumePart } from '../../kubernetes/objects/container.ts';
import { objectKey, type Pod } from '../../kubernetes/objects/objects.ts';
import { expandExpression, namesInExpression } from '../../kubernetes/fields/variable-expression.ts';
import type { Subpath } from '../../plugins/volume.ts';
import type { DesiredObjects } from '../source/desired-objects.ts';
import { refuse } from '../../kubernetes/fields/refuse.ts';
import { refuseMissing } from './missing.ts';

const PATH_BYTES_MAX = 4_095;

/**
 * In the order of the containers. `spec-invalid`: an expression names a variable that has no value here or an empty
 * one, or comes to no path below the volume. `reference-missing`: a ConfigMap that a variable needs, or its key, is
 * not there.
 */
export function subpathsOf(
  desired: Pick<DesiredObjects, 'configMaps' | 'rejected'>,
  pod: Pod,
  volumeName: string,
): Result<readonly Subpath[]> {
  const found: Subpath[] = [];
  for (const container of pod.containers) {
    for (const [index, { volume, part }] of container.mounts.entries()) {
      if (part === undefined || volume !== volumeName) continue;
      const path = pathOf(desired, pod, container, part);
      if (!path.ok) return path;
      found.push({ container: container.name, index, path: path.value });
    }
  }
  return ok(found);
}

function pathOf(
  desired: Pick<DesiredObjects, 'configMaps' | 'rejected'>,
  pod: Pod,
  container: Container,
  { kind, text }: VolumePart,
): Result<string> {
  if (kind === 'path') return ok(text);
  const values = new Map<string, Result<string>>();
  for (const variable of container.variables)
    values.set(variable.name, variableText(desired, pod, container, variable, values));
  for (const name of namesInExpression(text)) {
    const value = values.get(name) ?? unknown(container, text, name);
    if (!value.ok) return value;
    if (value.value === '') return empty(container, text, name);
  }
  const path = expandExpression(text, (name) => textIn(values, name));
  if (isBelow(path)) return ok(path);
  const message =
    `subPathExpr ${JSON.stringify(text)} of container ${container.name} comes to ${JSON.stringify(path)}: ` +
    'expected a relative path without "..", and not an empty one';
  return refuse('spec-invalid', message);
}

/** As for a `subPath`; nothing at all would be the whole volume, which nobody has asked for. */
function isBelow(path: string): boolean {
  const isRight = path !== '' && !path.startsWith('/') && !path.includes('\0');
  return isRight && !path.split('/').includes('..') && Buffer.byteLength(path) <= PATH_BYTES_MAX;
}

function unknown(container: Container, text: string, name: string): Result<never> {
  const why = 'its env has no such variable (envFrom is not looked at): write it there, or a subPath';
  return unusable(container, text, name, why);
}

/** Without it `tenants/$(TENANT)` is what all of them have (kubelet: ExpandContainerVolumeMounts). */
function empty(container: Container, text: string, name: string): Result<never> {
  return unusable(container, text, name, 'that is empty: expected the name of a part of the volume');
}

function unusable({ name: whose }: Container, text: string, name: string, why: string): Result<never> {
  const expression = `subPathExpr ${JSON.stringify(text)} of container ${whose}`;
  return refuse('spec-invalid', `${expression} names $(${name}), and ${why}`);
}

function variableText(
  desired: Pick<DesiredObjects, 'configMaps' | 'rejected'>,
  pod: Pod,
  container: Container,
  { name, value }: Variable,
  before: ReadonlyMap<string, Result<string>>,
): Result<string> {
  switch (value.kind) {
    case 'text':
      return ok(value.text);
    case 'expression': {
      const named = namesInExpression(value.text).map((one) => before.get(one));
      const failed = named.find((one) => one?.ok === false);
      return failed ?? ok(expandExpression(value.text, (one) => textIn(before, one)));
    }
    case 'refused':
      return refuse('spec-invalid', `variable ${name} of container ${container.name}: ${value.why}`);
    case 'config-map': {
      const key = objectKey({ namespace: pod.reference.namespace, name: value.name });
      const whose = `, which variable ${name} of container ${container.name} is from,`;
      const configMap = desired.configMaps.get(key);
      if (configMap === undefined) return refuseMissing(desired, `ConfigMap ${key}`, { whose });
      const content = configMap.data.get(value.key);
      if (content === undefined)
        return refuse('reference-missing', `ConfigMap ${key}${whose} has no key ${value.key}`);
      if (isUtf8(content)) return ok(Buffer.from(content).toString('utf8'));
      return refuse('spec-invalid', `key ${value.key} of ConfigMap ${key}${whose} is no text`);
    }
  }
}

function textIn(values: ReadonlyMap<string, Result<string>>, name: string): string | undefined {
  const value = values.get(name);
  return value?.ok === true ? value.value : undefined;
}
