/**
 * Volumes that show fields of their own pod, and annotations that change under them. Drawn from a stream of its own,
 * and off in most seeds, so that those of before keep their stories.
 */
import type { Content, PodVolume, SimPod } from './manifests.ts';
import type { Random } from './random.ts';
import type { Plan } from './swarm.ts';

export interface PodFieldsPlan {
  /** Probability that a pod has such a volume. */
  readonly share: number;
}

export const NO_POD_FIELDS: PodFieldsPlan = { share: 0 };

/** The share of the seeds that have such volumes. */
const SEEDS_SHARE = 0.25;
const CHANGES_WEIGHT_MIN = 2;
/** What the machine of the simulation gives to pods, in thousandths of a processor. */
export const CPU_THOUSANDTHS = 3_500n;
const CPU_SHOWN = '4';

export function withPodFields(plan: Plan, random: Random): Plan {
  if (!random.chance(SEEDS_SHARE)) return plan;
  const contentChanges = Math.max(plan.events.contentChanges, CHANGES_WEIGHT_MIN);
  return {
    ...plan,
    podFields: { share: random.pick([0.3, 0.7]) },
    events: { ...plan.events, contentChanges },
  };
}

export type FieldsVolume = Extract<PodVolume, { kind: 'downward-api' | 'projected' }>;

export function drawFieldsVolume(random: Random, name: string, contents: readonly Content[]): FieldsVolume {
  const showsAll = random.chance(0.5);
  if (random.chance(0.4)) return { kind: 'downward-api', name, showsAll };
  return {
    kind: 'projected',
    name,
    showsAll,
    sources: random.shuffled(contents).slice(0, random.between(0, 2)),
  };
}

/** Where its pod's token is, of a volume that has one. */
export const TOKEN_FILE = 'token';

/** Half of those of several sources have a token of their pod. */
export function hasToken(volume: FieldsVolume): boolean {
  return volume.kind === 'projected' && volume.showsAll;
}

/** The source of a volume of several: of two files with one name the later one counts. */
export function projectedSource(volume: Extract<FieldsVolume, { kind: 'projected' }>): {
  readonly sources: readonly object[];
} {
  const contents = volume.sources.map(({ kind, name }) => {
    return kind === 'Secret' ? { secret: { name } } : { configMap: { name, optional: true } };
  });
  const token = { serviceAccountToken: { path: TOKEN_FILE, audience: 'sim' } };
  const fields = { downwardAPI: fieldsSource(volume) };
  return { sources: [fields, ...(hasToken(volume) ? [token] : []), ...contents] };
}

export function fieldsSource({ showsAll }: Pick<FieldsVolume, 'showsAll'>): {
  readonly items: readonly object[];
} {
  const field = (path: string, fieldPath: string): object => ({ path, fieldRef: { fieldPath } });
  const resourceFieldRef = { containerName: 'main', resource: 'limits.cpu' };
  const all = showsAll ? [field('all', 'metadata.annotations')] : [];
  return {
    items: [
      field('name', 'metadata.name'),
      field('version', "metadata.annotations['version']"),
      { path: 'cpu', resourceFieldRef },
      ...all,
    ],
  };
}

/** What is to be in the files. */
export function fieldsShown(pod: SimPod, volume: FieldsVolume): Readonly<Record<string, string>> {
  const { showsAll } = volume;
  const version = pod.annotations['version'] ?? '';
  const all = showsAll ? { all: version === '' ? '' : `version="${version}"` } : {};
  const contents = volume.kind === 'projected' ? volume.sources.map(({ data }) => data) : [];
  return Object.assign({ name: pod.name, version, cpu: CPU_SHOWN, ...all }, ...contents) as Record<
    string,
    string
  >;
}
