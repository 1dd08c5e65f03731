/** The directories that the publications of one block volume share, and whose they are. */
import { done, fail, ok, type Result } from '../../../mount/failure.ts';
import type { AbsolutePath, DeviceNumber, Host } from '../../../mount/host.ts';
import { printable } from '../../../mount/text/printable.ts';
import { removeEmptyBlockDirectories } from '../../layout/block-directory.ts';
import type { Layout } from '../../layout/layout.ts';
import { isReservedVolumeName } from '../../layout/stage-owner.ts';
import { readVolumeData } from '../../layout/volume-data.ts';
import type { VolumeData } from '../../layout/volume-data-text.ts';
import type { CsiVolumeSpec } from '../../volume.ts';
import { createCallLanes } from '../call/volume-call-queue.ts';
import { attachmentId, placeVolumeData, type Prepared } from '../call/volume-directory.ts';

export class SharedDirectories {
  readonly host: Host;
  readonly layout: Layout;
  readonly #nodeName: string;
  readonly #lanes = createCallLanes();

  constructor(host: Host, layout: Layout, nodeName: string) {
    this.host = host;
    this.layout = layout;
    this.#nodeName = nodeName;
  }

  /** Each has the turn of the volume, one after the other. */
  alone<T>(specName: string, act: () => Promise<T>): Promise<T> {
    return this.#lanes.run(specName, 'alone', act);
  }

  /** Takes away those that are empty. */
  tidy(specName: string): Promise<Result<void>> {
    return removeEmptyBlockDirectories(this.host, this.layout, specName);
  }

  /** The places go by the name of the PersistentVolume: another volume that had that name may not be down yet. */
  async refuseForeign(spec: CsiVolumeSpec): Promise<Result<void>> {
    if (isReservedVolumeName(spec.specName)) {
      const message = `a block volume cannot be named "${spec.specName}": its places would be those of all volumes`;
      return fail({ code: 'spec-invalid', message, effect: 'none' });
    }
    const owner = await this.#ownerOf(spec.specName);
    if (!owner.ok || owner.value === undefined || owner.value === handleOf(spec))
      return owner.ok ? done : owner;
    const tidied = await this.tidy(spec.specName);
    const now = tidied.ok ? await this.#ownerOf(spec.specName) : tidied;
    if (!now.ok || now.value === undefined) return now.ok ? done : now;
    const message = `the places of "${spec.specName}" still belong to another volume of that name`;
    return fail({ code: 'mount-foreign', message, effect: 'none', blocker: printable(now.value, 512) });
  }

  writeData(spec: CsiVolumeSpec): Promise<Result<void>> {
    const path = this.layout.blockVolume(spec.specName).data;
    return this.host.perform(placeVolumeData, { path, data: dataOf(spec, this.#nodeName) });
  }

  /** What was set up; undone only where it looks as it did `before`. */
  prepared(specName: string, path: AbsolutePath, before: Seen, undo: () => Promise<Result<void>>): Prepared {
    return {
      mountedBefore: before.mountId !== undefined || before.device !== undefined,
      undo: () =>
        this.alone(specName, async () => {
          const now = await lookAt(this.host, path);
          if (!now.ok || now.value.mountId !== before.mountId || now.value.device !== before.device)
            return false;
          return (await undo()).ok;
        }),
    };
  }

  /** Driver and handle that vol_data.json names; undefined when it says nothing. */
  async #ownerOf(specName: string): Promise<Result<string | undefined>> {
    const data = await readVolumeData(this.host, this.layout.blockVolume(specName).data);
    return data.ok ? ok(data.value && handleOf(data.value)) : data;
  }
}

/** What was found at a place. */
export interface Seen {
  readonly exists: boolean;
  readonly mountId: number | undefined;
  readonly device: DeviceNumber | undefined;
}

export const NOTHING_THERE: Seen = { exists: false, mountId: undefined, device: undefined };

export async function lookAt(host: Host, path: AbsolutePath): Promise<Result<Seen>> {
  const facts = await host.inspect(path);
  if (!facts.ok) return facts;
  if (facts.value.kind === 'absent') return ok(NOTHING_THERE);
  const mountId = await host.mountIdOf(path);
  if (!mountId.ok) return mountId;
  const device = await host.deviceOf(path);
  return device.ok ? ok({ exists: true, mountId: mountId.value, device: device.value }) : device;
}

function dataOf({ specName, volumeHandle, driver }: CsiVolumeSpec, nodeName: string): VolumeData {
  const attachment = attachmentId(volumeHandle, driver, nodeName);
  return { driver, volumeHandle, specName, nodeName, attachmentId: attachment };
}

function handleOf({ driver, volumeHandle }: Pick<CsiVolumeSpec, 'driver' | 'volumeHandle'>): string {
  return `${driver}^${volumeHandle}`;
}
