/** What a kubelet tells of the labels of SELinux that its volumes are mounted with (KEP-1710), by its own names. */
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import { fieldValue } from '../../plugins/kinds/spec-fields.ts';
import { driverOf, persistentVolumeOf } from '../../plugins/kinds/volume-questions.ts';
import type { VolumeSpec } from '../../plugins/volume.ts';
import { count, type Family, family } from '../timing/family.ts';
import type { MetricsFacts } from './metrics-facts.ts';

/** The widest mode of each volume, as the kubelet names it (`getVolumeAccessMode`). */
const ACCESS_MODES = [
  ['ReadWriteMany', 'RWX'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteOnce', 'RWO'],
  ['ReadWriteOncePod', 'RWOP'],
] as const;

/**
 * To a kubelet an error is a pod that it does not start, and a warning one that it starts all the same. Labels count
 * here for every access mode, so a volume is never shared by pods of different labels, and containers that differ
 * cost their pod the label and never the volume: two of the numbers have no series.
 */
export function seLinuxFamilies({ desired }: MetricsFacts): readonly Family[] {
  const admitted = family(
    'volume_manager_selinux_volumes_admitted_total',
    'Volumes that are mounted with a label of SELinux, with mount -o context.',
  );
  const refused = family(
    'volume_manager_selinux_volume_context_mismatch_errors_total',
    'Volumes of pods that wait, because another pod has the volume with another label of SELinux.',
  );
  const shared = family(
    'volume_manager_selinux_volume_context_mismatch_warnings_total',
    'Volumes that pods of different labels share. There are none: such a pod waits.',
  );
  const unlabelled = family(
    'volume_manager_selinux_pod_context_mismatch_warnings_total',
    'Volumes of pods that are mounted with no label of SELinux, because the containers of the pod have different ones.',
  );
  const denied = family(
    'volume_manager_selinux_pod_context_mismatch_errors_total',
    'Volumes of pods that are not mounted because the containers of the pod have different labels. There are none.',
  );
  for (const { spec, publications } of desired.volumes.values()) {
    if (labelOf(spec) !== '') count(admitted, pluginAndMode(spec));
    const differ = [...publications.values()].filter(({ hasDifferentLabels }) => hasDifferentLabels === true);
    if (differ.length > 0) count(unlabelled, { access_mode: modeOf(spec) }, differ.length);
  }
  for (const { spec, failure } of desired.unresolved) {
    const holder = spec === undefined ? undefined : desired.volumes.get(spec.id);
    if (spec === undefined || holder === undefined || failure.code !== 'volume-in-use') continue;
    if (labelOf(spec) !== labelOf(holder.spec)) count(refused, pluginAndMode(spec));
  }
  return [admitted, refused, shared, unlabelled, denied];
}

/** Empty for kinds that have none. */
function labelOf(spec: VolumeSpec): string {
  return driverOf(spec) === undefined ? '' : String(fieldValue(spec, 'seLinuxContext') ?? '');
}

function pluginAndMode(spec: VolumeSpec): { readonly volume_plugin: string; readonly access_mode: string } {
  return { volume_plugin: `kubernetes.io/csi/${driverOf(spec) ?? ''}`, access_mode: modeOf(spec) };
}

function modeOf(spec: VolumeSpec): string {
  const modes = persistentVolumeOf(spec) === undefined ? [] : (traitsOf(spec).accessModes?.(spec) ?? []);
  return ACCESS_MODES.find(([one]) => modes.includes(one))?.[1] ?? 'inline';
}
