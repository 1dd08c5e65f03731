/** Local volumes of which pods have the device itself: bound, held open and linked; nothing on it is looked at. */
import { createTurns } from '../../mount/process/turns.ts';
import { done, fail, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, type Host, type MountIdentity, parentOf } from '../../mount/host.ts';
import type { Mounter } from '../../mount/mounter.ts';
import {
  createDevicePublication,
  type DevicePublication,
  type DeviceSource,
} from '../device/device-publication.ts';
import { makeHeldFile, removeHeldFile } from '../device/held-file.ts';
import { refuseStagedDevice } from '../device/shared-device.ts';
import type { Layout } from '../layout/layout.ts';
import { placeDirectory } from '../layout/place-directory.ts';
import { removeEmptyPodDirectories, removeUnlessInUse } from '../layout/pod-directory.ts';
import type { PublicationCall } from '../plugin.ts';
import { doubtful, inOrder } from '../steps.ts';
import { findLocalPlace, titleOf } from './local-place.ts';
import type { LocalVolumeSpec } from './local-traits.ts';

export interface DevicePlaceParts {
  readonly host: Host;
  readonly layout: Layout;
  readonly mounter: Mounter;
  readonly denied: readonly AbsolutePath[];
}

export class DevicePlace {
  readonly #parts: DevicePlaceParts;
  readonly #device: DevicePublication;
  /** The pods of a volume share a directory: none takes away what another has just made. */
  readonly #inTurn = createTurns();

  constructor(parts: DevicePlaceParts) {
    this.#parts = parts;
    this.#device = createDevicePublication({ ...parts, root: parts.layout.root });
  }

  async publish(
    spec: LocalVolumeSpec,
    call: PublicationCall,
  ): Promise<Result<{ readonly mount: MountIdentity }>> {
    const source = await this.#find(spec);
    if (!source.ok) return source;
    const same = await this.#refuseAnother(spec, source.value, call);
    if (!same.ok) return same;
    const { host, layout } = this.#parts;
    const places = layout.localDevicePublication(call.publication);
    return this.#inTurn(spec.id, async () => {
      const facts = await host.inspect(places.held);
      if (!facts.ok) return facts;
      const { kind } = facts.value;
      // What a pod has already it keeps.
      const isNew = kind !== 'block';
      const unstaged = isNew ? await refuseStagedDevice(host, layout.plugins, source.value) : done;
      if (!unstaged.ok) return unstaged;
      const placed = await inOrder(
        () => host.perform(placeDirectory, { path: parentOf(places.held) }),
        async () => (kind === 'absent' ? makeHeldFile(host, places.held) : done),
      );
      if (!placed.ok) return doubtful<never>(placed);
      const mount = await this.#device.bringOut(places, source.value);
      return mount.ok ? ok({ mount: mount.value }) : mount;
    });
  }

  unpublish(spec: LocalVolumeSpec, { publication }: PublicationCall): Promise<Result<void>> {
    const { host, layout } = this.#parts;
    const { uid } = publication.pod;
    const places = layout.localDevicePublication(publication);
    return this.#inTurn(spec.id, () =>
      inOrder(
        () => this.#device.takeBack(places),
        () => removeHeldFile(host, places.held),
        () => removeUnlessInUse(host, parentOf(places.held)),
        () => removeUnlessInUse(host, parentOf(places.link)),
        () => removeEmptyPodDirectories(host, layout, uid),
      ),
    );
  }

  async #find(spec: LocalVolumeSpec): Promise<Result<DeviceSource>> {
    const { host, denied } = this.#parts;
    const { name, path: from } = spec;
    const place = await host.perform(findLocalPlace, { path: from, from, name, denied });
    if (!place.ok) return place;
    const { kind, path } = place.value;
    const title = titleOf({ name, from });
    const refuse = (code: 'path-wrong-kind' | 'path-missing', because: string) =>
      fail({ code, message: `${title} ${because}`, effect: 'none', blocker: from });
    if (kind !== 'block') return refuse('path-wrong-kind', 'is a directory, and its volumeMode is Block');
    const disk = await host.identifyDisk(path);
    if (!disk.ok) return disk;
    if (disk.value === undefined) return refuse('path-missing', 'has just gone');
    return ok({ path, ...disk.value });
  }

  /**
   * Two pods of one volume never see two devices: a link of the administrator may lead elsewhere by now. Nothing of the
   * stage is in doubt by that.
   */
  async #refuseAnother(
    spec: LocalVolumeSpec,
    { device }: DeviceSource,
    { publication, companions }: PublicationCall,
  ): Promise<Result<void>> {
    const { host, layout } = this.#parts;
    for (const other of companions?.() ?? []) {
      if (other.key === publication.key) continue;
      const { held } = layout.localDevicePublication(other);
      const theirs = await host.deviceOf(held);
      if (!theirs.ok) return theirs;
      if (theirs.value === undefined || theirs.value === device) continue;
      const message =
        `${titleOf({ name: spec.name, from: spec.path })} is device ${device} now, ` +
        `and another pod has ${theirs.value} of it`;
      return fail({ code: 'volume-in-use', message, effect: 'none', blocker: held });
    }
    return done;
  }
}
