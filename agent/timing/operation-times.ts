/** How long the operations of volumes take, by the kubelet's names ("Kubernetes Metrics Reference"). */
import type { Clock, Host } from '../../mount/host.ts';
import type { Result } from '../../mount/failure.ts';
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import { driverOf, isDevice, isOrphan } from '../../plugins/kinds/volume-questions.ts';
import type { PublicationCall, VolumePlugin } from '../../plugins/plugin.ts';
import { CSI_PLUGIN, pluginOf, type VolumeId, type VolumeSpec } from '../../plugins/volume.ts';
import { createCallTimes } from './call-times.ts';
import { family, say, textOf } from './family.ts';
import { createHistogram, DEFAULT_BOUNDS, STORAGE_BOUNDS } from './histogram.ts';
import { createMountTimes, type MountTimes } from './mount-times.ts';
import { type CountedHost, countedHost } from './counted-host.ts';

export interface OperationTimes {
  /** The same plugin, and what its verbs take is counted from now on. */
  timed(plugin: VolumePlugin): VolumePlugin;
  /** The same host, and what drivers and walks through volumes take is counted from now on. */
  onHost(host: Host): Host;
  /** Told of each wish, before anything of it is begun. */
  readonly wanted: MountTimes['wanted'];
  /** They are in the text format of Prometheus. */
  text(): string;
}

type Verb = 'attach' | 'detach' | 'stage' | 'unstage' | 'publish' | 'unpublish' | 'expand';

const SECOND_MS = 1_000;

/** `isGranted`: a cluster attaches, and its word is waited for. */
export function createOperationTimes(clock: Pick<Clock, 'nowMs'>, isGranted = false): OperationTimes {
  return new CountingTimes(clock, isGranted);
}

