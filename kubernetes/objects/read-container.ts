/** The containers of a pod, of all three kinds: each may mount. */
import type {
  Container,
  ContainerKind,
  MountPropagation,
  RecursiveReadOnly,
  Variable,
  VariableValue,
  VolumeDevice,
  VolumeMount,
  VolumePart,
} from './container.ts';
import { type FieldReader, quoted } from '../fields/field-reader.ts';
import { fieldText, parseFieldPath, type PodMetadata } from '../fields/field-path.ts';
import { LABEL_NAME, OBJECT_NAME } from '../fields/object-name.ts';
import { namesInExpression } from '../fields/variable-expression.ts';
import { readLabel } from './read-pod-security.ts';

/** The fields of a pod's specification that list containers. */
export const CONTAINER_LISTS = [
  ['containers', 'container'],
  ['initContainers', 'init'],
  ['ephemeralContainers', 'ephemeral'],
] as const satisfies readonly (readonly [string, ContainerKind])[];

const PROPAGATIONS: readonly MountPropagation[] = ['None', 'HostToContainer', 'Bidirectional'];
const RECURSIONS: readonly RecursiveReadOnly[] = ['Disabled', 'IfPossible', 'Enabled'];
/** What a path in a container may be: anything that the kernel can be told, in one word of its own. */
const PATH = [
  (text: string): boolean => text !== '' && !text.includes('\0') && Buffer.byteLength(text) <= 4_095,
  'a path in the container',
] as const;

export interface ReadContainer {
  readonly reader: FieldReader;
  readonly container: Container;
}

/**
 * Each with its place in the document; one container at least is a must. No two have one name, of whichever list they
 * are, as for Kubernetes: what is made for a container on the host has its name.
 */
export function readContainers(spec: FieldReader, pod: PodMetadata): readonly ReadContainer[] {
  if (spec.key('containers').list().length === 0)
    spec.key('containers').refuse('is missing or empty; expected at least one container');
  const label = readLabel(spec.key('securityContext').key('seLinuxOptions'));
  const names = new Set<string>();
  return CONTAINER_LISTS.flatMap(([key, kind]) =>
    spec
      .key(key)
      .list()
      .map((reader) => {
        const taken = new Set<string>();
        const mounts = reader
          .key('volumeMounts')
          .list()
          .map((one) => readMount(one, taken));
        const container: Container = {
          name: readName(reader.key('name'), names),
          kind,
          mounts,
          variables: readVariables(reader, mounts, pod),
          devices: reader
            .key('volumeDevices')
            .list()
            .map((one) => readDevice(one, taken)),
          seLinux: readLabel(reader.key('securityContext').key('seLinuxOptions')) ?? label,
        };
        return { reader, container };
      }),
  );
}

function readName(reader: FieldReader, names: Set<string>): string {
  const name = reader.requiredText(...LABEL_NAME);
  if (name !== '' && names.has(name)) reader.refuse(`${quoted(name)} is the name of an earlier container`);
  names.add(name);
  return name;
}

function readMount(reader: FieldReader, taken: Set<string>): VolumeMount {
  const readOnly = reader.key('readOnly').flag(false);
  const recursive = reader.key('recursiveReadOnly');
  const recursiveReadOnly = recursive.oneOf(RECURSIONS, 'Disabled');
  const propagation = reader.key('mountPropagation').oneOf(PROPAGATIONS, 'None');
  if (recursiveReadOnly !== 'Disabled' && !readOnly)
    recursive.refuse('is only for a mount with readOnly: true');
  if (recursiveReadOnly !== 'Disabled' && propagation !== 'None')
    recursive.refuse('is only for a mount without mountPropagation, or with None');
  return {
    volume: reader.key('name').requiredText(...LABEL_NAME),
    path: readPath(reader.key('mountPath'), taken),
    readOnly,
    recursiveReadOnly,
    propagation,
    part: readPart(reader),
  };
}

function readDevice(reader: FieldReader, taken: Set<string>): VolumeDevice {
  const volume = reader.key('name').requiredText(...LABEL_NAME);
  return { volume, path: readPath(reader.key('devicePath'), taken) };
}

/** One place in a container is for one volume. */
function readPath(reader: FieldReader, taken: Set<string>): string {
  const path = reader.requiredText(...PATH);
  if (path !== '' && taken.has(path)) reader.refuse(`${quoted(path)} is the place of another volume already`);
  taken.add(path);
  return path;
}

/** Below the volume and nowhere else, as for Kubernetes; what an expression comes to is checked when it is known. */
function readPart(reader: FieldReader): VolumePart | undefined {
  const isBelow = (text: string): boolean =>
    !text.startsWith('/') && !text.includes('\0') && !text.split('/').includes('..');
  const right = 'a relative path without ".."';
  const path = reader.key('subPath').text(isBelow, right) || undefined;
  const expression = reader.key('subPathExpr').text(isBelow, right) || undefined;
  if (path !== undefined && expression !== undefined)
    reader.key('subPathExpr').refuse('and subPath exclude each other');
  if (path !== undefined) return { kind: 'path', text: path };
  return expression === undefined ? undefined : { kind: 'expression', text: expression };
}

/**
 * The variables that the expressions of the mounts need, and no others: what is written for the container alone is no
 * business of ours. What is wrong with one of these is told when a path is made of it.
 */
function readVariables(
  container: FieldReader,
  mounts: readonly VolumeMount[],
  pod: PodMetadata,
): readonly Variable[] {
  const expressions = mounts.flatMap(({ part }) => (part?.kind === 'expression' ? [part.text] : []));
  if (expressions.length === 0) return [];
  const all = container
    .key('env')
    .list()
    .map((one) => ({ name: one.key('name').text() ?? '', value: readVariable(one, pod) }));
  const needed = new Set(expressions.flatMap(namesInExpression));
  // A variable may name those before it.
  for (const { name, value } of [...all].reverse())
    if (needed.has(name) && value.kind === 'expression')
      for (const one of namesInExpression(value.text)) needed.add(one);
  return all.filter(({ name }) => needed.has(name));
}

const PATHS_SHOW = 'a path shows what it is made of, and it is not made of a secret';
const RIGHT_VARIABLES =
  'expected value, configMapKeyRef, or a fieldRef of metadata.name, metadata.namespace, metadata.uid, ' +
  "metadata.labels['<key>'] or metadata.annotations['<key>']";

function readVariable(variable: FieldReader, pod: PodMetadata): VariableValue {
  const from = variable.key('valueFrom');
  if (!from.present) return { kind: 'expression', text: variable.key('value').text() ?? '' };
  const configMap = from.key('configMapKeyRef');
  if (configMap.present) {
    const [name, key] = [configMap.key('name').text() ?? '', configMap.key('key').text() ?? ''];
    // As the API server checks it.
    const [isName, right] = OBJECT_NAME;
    if (!isName(name)) return { kind: 'refused', why: `configMapKeyRef.name: expected ${right}` };
    return { kind: 'config-map', name, key };
  }
  if (from.key('secretKeyRef').present) return { kind: 'refused', why: PATHS_SHOW };
  const path = parseFieldPath(from.key('fieldRef').key('fieldPath').text() ?? '');
  const isWhole = path !== undefined && 'key' in path && path.key === undefined;
  if (path === undefined || isWhole) return { kind: 'refused', why: RIGHT_VARIABLES };
  return { kind: 'text', text: fieldText(path, pod) };
}
