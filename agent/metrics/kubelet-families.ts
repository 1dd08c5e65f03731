/** What a kubelet tells of its volumes, by its own names, so that the dashboards that are there go on working. */
import { persistentVolumeOf } from '../../plugins/kinds/volume-questions.ts';
import type { UsageNumbers } from '../../plugins/plugin.ts';
import { RECONSTRUCTED, type VolumeSpec } from '../../plugins/volume.ts';
import type { NamedReference } from '../../kubernetes/objects/objects.ts';
import { pluginLabel } from '../timing/operation-times.ts';
import { count, type Family, family, type Labels, say } from '../timing/family.ts';
import type { MetricsFacts } from './metrics-facts.ts';
import { seLinuxFamilies } from './selinux-families.ts';

/** Names and labels of Kubernetes 1.36 ("Kubernetes Metrics Reference"). */
export function kubeletFamilies(facts: MetricsFacts): readonly Family[] {
  return [
    ...claimFamilies(facts),
    placesFamily(facts),
    ...startFamilies(facts),
    ...orphanFamilies(facts),
    socketsFamily(facts),
    ...seLinuxFamilies(facts),
  ];
}

/** A volume of a pod is one, as for the kubelet: one that two pods have is two. */
function placesFamily({ desired, actual }: MetricsFacts): Family {
  const places = family(
    'volume_manager_total_volumes',
    'Volumes of pods, as they are wanted and as they are.',
  );
  const add = (spec: VolumeSpec, state: string, more: number): void => {
    if (more > 0) count(places, { plugin_name: pluginLabel(spec), state }, more);
  };
  for (const { spec, publications } of desired.volumes.values())
    add(spec, 'desired_state_of_world', publications.size);
  for (const { spec, publications } of actual.values()) {
    const present = [...publications.values()].filter(({ presence }) => presence.kind === 'present');
    add(spec, 'actual_state_of_world', present.length);
  }
  return places;
}

/** What the start has found: of a record that cannot be read nobody knows what it was of. */
function startFamilies({ recoveredVolumes, unreadableRecords }: MetricsFacts): readonly Family[] {
  const all = family(
    'reconstruct_volume_operations_total',
    'Volumes that this life has found to stand when it started, and records that it could not read.',
    'counter',
  );
  say(all, recoveredVolumes + unreadableRecords);
  const failed = family(
    'reconstruct_volume_operations_errors_total',
    'Records that could not be read when it started.',
    'counter',
  );
  say(failed, unreadableRecords);
  return [all, failed];
}

/** The kubelet counts what its last sweep has cleaned; here what was found on disk is taken down at once. */
function orphanFamilies({ desired, actual, obstacles }: MetricsFacts): readonly Family[] {
  const orphaned = new Set<string>();
  const failing = new Set<string>();
  const failures = new Set(
    obstacles.flatMap(({ volume, publication, code }) =>
      publication === undefined || code === undefined ? [] : [`${volume} ${publication}`],
    ),
  );
  for (const { spec, publications } of actual.values()) {
    const wanted = desired.volumes.get(spec.id)?.publications;
    for (const [key, { spec: place }] of publications) {
      if (place.origin !== RECONSTRUCTED || wanted?.has(key) === true) continue;
      orphaned.add(place.pod.uid);
      if (failures.has(`${spec.id} ${key}`)) failing.add(place.pod.uid);
    }
  }
  const cleaned = family(
    'kubelet_orphan_pod_cleaned_volumes',
    'Pods that nobody wants, of which volumes were found on disk that are being taken down.',
  );
  say(cleaned, orphaned.size);
  const errors = family(
    'kubelet_orphan_pod_cleaned_volumes_errors',
    'Those of them of which a volume cannot be taken down now.',
  );
  say(errors, failing.size);
  return [cleaned, errors];
}

/** A socket that is there is desired; one at which a driver was admitted is actual. */
function socketsFamily({ sockets }: MetricsFacts): Family {
  const plugins = family('plugin_manager_total_plugins', 'Sockets of drivers, and which of them serve.');
  for (const { path, serves } of sockets) {
    say(plugins, 1, { socket_path: path, state: 'desired_state_of_world' });
    if (serves) say(plugins, 1, { socket_path: path, state: 'actual_state_of_world' });
  }
  return plugins;
}

function claimFamilies({ actual, desiredObjects, statistics }: MetricsFacts): readonly Family[] {
  const name = (what: string): string => `kubelet_volume_stats_${what}`;
  const bytes = {
    total: family(name('capacity_bytes'), 'Capacity of the volume in bytes.'),
    available: family(name('available_bytes'), 'Bytes of the volume that can still be used.'),
    used: family(name('used_bytes'), 'Bytes of the volume that are used.'),
  };
  const inodes = {
    total: family(name('inodes'), 'Inodes that the volume can have.'),
    available: family(name('inodes_free'), 'Inodes that can still be made.'),
    used: family(name('inodes_used'), 'Inodes that are used.'),
  };
  const abnormal = family(
    name('health_status_abnormal'),
    '1: the driver says that something is wrong. 0: nothing.',
  );
  const claims = claimsByVolume(desiredObjects);
  for (const { spec } of actual.values()) {
    const read = statistics.of(spec.id)?.statistics;
    // An inline volume has no claim, and may have the name of a volume that has.
    const volume = persistentVolumeOf(spec);
    const claim = volume === undefined ? undefined : claims.get(volume);
    if (read === undefined || claim === undefined) continue;
    sayUsage(bytes, read.bytes, claim);
    sayUsage(inodes, read.inodes, claim);
    if (read.health !== undefined) say(abnormal, read.health.length > 0 ? 1 : 0, claim);
  }
  return [...Object.values(bytes), ...Object.values(inodes), abnormal];
}

function sayUsage(
  families: Readonly<Record<keyof UsageNumbers, Family>>,
  numbers: UsageNumbers | undefined,
  labels: Labels,
): void {
  for (const what of ['total', 'available', 'used'] as const) {
    const value = numbers?.[what];
    if (value !== undefined) say(families[what], value, labels);
  }
}

/** By name of PersistentVolume, the claim it is bound to: its own word first, then that of the claim. */
function claimsByVolume({ claims, volumes }: MetricsFacts['desiredObjects']): ReadonlyMap<string, Labels> {
  const found = new Map<string, Labels>();
  const keep = (volume: string, { namespace, name }: NamedReference): void => {
    if (!found.has(volume)) found.set(volume, { namespace, persistentvolumeclaim: name });
  };
  for (const { name, claimRef } of volumes.values()) if (claimRef !== undefined) keep(name, claimRef);
  for (const claim of claims.values()) if (claim.volumeName !== undefined) keep(claim.volumeName, claim);
  return found;
}