class CountingTimes implements OperationTimes {
  readonly #clock: Pick<Clock, 'nowMs'>;
  readonly #isGranted: boolean;
  readonly #calls;
  readonly #mounts;
  /** What the stage of a volume took that no pod has yet: for the kubelet it is part of the mount. */
  readonly #stagedMs = new Map<VolumeId, number>();
  readonly #operations = createHistogram({
    name: 'storage_operation_duration_seconds',
    help: 'What an operation of a volume took, in seconds.',
    bounds: STORAGE_BOUNDS,
  });
  readonly #collections = createHistogram({
    name: 'kubelet_volume_metric_collection_duration_seconds',
    help: 'What it took to learn how full a volume is, in seconds.',
    bounds: DEFAULT_BOUNDS,
  });
  /** What nobody explained and was taken down, and how often that failed. */
  readonly #cleaned = { all: 0, failed: 0 };

  constructor(clock: Pick<Clock, 'nowMs'>, isGranted: boolean) {
    this.#clock = clock;
    this.#isGranted = isGranted;
    this.#calls = createCallTimes(clock);
    this.#mounts = createMountTimes(clock);
  }

  onHost(host: Host): Host {
    const counted: CountedHost = {
      call: this.#calls.timed((call) => host.call(call)),
      changeOwnership: (request) => {
        const sinceMs = this.#clock.nowMs();
        const walked = host.changeOwnership(request);
        const plugin = labelOf(request.volume as VolumeId);
        void walked.then(({ ok }) => this.#observe('volume_apply_access_control', plugin, ok, sinceMs, 0));
        return walked;
      },
    };
    return countedHost(host, counted);
  }

  wanted(...[desired, actual]: Parameters<MountTimes['wanted']>): void {
    this.#mounts.wanted(desired, actual);
  }

  timed(plugin: VolumePlugin): VolumePlugin {
    const { expand, statistics } = plugin;
    const publish = this.#verb('publish', (call: PublicationCall) => plugin.publish(call));
    return {
      ...plugin,
      attach: this.#verb('attach', (call) => plugin.attach(call)),
      detach: this.#verb('detach', (call) => plugin.detach(call)),
      stage: this.#verb('stage', (call) => plugin.stage(call)),
      unstage: this.#verb('unstage', (call) => plugin.unstage(call)),
      publish,
      unpublish: this.#verb('unpublish', (call) => plugin.unpublish(call)),
      ...(expand === undefined ? {} : { expand: this.#verb('expand', expand) }),
      ...(statistics === undefined ? {} : { statistics: this.#asked(statistics) }),
    };
  }

  text(): string {
    const { all, failed } = this.#cleaned;
    return [
      this.#operations.text(),
      this.#mounts.text(),
      this.#calls.text(),
      this.#collections.text(),
      counter('force_cleaned_failed_volume_operations_total', 'Mounts nobody explained, taken down.', all),
      counter('force_cleaned_failed_volume_operation_errors_total', 'Those that stayed.', failed),
    ].join('');
  }

  #verb<
    Call extends {
      readonly spec: VolumeSpec;
      readonly publication?: PublicationCall['publication'] | undefined;
    },
    T,
  >(verb: Verb, act: (call: Call) => Promise<Result<T>>): (call: Call) => Promise<Result<T>> {
    return async (call) => {
      const sinceMs = this.#clock.nowMs();
      const result = await act(call);
      // Nothing was tried: it would be the fastest of all failures.
      if (result.ok || result.failure.code !== 'no-longer-wanted')
        this.#note(verb, call.spec, result.ok, sinceMs);
      if (result.ok && verb === 'publish' && call.publication !== undefined)
        this.#mounts.mounted(call.spec.id, call.publication.key, pluginLabel(call.spec));
      return result;
    };
  }

  #note(verb: Verb, spec: VolumeSpec, isGood: boolean, sinceMs: number): void {
    if (verb === 'stage' && isGood) return void this.#stagedMs.set(spec.id, this.#clock.nowMs() - sinceMs);
    const beforeMs = verb === 'publish' ? (this.#stagedMs.get(spec.id) ?? 0) : 0;
    if (verb === 'publish' || verb === 'unstage') this.#stagedMs.delete(spec.id);
    if (verb === 'unpublish' && isOrphan(spec)) {
      this.#cleaned.all += 1;
      if (!isGood) this.#cleaned.failed += 1;
    }
    const name = operationName(verb, spec, this.#isGranted);
    if (name !== undefined) this.#observe(name, pluginLabel(spec), isGood, sinceMs, beforeMs);
  }

  #observe(operation: string, plugin: string, isGood: boolean, sinceMs: number, beforeMs: number): void {
    const seconds = (this.#clock.nowMs() - sinceMs + beforeMs) / SECOND_MS;
    const status = isGood ? 'success' : 'fail-unknown';
    const labels = { migrated: 'false', operation_name: operation, status, volume_plugin: plugin };
    this.#operations.observe(labels, seconds);
  }

  #asked(statistics: NonNullable<VolumePlugin['statistics']>): NonNullable<VolumePlugin['statistics']> {
    return (call) => {
      const sinceMs = this.#clock.nowMs();
      const answer = statistics(call);
      // As the kubelet: a driver by its name, and what is counted by a walk as `du`.
      const source = driverOf(call.spec) ?? 'du';
      void answer.then(() =>
        this.#collections.observe({ metric_source: source }, (this.#clock.nowMs() - sinceMs) / SECOND_MS),
      );
      return answer;
    };
  }
}

/** As the kubelet calls what sets up and takes down files and devices; undefined: it does no such thing. */
function operationName(verb: Verb, spec: VolumeSpec, isGranted: boolean): string | undefined {
  const what = isDevice(spec) ? 'device' : 'files';
  switch (verb) {
    case 'attach':
      return isGranted ? 'verify_controller_attached_volume' : 'volume_attach';
    case 'detach':
      // In a cluster it is the attach/detach controller that counts it, by the same name.
      return isGranted ? undefined : 'volume_detach';
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

/** The same of a volume of which only the id is known. */
function labelOf(id: VolumeId): string {
  const plugin = pluginOf(id);
  if (plugin !== CSI_PLUGIN) return plugin;
  const rest = id.slice(plugin.length + 1);
  return `${plugin}:${rest.slice(0, rest.indexOf('^'))}`;
}

function counter(name: string, help: string, value: number): string {
  const one = family(name, help, 'counter');
  say(one, value);
  return textOf(one);
}
