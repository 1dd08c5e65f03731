/** What pods a user writes: which volumes they have, and the group that owns them. */
import { drawIscsiVolume } from './iscsi-volumes.ts';
import { drawNfsVolume } from './nfs-volumes.ts';
import { below } from '../../mount/host.ts';
import type { PodVolume, SimPod } from './manifests.ts';
import { withLimits } from './filled-directories.ts';
import { asDevice, drawLocalVolume } from './local-volumes.ts';
import { drawLaterVolume } from './more-kinds.ts';
import { drawFieldsVolume } from './pod-fields.ts';
import type { Random } from './random.ts';
import { HOST_DATA } from './sim-paths.ts';
import type { SimStorage } from './sim-storage.ts';
import { drawSubpaths } from './subpaths.ts';
import type { Plan } from './swarm.ts';

export interface PodMakerParts {
  readonly plan: Plan;
  readonly random: Random;
  readonly storage: SimStorage;
  readonly fieldsRandom: Random;
  readonly kindsRandom: Random;
  readonly localsRandom: Random;
  readonly localDevicesRandom: Random;
  readonly fillsRandom: Random;
  readonly nfsRandom: Random;
  readonly iscsiRandom: Random;
  readonly subpathsRandom: Random;
}

export class PodMaker {
  readonly #parts: PodMakerParts;

  constructor(parts: PodMakerParts) {
    this.#parts = parts;
  }

  draw(name: string, uid: string): SimPod {
    const { random, plan, subpathsRandom } = this.#parts;
    const { fillsRandom } = this.#parts;
    const drawn = withLimits(fillsRandom, plan.fills, this.#drawVolumes({ name, uid }));
    const isGrouped = random.chance(plan.features.fsGroupShare);
    const fsGroup = isGrouped
      ? { gid: random.pick([1_000, 2_000]), changePolicy: random.pick(['Always', 'OnRootMismatch'] as const) }
      : undefined;
    const withAll = this.#withIscsi(
      this.#withNfs(this.#withLocal(this.#withFields(this.#withLaterKind(drawn)))),
    );
    const subpaths = drawSubpaths(subpathsRandom, plan.subpathShare, withAll.volumes);
    return { name, uid, fsGroup, annotations: {}, subpaths, ...withAll };
  }

  #withLaterKind(volumes: readonly PodVolume[]): readonly PodVolume[] {
    const { kindsRandom, plan } = this.#parts;
    if (!kindsRandom.chance(plan.moreKinds.share)) return volumes;
    return [...volumes, drawLaterVolume(kindsRandom, `v${volumes.length}`)];
  }

  #withLocal<Drawn extends Pick<SimPod, 'volumes'>>(drawn: Drawn): Drawn {
    const { localsRandom, localDevicesRandom, plan } = this.#parts;
    if (!localsRandom.chance(plan.locals.share)) return drawn;
    const local = drawLocalVolume(localsRandom, `v${drawn.volumes.length}`);
    const isDevice = localDevicesRandom.chance(plan.locals.devices);
    return { ...drawn, volumes: [...drawn.volumes, isDevice ? asDevice(local) : local] };
  }

  #withNfs<Drawn extends Pick<SimPod, 'volumes'>>(drawn: Drawn): Drawn {
    const { nfsRandom, plan } = this.#parts;
    if (plan.nfs.share === 0 || !nfsRandom.chance(plan.nfs.share)) return drawn;
    const volume = drawNfsVolume(nfsRandom, `v${drawn.volumes.length}`);
    return { ...drawn, volumes: [...drawn.volumes, volume] };
  }

  #withIscsi<Drawn extends Pick<SimPod, 'volumes'>>(drawn: Drawn): Drawn {
    const { iscsiRandom, plan } = this.#parts;
    if (plan.iscsi.share === 0 || !iscsiRandom.chance(plan.iscsi.share)) return drawn;
    const volume = drawIscsiVolume(iscsiRandom, `v${drawn.volumes.length}`);
    return { ...drawn, volumes: [...drawn.volumes, volume] };
  }

  #withFields(volumes: readonly PodVolume[]): Pick<SimPod, 'volumes'> & Partial<SimPod> {
    const { fieldsRandom, plan, storage } = this.#parts;
    if (!fieldsRandom.chance(plan.podFields.share)) return { volumes };
    const fields = drawFieldsVolume(fieldsRandom, `v${volumes.length}`, storage.contents);
    return { volumes: [...volumes, fields], annotations: { version: String(storage.nextValue()) } };
  }

  #drawVolumes(owner: { readonly name: string; readonly uid: string }): PodVolume[] {
    const { random, plan } = this.#parts;
    const { contents } = this.#parts.storage;
    const volumes: PodVolume[] = [];
    const nextName = () => `v${volumes.length}`;
    for (const disk of random.shuffled(this.#parts.storage.sharedDisks)) {
      if (volumes.length >= 2 || !random.chance(0.6)) continue;
      volumes.push({ kind: 'csi', name: nextName(), disk, readOnly: random.chance(0.2) });
    }
    for (const kind of ['empty-dir', 'empty-dir', 'host-path', 'secret', 'config-map'] as const) {
      if (!random.chance(volumes.length === 0 ? 0.5 : 0.2)) continue;
      const name = nextName();
      if (kind === 'empty-dir') volumes.push({ kind, name, medium: random.pick(['disk', 'memory']) });
      else if (kind === 'host-path')
        volumes.push({ kind, name, path: below(HOST_DATA, `data-${random.between(1, 3)}`) });
      else {
        const wanted = kind === 'secret' ? 'Secret' : 'ConfigMap';
        volumes.push({ kind, name, source: random.pick(contents.filter((one) => one.kind === wanted)) });
      }
    }
    const inline = plan.drivers.filter((driver) => driver.inline);
    if (inline.length > 0 && random.chance(plan.features.inlineShare)) {
      const secrets = contents.filter(({ kind }) => kind === 'Secret');
      volumes.push({
        kind: 'inline',
        name: nextName(),
        driver: random.pick(inline).name,
        attributes: { flavour: 'plain' },
        secret: random.chance(0.3) ? random.pick(secrets) : undefined,
      });
    }
    if (random.chance(plan.features.ownClaimShare)) {
      const name = nextName();
      volumes.push({
        kind: 'csi',
        name,
        disk: this.#parts.storage.makeOwnDisk(owner, name),
        readOnly: false,
      });
    }
    return volumes;
  }

  /** The same pod under another uid: what was its own is made anew. */
  reborn(pod: SimPod, uid: string): SimPod {
    const owner = { name: pod.name, uid };
    const volumes = pod.volumes.map((volume) => {
      if (volume.kind !== 'csi' || volume.disk.owner === undefined) return volume;
      return { ...volume, disk: this.#parts.storage.makeOwnDisk(owner, volume.name) };
    });
    return { ...pod, uid, volumes };
  }
}
