/** From documents to a desired state, and what tests ask of it. */
import assert from 'node:assert/strict';
import { wholly } from '../../mount/process/slices.ts';
import { desire, type DesireOptions } from '../../agent/resolve/desired-state-populator.ts';
import { NO_TOKENS } from '../../agent/source/token-source.ts';
import { ownTrustBundles } from '../../agent/source/trust-bundle-source.ts';
import { csiVolumeId, type CsiVolumeSpec, type VolumeId } from '../../plugins/volume.ts';
import type {
  DesiredPublication,
  DesiredState,
  DesiredVolume,
} from '../../reconciler/model/desired-state.ts';
import { path, wishOf } from './manifests.ts';

/** A stand-alone machine without SELinux. */
export const STAND_ALONE: DesireOptions = {
  deniedHostPaths: [path('/var/lib/mooring'), path('/proc'), path('/dev')],
  nodeName: 'node-1',
  tokens: NO_TOKENS,
  trustBundles: ownTrustBundles('called'),
  republishEpoch: 0,
  capacity: {},
  attachment: 'called',
  seLinux: false,
};

/** The volume of `volumeYaml('pv-data')`. */
export const DATA = csiVolumeId('test.csi.example', 'handle-pv-data');

export function desiredWith(options: Partial<DesireOptions>, ...documents: readonly string[]): DesiredState {
  const wish = wishOf({ 'all.yaml': documents.join('---\n') });
  assert.deepEqual(wish.rejected, []);
  return wholly(desire(wish, { ...STAND_ALONE, ...options }));
}

export function desired(...documents: readonly string[]): DesiredState {
  return desiredWith({}, ...documents);
}

/** Why the first volume that cannot be set up cannot be. */
export function refusalOf(...documents: readonly string[]): string {
  const [first] = desired(...documents).unresolved;
  return first === undefined ? 'resolved' : `${first.failure.code}: ${first.failure.message}`;
}

export function volumeOf(state: DesiredState, id: VolumeId): DesiredVolume {
  const volume = state.volumes.get(id);
  assert.ok(
    volume,
    `${id} among ${[...state.volumes.keys()].join(', ')}: ${JSON.stringify(state.unresolved)}`,
  );
  return volume;
}

/** The one CSI volume of the state. */
export function csiSpecOf(state: DesiredState): CsiVolumeSpec {
  const { spec } = only(state.volumes.values());
  assert.ok(spec.kind === 'csi');
  return spec;
}

export function publicationOf(state: DesiredState): DesiredPublication {
  return only(only(state.volumes.values()).publications.values());
}

export function only<T>(values: Iterable<T>): T {
  const [first, ...others] = values;
  assert.ok(first !== undefined && others.length === 0, 'exactly one');
  return first;
}

/** What stands in the way of the one unresolved volume; its pod must be frozen, and only its pod. */
export function unresolvedIn(state: DesiredState): string {
  const { pod, failure } = only(state.unresolved);
  assert.deepEqual([...state.frozenPods], [pod.uid]);
  assert.equal(failure.effect, 'none');
  assert.ok(Buffer.byteLength(failure.message) <= 1_024, failure.message);
  return `${failure.code}: ${failure.message}`;
}

/** Why the one volume is not to be climbed; its pod must not be frozen. */
export function blockedIn(state: DesiredState): string {
  const { blocked, publications } = only(state.volumes.values());
  assert.deepEqual([state.unresolved, state.frozenPods.size, publications.size > 0], [[], 0, true]);
  assert.ok(blocked, 'blocked');
  return `${blocked.code}: ${blocked.message}`;
}

/** By its path, the mode and the text of each file. */
export function filesOf({ files }: DesiredPublication): Readonly<Record<string, string>> {
  const entries = [...(files?.reveal() ?? [])];
  return Object.fromEntries(
    entries.map(([path, { content, mode }]) => [
      path,
      `${mode.toString(8)} ${Buffer.from(content).toString()}`,
    ]),
  );
}
