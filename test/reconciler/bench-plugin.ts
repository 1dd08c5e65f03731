/** A plugin whose world is a set of rungs; every verb can be held open or made to fail. */
import { fail, type Failure, ok, type Result } from '../../mount/failure.ts';
import type {
  Needs,
  PluginRegistry,
  PublishContext,
  VolumeCall,
  VolumePlugin,
} from '../../plugins/plugin.ts';
import type { PublicationSpec, VolumeSpec } from '../../plugins/volume.ts';
import { climbs, type Operation } from '../../reconciler/model/operation.ts';

/** A verb with the specifications it was called with. */
export interface MadeCall {
  readonly kind: Operation['kind'];
  readonly spec: VolumeSpec;
  readonly publication: PublicationSpec | undefined;
  /** The node id that an attach or a detach would name. */
  readonly node: string | undefined;
  /** A driver would be told where the volume is staged. */
  readonly isStageNamed: boolean;
  /** The group that a driver would be told. */
  readonly gid: number | undefined;
}

export interface BenchPlugin extends PluginRegistry {
  /** What stands: `attached <handle>`, `staged <handle>`, `<publication>`. */
  readonly world: Set<string>;
  readonly calls: string[];
  readonly made: MadeCall[];
  needs: Needs | undefined;
  /** What an attach is told. */
  context: PublishContext;
  /** Asked before each verb; a failure with effect unknown is answered after the effect. */
  fault: (kind: Operation['kind'], subject: string) => Failure | undefined;
  /** Whether the files stand as they are wanted; undefined: a kind without files. Called while it is looked at. */
  isUpToDate: VolumePlugin['isUpToDate'];
  /** Verbs wait here while it is set. */
  gate: Promise<void> | undefined;
}

export function createBenchPlugin(): BenchPlugin {
  const world = new Set<string>();
  const calls: string[] = [];
  const made: MadeCall[] = [];
  const subject = (call: VolumeCall & { publication?: PublicationSpec }): string => {
    return call.publication?.key ?? (call.spec.kind === 'csi' ? call.spec.volumeHandle : call.spec.id);
  };
  async function act<T>(
    kind: Operation['kind'],
    call: VolumeCall & { publication?: PublicationSpec },
    rung: string,
    value: T,
  ): Promise<Result<T>> {
    calls.push(`${kind} ${subject(call)}`);
    made.push({
      kind,
      spec: call.spec,
      publication: call.publication,
      node: call.facts.attachedNode,
      isStageNamed: call.facts.needs.stage,
      gid: call.fsGroup?.gid,
    });
    if (bench.gate !== undefined) await bench.gate;
    const failure = bench.fault(kind, subject(call));
    if (failure?.effect !== 'none') {
      if (climbs(kind)) world.add(rung);
      else world.delete(rung);
    }
    return failure === undefined ? ok(value) : fail(failure);
  }
  const plugin: VolumePlugin = {
    name: 'kubernetes.io/csi',
    needs: () => bench.needs,
    lane: () => 'bench',
    attach: (call) => act('attach', call, `attached ${subject(call)}`, { publishContext: bench.context }),
    detach: (call) => act('detach', call, `attached ${subject(call)}`, undefined),
    stage: (call) =>
      act('stage', call, `staged ${subject(call)}`, { stagedMount: { mountId: 7, device: '7:1' } }),
    unstage: (call) => act('unstage', call, `staged ${subject(call)}`, undefined),
    publish: (call) => act('publish', call, subject(call), { mount: { mountId: 8, device: '7:1' } }),
    unpublish: (call) => act('unpublish', call, subject(call), undefined),
    expand: ({ publication: _, toBytes, ...call }) =>
      act('expand', call, `${subject(call)} has ${toBytes}`, undefined),
    verifyClean: async (devices) => {
      calls.push(`clean ${devices.join(' ')}`);
      const failure = bench.fault('clean', devices.join(' '));
      return failure === undefined ? ok(undefined) : fail(failure);
    },
  };
  const bench: BenchPlugin = {
    world,
    calls,
    made,
    needs: { attach: false, stage: true, expand: false },
    context: { lun: '7' },
    fault: () => undefined,
    isUpToDate: undefined,
    gate: undefined,
    of: () => (bench.isUpToDate === undefined ? plugin : { ...plugin, isUpToDate: bench.isUpToDate }),
  };
  return bench;
}
