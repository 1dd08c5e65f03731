/** What a pod's security context says about its volumes: the group that owns them, and their SELinux label. */
import { isDeepStrictEqual } from 'node:util';
import type { FsGroup } from '../../plugins/volume.ts';
import type { Container, SeLinuxLabel } from './container.ts';
import type { FieldReader } from '../fields/field-reader.ts';

const GROUP_ID_MAX = 2 ** 31 - 1;
const CHANGE_POLICIES: readonly FsGroup['changePolicy'][] = ['Always', 'OnRootMismatch'];
const SE_LINUX_WORD = /^[A-Za-z0-9_.-]{0,128}$/;
/** Sensitivities and categories, `s0:c1,c2` or `s0-s3:c0.c9`, or a word that the machine translates. */
const SE_LINUX_LEVEL = /^[A-Za-z0-9_.,:-]{0,256}$/;

/** After "expected". */
export const GROUP_ID = `a group id from 0 to ${GROUP_ID_MAX}`;

/** As Kubernetes limits it (`IsValidGroupID`). */
export function isGroupId(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= GROUP_ID_MAX;
}

/** `spec.securityContext.fsGroup` and its policy, which is Always when it is not written. */
export function readFsGroup(spec: FieldReader): FsGroup | undefined {
  const context = spec.key('securityContext');
  const gid = context.key('fsGroup').integer(0, GROUP_ID_MAX, GROUP_ID);
  const changePolicy = context.key('fsGroupChangePolicy').oneOf(CHANGE_POLICIES, 'Always');
  return gid === undefined ? undefined : { gid, changePolicy };
}

/**
 * The label of every container that mounts something; a container's own replaces the pod's whole, as in Kubernetes.
 * Undefined when none is written, and when the pod asks for its files to be relabelled one by one instead
 * (`seLinuxChangePolicy: Recursive`). `different` when two containers differ: then no mount can be labelled for both.
 */
export function readPodSeLinux(
  spec: FieldReader,
  containers: readonly Container[],
): SeLinuxLabel | 'different' | undefined {
  const context = spec.key('securityContext');
  const labels = containers.filter(({ mounts }) => mounts.length > 0).map(({ seLinux }) => seLinux);
  const policy = context.key('seLinuxChangePolicy').oneOf(['MountOption', 'Recursive'], 'MountOption');
  const [first, ...others] = labels;
  if (policy === 'Recursive') return undefined;
  return others.some((one) => !isDeepStrictEqual(one, first)) ? 'different' : first;
}

/** An empty part is one that is not written. */
export function readLabel(reader: FieldReader): SeLinuxLabel | undefined {
  if (!reader.present) return undefined;
  const part = (key: string, rule: RegExp, right: string): string | undefined =>
    reader.key(key).text((text) => rule.test(text), right) || undefined;
  const label: SeLinuxLabel = {
    user: part('user', SE_LINUX_WORD, 'an SELinux user, such as system_u'),
    role: part('role', SE_LINUX_WORD, 'an SELinux role, such as system_r'),
    type: part('type', SE_LINUX_WORD, 'an SELinux type, such as container_t'),
    level: part('level', SE_LINUX_LEVEL, 'an SELinux level, such as s0:c123,c456'),
  };
  return Object.values(label).every((one) => one === undefined) ? undefined : label;
}
