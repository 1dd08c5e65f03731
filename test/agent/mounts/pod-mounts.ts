/** A pod with its wish, all of its volumes standing, and what its containers are given. */
import assert from 'node:assert/strict';
import { mountsOf } from '../../../agent/mounts/container-mounts.ts';
import type { ContainerMounts, MountsDocument } from '../../../agent/mounts/mounts-document.ts';
import { desire } from '../../../agent/resolve/desired-state-populator.ts';
import { statusOf } from '../../../agent/status/status.ts';
import type { StatusFacts } from '../../../agent/status/status-facts.ts';
import { wholly } from '../../../mount/process/slices.ts';
import { type ActualState, onTheGround, PRESENT } from '../../../reconciler/model/actual-state.ts';
import type { DesiredState } from '../../../reconciler/model/desired-state.ts';
import { STAND_ALONE } from '../desired.ts';
import { onlyRejection, podUid, wishOf } from '../manifests.ts';
import { facts, LAYOUT } from '../status-fixture.ts';

/** The pod `web` with these containers and volumes, in flow style. */
export function webYaml(containers: string, volumes: string, rest = ''): string {
  return `apiVersion: v1
kind: Pod
metadata: {name: web, uid: uid-web}
spec:
  ${containers}
  volumes: ${volumes}
  ${rest}
`;
}

/** With everything mounted that can be, and then as `change` has it. */
export function mountsIn(
  documents: readonly string[],
  change: (facts: StatusFacts) => StatusFacts = (same) => same,
): MountsDocument {
  const wish = wishOf({ 'web.yaml': documents.join('---\n') });
  assert.deepEqual(wish.rejected, []);
  const pod = wish.pods.get(podUid('uid-web'));
  assert.ok(pod);
  const desired = wholly(desire(wish, STAND_ALONE));
  const pods = [pod.reference];
  const seen = change(facts({ desired, pods, actual: standing(desired), persistentVolumes: wish.volumes }));
  const status = statusOf(seen, LAYOUT, 'r').pods.find(({ uid }) => uid === 'uid-web');
  assert.ok(status);
  return mountsOf(seen, LAYOUT, pod, status);
}

/** Why the manifest is refused. */
export function refusedWeb(containers: string, volumes: string): string {
  return onlyRejection(wishOf({ 'web.yaml': webYaml(containers, volumes) }));
}

function standing({ volumes }: DesiredState): ActualState {
  return new Map(
    [...volumes].map(([id, { spec, publications }]) => [
      id,
      {
        ...onTheGround(spec, { attach: false, stage: false, expand: false }),
        publications: new Map(
          [...publications].map(([key, { spec: place, generation }]) => [
            key,
            { spec: place, presence: PRESENT, generation, mount: undefined },
          ]),
        ),
      },
    ]),
  );
}

/** Ready, with nothing asked for. */
export const BARE: ContainerMounts = {
  name: 'main',
  kind: 'container',
  seLinux: null,
  mounts: [],
  devices: [],
};
