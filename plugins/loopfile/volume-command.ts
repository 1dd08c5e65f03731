/**
 * `mooring-loopfile create|list|grow|delete`: volumes by hand, for hosts without a provisioner. They work on the pool
 * directory alone and are safe beside a running driver: a volume appears and disappears by one rename, and a file that
 * grows is what ControllerExpandVolume leaves, too.
 */
import { bytesMin, type FsType } from './device/file-system.ts';
import { type Pool, type Volume, volumeIdOf } from './pool/pool.ts';
import { status } from './device/status.ts';
import { chooseSize } from './pool/volume-size.ts';

/** Also the name of the PersistentVolume and its claim, so it has to be an object name (RFC 1123 label). */
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

export interface CreateOptions {
  readonly driver: string;
  readonly name: string;
  readonly size: string;
  readonly fsType: FsType;
  readonly yaml: boolean;
}

/** The volume handle, or with `yaml` a PersistentVolume and a claim for it. Creating it again shows it again. */
export async function createVolumeCommand(pool: Pool, options: CreateOptions): Promise<string> {
  const { name, fsType } = options;
  if (!NAME.test(name))
    throw status(
      'INVALID_ARGUMENT',
      `--name ${JSON.stringify(name)} must be lower-case letters, digits and dashes`,
    );
  const requiredBytes = BigInt(parseSize(options.size));
  const sizeBytes = chooseSize({ requiredBytes, limitBytes: 0n }, bytesMin(fsType));
  const existing = await pool.find(volumeIdOf(name));
  if (existing !== undefined && (existing.sizeBytes !== sizeBytes || existing.record.fsType !== fsType)) {
    throw status('ALREADY_EXISTS', `${name} has ${existing.sizeBytes} bytes for ${existing.record.fsType}`);
  }
  if (existing === undefined && sizeBytes > (await pool.roomBytes())) {
    throw status('RESOURCE_EXHAUSTED', `the pool has room for ${await pool.roomBytes()} bytes`);
  }
  const volume = existing ?? (await pool.create({ name, fsType, sizeBytes }));
  return options.yaml ? volumeYaml(options.driver, volume) : `${volume.record.id}\n`;
}

/** One line per volume: handle, name, size and really used bytes, file system, and how far it got. */
export async function listVolumesCommand(pool: Pool): Promise<string> {
  const { volumes, damaged } = await pool.list();
  const lines = volumes.map(({ record, sizeBytes, allocatedBytes }) =>
    [record.id, record.name, sizeBytes, allocatedBytes, record.fsType, record.content.state].join('\t'),
  );
  return [...lines, ...damaged.map((why) => `damaged: ${why}`)].map((line) => `${line}\n`).join('');
}

/**
 * The volume handle. What ControllerExpandVolume is to a resizer; the node agent then grows what is in it. Growing to
 * the size it has changes nothing. NOT_FOUND when there is none, OUT_OF_RANGE for a smaller size and for want of room.
 */
export async function growVolumeCommand(pool: Pool, name: string, size: string): Promise<string> {
  const volume = await volumeCalled(name, pool);
  const { id, fsType } = volume.record;
  const requiredBytes = BigInt(parseSize(size));
  const sizeBytes = chooseSize({ requiredBytes, limitBytes: 0n }, bytesMin(fsType));
  const more = sizeBytes - volume.sizeBytes;
  if (more < 0)
    throw status('OUT_OF_RANGE', `${name} has ${volume.sizeBytes} bytes, and volumes do not shrink`);
  if (more > 0 && more > (await pool.roomBytes()))
    throw status('OUT_OF_RANGE', `the pool has no ${more} bytes more`);
  const grown = await pool.grow(volume, sizeBytes);
  // A driver that began to format it put a new file in its place.
  if (grown.sizeBytes < sizeBytes)
    throw status('ABORTED', `${name} was staged at the same time: say it again`);
  return `${id}\n`;
}

/** NOT_FOUND when there is none, FAILED_PRECONDITION while it is in use. */
export async function deleteVolumeCommand(pool: Pool, name: string): Promise<string> {
  const volume = await volumeCalled(name, pool);
  await pool.remove(volume);
  return `${volume.record.id}\n`;
}

async function volumeCalled(name: string, pool: Pool): Promise<Volume> {
  const volume = await pool.find(volumeIdOf(name));
  if (volume === undefined) throw status('NOT_FOUND', `there is no volume ${name} in ${pool.directory}`);
  return volume;
}

const SIZE = /^([0-9]{1,15})(|Ki|Mi|Gi|Ti)$/;
const UNIT_BYTES: Readonly<Record<string, number>> = {
  '': 1,
  Ki: 1024,
  Mi: 1024 ** 2,
  Gi: 1024 ** 3,
  Ti: 1024 ** 4,
};

function parseSize(text: string): number {
  const [, digits = '', unit = ''] = SIZE.exec(text) ?? [];
  const bytes = Number(digits) * (UNIT_BYTES[unit] ?? 0);
  if (bytes > 0 && Number.isSafeInteger(bytes)) return bytes;
  throw status('INVALID_ARGUMENT', `--size ${text}: give bytes, or a number with Ki, Mi, Gi or Ti`);
}

function volumeYaml(driver: string, { record: { id, name, fsType }, sizeBytes }: Volume): string {
  return `apiVersion: v1
kind: PersistentVolume
metadata:
  name: ${name}
spec:
  capacity:
    storage: "${sizeBytes}"
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: ""
  claimRef:
    namespace: default
    name: ${name}
  csi:
    driver: ${driver}
    volumeHandle: ${id}
    fsType: ${fsType}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: ${name}
  namespace: default
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  volumeName: ${name}
  resources:
    requests:
      storage: "${sizeBytes}"
`;
}
