/** Where a pod of the API server is in its life, as far as it decides about volumes. Pure. */
import { FieldReader } from '../../../kubernetes/fields/field-reader.ts';

/**
 * `wanted`: its volumes are to be set up. `ending`: it is being deleted, and its containers may still run: what stands
 * stays, and nothing is begun. `over`: its containers have stopped. `mirror`: the shadow of a manifest of this node.
 */
export type PodLife = 'wanted' | 'ending' | 'over' | 'mirror';

const MIRROR = 'kubernetes.io/config.mirror';
const STATUS_LISTS = ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'] as const;

/** Total. What cannot be read of a pod counts as what keeps its volumes. */
export function podLife(value: unknown): PodLife {
  const pod = new FieldReader(value, '', []);
  const metadata = pod.key('metadata');
  if (metadata.key('annotations').key(MIRROR).present) return 'mirror';
  const status = pod.key('status');
  const phase = status.key('phase').text();
  if (phase === 'Succeeded' || phase === 'Failed') return 'over';
  if (!metadata.key('deletionTimestamp').present) return 'wanted';
  return haveStopped(pod.key('spec'), status) ? 'over' : 'ending';
}

/** Every container has been seen to end. One that waits may have been started by now, so it says nothing. */
function haveStopped(spec: FieldReader, status: FieldReader): boolean {
  const [main] = STATUS_LISTS;
  const wanted = spec.key('containers').list().length;
  const told = status.key(main).list().length;
  const all = STATUS_LISTS.flatMap((list) => status.key(list).list());
  return wanted > 0 && told >= wanted && all.every((one) => one.key('state').key('terminated').present);
}

/**
 * What the attach/detach controller makes of a pod that is being deleted (`IsPodTerminated`): it takes a container that
 * waits, or of which nobody has told, for one that does not run. For this node it may run, so it is kept here.
 */
export function countsForNoVolume(pod: unknown): boolean {
  const [main] = STATUS_LISTS;
  const told = new FieldReader(pod, '', []).key('status').key(main).list();
  return told.every((one) => {
    const state = one.key('state');
    return state.key('terminated').present || state.key('waiting').present;
  });
}
