/** What the host does with file systems on block devices of this machine, besides mounting them. */
import type { AbsolutePath } from './absolute-path.ts';
import type { Result } from './failure.ts';
import type { DeviceContent, FileSystemType } from './device/file-system-tools.ts';

export type { FileSystemType } from './device/file-system-tools.ts';

export interface DeviceFileSystems {
  /** By blkid(8), which reads and changes nothing. `nothing` does not prove that there is nothing. */
  readDeviceContent(device: AbsolutePath): Promise<Result<DeviceContent>>;
  /**
   * `ok`: nobody else uses the device, and every byte that could tell of something on it was read and is zero (INV-9).
   * `device-in-use`: a mount in any namespace, or another tool, has it; `device-content` names the first other byte.
   */
  proveBlank(device: AbsolutePath): Promise<Result<void>>;
  /** After a proof of its own, right before mkfs. Never with a force flag: what mkfs refuses stays as it is. */
  makeFileSystem(device: AbsolutePath, type: FileSystemType): Promise<Result<void>>;
  /**
   * Repairs what is safe to repair without asking, on a device that nobody uses; on another one it does nothing.
   * `device-content`: it needs a person.
   */
  checkFileSystem(device: AbsolutePath, type: FileSystemType): Promise<Result<void>>;
  /** To the size of its device: one that `growsMounted` where it is mounted, others where nobody uses the device. */
  growFileSystem(place: GrowingFileSystem): Promise<Result<void>>;
}

export interface GrowingFileSystem {
  readonly device: AbsolutePath;
  readonly type: FileSystemType;
  /** Undefined: it is not mounted. */
  readonly mountPoint: AbsolutePath | undefined;
}
