/** How long the operations of volumes take, as histograms by the kubelet's names ("Kubernetes Metrics Reference"). */
import type { Clock } from '../../mount/host.ts';
import type { Result } from '../../mount/failure.ts';
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import { driverOf, isDevice } from '../../plugins/kinds/volume-questions.ts';
import type { VolumePlugin } from '../../plugins/plugin.ts';
import type { VolumeId, VolumeSpec } from '../../plugins/volume.ts';

export interface OperationTimes {
  /** The same plugin, and what its verbs take is counted from now on. */
  timed(plugin: VolumePlugin): VolumePlugin;
  /** They are in the text format of Prometheus. */
  text(): string;
}

type Verb = 'attach' | 'detach' | 'stage' | 'unstage' | 'publish' | 'unpublish' | 'expand';

/** Upper bounds in seconds, as the kubelet has them for `storage_operation_duration_seconds`. */
const BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600] as const;
const NAME = 'storage_operation_duration_seconds';
const SECOND_MS = 1_000;

interface Histogram {
  /** How many took no longer than each bound, and longer than the one before; the last is for all that took longer. */
  readonly counts: number[];
  seconds: number;
}

/** `isGranted`: a cluster attaches, and its word is waited for. */
export function createOperationTimes(clock: Pick<Clock, 'nowMs'>, isGranted = false): OperationTimes {
  /** What the stage of a volume took that no pod has yet: for the kubelet it is part of the mount. */
  const stagedMs = new Map<VolumeId, number>();
  const histograms = new Map<string, Histogram>();

  function observe(verb: Verb, spec: VolumeSpec, isGood: boolean, sinceMs: number): void {
    const tookMs = clock.nowMs() - sinceMs;
    if (verb === 'stage' && isGood) return void stagedMs.set(spec.id, tookMs);
    const beforeMs = verb === 'publish' ? (stagedMs.get(spec.id) ?? 0) : 0;
    if (verb === 'publish' || verb === 'unstage') stagedMs.delete(spec.id);
    const seconds = (tookMs + beforeMs) / SECOND_MS;
    const labels = labelsOf(operationName(verb, spec, isGranted), spec, isGood);
    const known = histograms.get(labels);
    const histogram = known ?? { counts: [...BUCKETS, 0].map(() => 0), seconds: 0 };
    if (known === undefined) histograms.set(labels, histogram);
    const found = BUCKETS.findIndex((bound) => seconds <= bound);
    const index = found < 0 ? BUCKETS.length : found;
    histogram.counts[index] = (histogram.counts[index] ?? 0) + 1;
    histogram.seconds += seconds;
  }

  function timedVerb<Call extends { readonly spec: VolumeSpec }, T>(
    verb: Verb,
    act: (call: Call) => Promise<Result<T>>,
  ): (call: Call) => Promise<Result<T>> {
    return async (call) => {
      const sinceMs = clock.nowMs();
      const result = await act(call);
      // Nothing was tried: it would be the fastest of all failures.
      if (result.ok || result.failure.code !== 'no-longer-wanted')
        observe(verb, call.spec, result.ok, sinceMs);
      return result;
    };
  }

  return {
    timed(plugin) {
      const { expand } = plugin;
      return {
        ...plugin,
        attach: timedVerb('attach', (call) => plugin.attach(call)),
        detach: timedVerb('detach', (call) => plugin.detach(call)),
        stage: timedVerb('stage', (call) => plugin.stage(call)),
        unstage: timedVerb('unstage', (call) => plugin.unstage(call)),
        publish: timedVerb('publish', (call) => plugin.publish(call)),
        unpublish: timedVerb('unpublish', (call) => plugin.unpublish(call)),
        ...(expand === undefined ? {} : { expand: timedVerb('expand', expand) }),
      };
    },
    text() {
      const lines = [...histograms].flatMap(([labels, histogram]) => linesOf(labels, histogram));
      return [
        `# HELP ${NAME} What an operation of a volume took, in seconds.`,
        `# TYPE ${NAME} histogram`,
        ...lines,
        '',
      ].join('\n');
    },
  };
}

function labelsOf(operation: string, spec: VolumeSpec, isGood: boolean): string {
  const status = isGood ? 'success' : 'fail-unknown';
  return (
    `migrated="false",operation_name="${operation}",status="${status}",` +
    `volume_plugin="${pluginLabel(spec)}"`
  );
}

/** As the kubelet calls what sets up and takes down files and devices. */
function operationName(verb: Verb, spec: VolumeSpec, isGranted: boolean): string {
  const what = isDevice(spec) ? 'device' : 'files';
  switch (verb) {
    case 'attach':
      return isGranted ? 'verify_controller_attached_volume' : 'volume_attach';
    case 'detach':
      return 'volume_detach';
    case 'stage':
    case 'publish':
      return what === 'device' ? 'map_volume' : 'volume_mount';
    case 'unpublish':
      return what === 'device' ? 'unmap_volume' : 'volume_unmount';
    case 'unstage':
      return what === 'device' ? 'unmap_device' : 'unmount_device';
    case 'expand':
      return 'volume_fs_resize';
  }
}

/** `kubernetes.io/csi:<driver>`; the names of drivers have kept their rule, so none has to be escaped. */
export function pluginLabel(spec: VolumeSpec): string {
  const { plugin } = traitsOf(spec);
  const driver = driverOf(spec);
  return driver === undefined ? plugin : `${plugin}:${driver}`;
}

function linesOf(labels: string, { counts, seconds }: Histogram): readonly string[] {
  let sum = 0;
  const buckets = counts.map((count, index) => {
    sum += count;
    return `${NAME}_bucket{${labels},le="${BUCKETS[index] ?? '+Inf'}"} ${sum}`;
  });
  return [...buckets, `${NAME}_sum{${labels}} ${seconds}`, `${NAME}_count{${labels}} ${sum}`];
}
