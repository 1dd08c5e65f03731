/**
 * The scan of the layout goes on while volumes are brought up. What it tidies away is never what one is staged in.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FIRM_GROUND } from '../../../mount/ground.ts';
import { type AbsolutePath, below, type Host, parseAbsolutePath } from '../../../mount/host.ts';
import { driverPathIn, type DriverPath } from '../../../plugins/csi/call/volume-directory.ts';
import { createBlockPlaces } from '../../../plugins/csi/block/block-places.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import { readVolumeData } from '../../../plugins/layout/volume-data.ts';
import type { CsiVolumeSpec, VolumeId } from '../../../plugins/volume.ts';
import type { ActualState, ActualVolume } from '../../../reconciler/model/actual-state.ts';
import { reconstruct } from '../../../reconciler/recovery/reconstruct.ts';
import { performStepwise } from '../../perform-stepwise.ts';
import { createMemoryHost } from '../../plugins/memory-host.ts';
import { actual, csi, DRIVER } from '../world.ts';

const root = parseAbsolutePath('/state');
assert.ok(root);
const layout = createLayout(root);
const BEGUN = { kind: 'unsure', because: 'begun' } as const;
const FILES = csi('data');
const BLOCK: CsiVolumeSpec = { ...csi('data'), mode: 'Block' };

interface Staging {
  readonly spec: CsiVolumeSpec;
  readonly directory: AbsolutePath;
  readonly data: AbsolutePath;
  pathOn(host: Host): DriverPath;
}

const STAGINGS: Readonly<Record<string, Staging>> = {
  'with files': {
    spec: FILES,
    directory: layout.deviceDirectory(DRIVER, 'data'),
    data: layout.deviceDirectory(DRIVER, 'data'),
    pathOn: (host) =>
      driverPathIn(host, {
        path: layout.deviceDirectory(DRIVER, 'data'),
        mountPoint: layout.stagingPath(FILES),
        mountPointMadeBy: 'us',
        data: { driver: DRIVER, volumeHandle: 'data' },
        above: undefined,
      }),
  },
  'of a device': {
    spec: BLOCK,
    directory: layout.blockVolume(BLOCK.specName).directory,
    data: layout.blockVolume(BLOCK.specName).data,
    pathOn: (host) => createBlockPlaces(host, layout, 'node').staging(BLOCK),
  },
};

/** Calls the host as always, and tells of each call before it is made; of each step, where transitions have them. */
function watched(host: Host, onCall: () => Promise<void>, transitionsAre: 'whole' | 'steps'): Host {
  const calls: ProxyHandler<Host> = {
    get(target, name, receiver): unknown {
      if (name === 'perform' && transitionsAre === 'steps') return stepwise(receiver as Host);
      const value: unknown = Reflect.get(target, name, receiver);
      if (typeof value !== 'function') return value;
      return async (...given: unknown[]): Promise<unknown> => {
        await onCall();
        return Reflect.apply(value, target, given);
      };
    },
  };
  return new Proxy(host, calls);
}

function stepwise(host: Host): Host['perform'] {
  return (transition, args) => performStepwise(host, transition, args);
}

/** A life before this one, which was killed before it had written a vol_data.json, has left what `left` names. */
async function stageBeforeCall(at: number, staging: Staging, left: AbsolutePath) {
  const host = createMemoryHost();
  host.plant(left, { kind: 'directory' });
  host.plant(layout.pods, { kind: 'directory' });
  const known = new Map<VolumeId, ActualVolume>();
  let calls = 0;
  const stage = async (): Promise<void> => {
    calls += 1;
    if (calls !== at) return;
    known.set(staging.spec.id, { ...actual('data', {}), spec: staging.spec, staged: BEGUN });
    assert.ok((await staging.pathOn(host).prepare()).ok);
  };
  await scanLayout(watched(host, stage, 'whole'), known);
  return { host, calls };
}

async function scanLayout(host: Host, known: ActualState): Promise<void> {
  await reconstruct({ host, layout, ground: FIRM_GROUND, known, isWanted: () => true }, 'whole');
}

async function assertStaging(host: Host, staging: Staging, when: string): Promise<void> {
  const data = await readVolumeData(host, staging.data);
  assert.equal(data.ok && data.value?.volumeHandle, 'data', when);
  const facts = await host.inspect(layout.stagingPath(staging.spec));
  assert.equal(facts.ok && facts.value.kind, 'directory', when);
}

for (const [what, staging] of Object.entries(STAGINGS)) {
  for (const left of [staging.directory, layout.stagingPath(staging.spec)]) {
    test(`a volume ${what} staged while the scan goes keeps its vol_data.json beside ${left}`, async () => {
      for (let at = 1, over = false; !over; at += 1) {
        const { host, calls } = await stageBeforeCall(at, staging, left);
        over = calls < at;
        if (!over) await assertStaging(host, staging, `staged before call ${at} of the scan`);
      }
    });
  }

  test(`a directory of a volume ${what} that is just being filled is left alone`, async () => {
    for (let step = 1, over = false; !over; step += 1) {
      const host = createMemoryHost();
      host.plant(layout.pods, { kind: 'directory' });
      host.plant(below(layout.stages, DRIVER), { kind: 'directory' });
      const known = new Map([
        [staging.spec.id, { ...actual('data', {}), spec: staging.spec, staged: BEGUN } as ActualVolume],
      ]);
      let steps = 0;
      let scanned = 0;
      host.onEffect(() => {
        steps += 1;
      });
      const filling = watched(
        host,
        async () => {
          if (steps < step || scanned > 0) return;
          scanned += 1;
          await reconstruct({ host, layout, ground: FIRM_GROUND, known, isWanted: () => true }, 'whole');
        },
        'steps',
      );
      const prepared = await staging.pathOn(filling).prepare();
      assert.ok(prepared.ok, JSON.stringify(prepared));
      over = scanned === 0;
      await assertStaging(host, staging, `scanned after step ${step}`);
    }
  });
}
