/** What a device may hold that is not for us to format: generated, the same ones for the same seed. */
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { createHash } from 'node:crypto';

export interface Image {
  /** What it is, for a failure's message. */
  readonly what: string;
  /** The parts that are written; the rest of it is a hole. */
  readonly parts: readonly { readonly at: number; readonly bytes: Buffer }[];
}

/** The file has it and nothing else from now on, in `sizeBytes` with holes between the parts. */
export function putImage(path: string, { parts }: Image, sizeBytes: number): void {
  const file = openSync(path, 'r+');
  ftruncateSync(file, 0);
  ftruncateSync(file, sizeBytes);
  for (const { at, bytes } of parts) writeSync(file, bytes, 0, bytes.length, at);
  closeSync(file);
}

const KIBIBYTE = 1_024;

interface Signature {
  readonly what: string;
  /** Negative: from the end. */
  readonly at: readonly number[];
  readonly bytes: Buffer;
}

const text = (what: string, bytes: string, ...at: readonly number[]): Signature => {
  return { what, at, bytes: Buffer.from(bytes, 'latin1') };
};
const hex = (what: string, bytes: string, ...at: readonly number[]): Signature => {
  return { what, at, bytes: Buffer.from(bytes, 'hex') };
};
const eachSector = [0, 512, 1_024, 1_536];
const uberblocks = Array.from({ length: 8 }, (_, index) => 128 * KIBIBYTE + index * KIBIBYTE);

/** Each where its format has it, mirrors and copies at the end too; those of ext are for a volume of another kind. */
const SIGNATURES: readonly Signature[] = [
  text('xfs', 'XFSB', 0),
  text('btrfs', '_BHRfS_M', 0x1_00_40, 0x40_00_40),
  text('LUKS', 'LUKS\xba\xbe', 0),
  text('LUKS, second header', 'SKUL\xba\xbe', 0x40_00, 0x80_00, 0x1_00_00, 0x2_00_00, 0x4_00_00, 0x10_00_00),
  text('LVM', 'LABELONE', ...eachSector),
  hex('md 1.1 and 1.2', 'fc4e2ba9', 0, 4_096),
  hex('md 1.0', 'fc4e2ba9', -8 * KIBIBYTE, -12 * KIBIBYTE),
  hex('md 0.90', 'fc4e2ba9', -64 * KIBIBYTE, -128 * KIBIBYTE),
  text('swap', 'SWAPSPACE2', 4_086, 8_182, 16_374, 32_758, 65_526),
  text('old swap', 'SWAP-SPACE', 4_086, 65_526),
  text('suspended machine', 'S1SUSPEND', 4_086),
  text('FAT16', 'FAT16   ', 54),
  text('FAT32', 'FAT32   ', 82),
  text('NTFS', 'NTFS    ', 3),
  text('exFAT', 'EXFAT   ', 3),
  text('BitLocker', '-FVE-FS-', 3),
  hex('boot sector', '55aa', 510),
  hex('partition table', '830000000100000009000000', 446 + 4, 462 + 4),
  text('GPT', 'EFI PART', 512, 4_096, -512, -4_096),
  text('Apple partition map', 'ER', 0),
  hex('BSD label', '57455682', 512),
  hex('Sun label', 'dabe', 508),
  hex('ZFS', '0cb1ba0000000000', ...uberblocks, ...uberblocks.map((at) => at + 256 * KIBIBYTE)),
  hex('ZFS, big endian', '0000000000bab10c', ...uberblocks),
  hex('ZFS, label at the end', '0cb1ba0000000000', -384 * KIBIBYTE, -128 * KIBIBYTE, -120 * KIBIBYTE),
  text('squashfs', 'hsqs', 0),
  hex('erofs', 'e2e1f5e0', 1_024),
  hex('f2fs', '1020f5f2', 1_024, 4_096 + 1_024),
  hex('nilfs2', '3434', 1_030, -4_096 + 6),
  text('reiserfs', 'ReIsEr2Fs', 64 * KIBIBYTE + 52, 8 * KIBIBYTE + 52),
  text('reiser4', 'ReIsEr4', 64 * KIBIBYTE),
  text('JFS', 'JFS1', 32 * KIBIBYTE, 60 * KIBIBYTE),
  text('ISO 9660', 'CD001', 32 * KIBIBYTE + 1),
  text('UDF', 'BEA01', 32 * KIBIBYTE + 1),
  text('HFS+', 'H+', 1_024, -1_024),
  text('APFS', 'NXSB', 32),
  hex('UFS', '54190100', 8 * KIBIBYTE + 1_372, 64 * KIBIBYTE + 1_372),
  hex('minix', '7f13', 1_040),
  hex('bcache', 'c68573f64e1a45ca8265f57f48ba6d81', 4_096 + 24),
  hex('bcachefs', 'c68573f666ce90a9d96a60cf803df7ef', 4_096 + 24),
  text('Ceph BlueStore', 'bluestore block device', 0),
  hex('DRBD', '8374026d', -4_096 + 60),
  text('OCFS2', 'OCFSV2', 512, 1_024, 2_048, 4_096, 8_192),
  hex('GFS2', '01161970', 64 * KIBIBYTE),
  hex('cramfs', '453dcd28', 0),
  text('romfs', '-rom1fs-', 0),
  text('VDO', 'dmvdo001', 0),
  text('Stratis', '!Stra0tis\x86\xff\x02^AAArh', 512),
  text('dm-verity', 'verity\0\0', 0),
  text('dm-integrity', 'integrt\0', 0),
  hex('DDF RAID', 'de11de11', -512),
  text('Intel RAID', 'Intel Raid ISM Cfg Sig. ', -1_024),
  text('Oracle ASM', 'ORCLDISK', 32),
  text('a database', 'SQLite format 3\0', 0, 4_096),
  text('a virtual disk', 'QFI\xfb', 0),
];

const EXT_MAGIC = { at: 1_080, bytes: Buffer.from('53ef', 'hex') };

/** An endless row of bytes that looks like noise, from one text. */
function noise(seed: string, length: number): Buffer {
  const blocks: Buffer[] = [];
  for (let index = 0; index * 32 < length; index += 1)
    blocks.push(createHash('sha256').update(`${seed} ${index}`).digest());
  return Buffer.concat(blocks).subarray(0, length);
}

/** No image has more of it written than this, so that thousands take minutes. */
const NOISE_BYTES_MAX = 64 * KIBIBYTE;

type Recipe = (seed: string, sizeBytes: number, draw: (below: number) => number) => Image;

const RECIPES: readonly Recipe[] = [
  (seed, sizeBytes, draw) => {
    const signature = SIGNATURES[draw(SIGNATURES.length)] as Signature;
    const at = signature.at[draw(signature.at.length)] as number;
    const parts = [{ at: at < 0 ? sizeBytes + at : at, bytes: signature.bytes }];
    return { what: `the signature of ${signature.what} at ${at} (${seed})`, parts };
  },
  (seed, sizeBytes, draw) => {
    const signature = SIGNATURES[draw(SIGNATURES.length)] as Signature;
    const parts = signature.at.map((at) => ({ at: at < 0 ? sizeBytes + at : at, bytes: signature.bytes }));
    const at = 8 * KIBIBYTE + draw(sizeBytes - NOISE_BYTES_MAX - 8 * KIBIBYTE);
    const bytes = noise(seed, 1 + draw(NOISE_BYTES_MAX));
    return { what: `${signature.what} with data (${seed})`, parts: [{ at, bytes }, ...parts] };
  },
  (seed, _sizeBytes, draw) => {
    const signature = SIGNATURES[draw(SIGNATURES.length)] as Signature;
    const bytes = signature.bytes.subarray(0, 1 + draw(signature.bytes.length));
    const at = Math.max(0, signature.at[0] as number);
    return { what: `${signature.what}, cut short (${seed})`, parts: [{ at, bytes: withoutZeros(bytes) }] };
  },
  (seed, sizeBytes, draw) => {
    const at = [0, sizeBytes - 1, sizeBytes / 2, draw(sizeBytes)][draw(4)] as number;
    return { what: `one byte at ${at} (${seed})`, parts: [{ at, bytes: Buffer.from([1 + draw(255)]) }] };
  },
  (seed, sizeBytes, draw) => {
    const bytes = noise(seed, 512 + draw(NOISE_BYTES_MAX - 512));
    return { what: `noise (${seed})`, parts: [{ at: draw(sizeBytes - bytes.length), bytes }] };
  },
  (seed) => {
    const bytes = noise(seed, NOISE_BYTES_MAX);
    return { what: `noise from the beginning (${seed})`, parts: [{ at: 0, bytes }] };
  },
  (seed, sizeBytes, draw) => {
    // What is left when the front of a disk was wiped.
    const at = (1 + draw(6)) * KIBIBYTE * KIBIBYTE;
    const bytes = noise(seed, Math.min(NOISE_BYTES_MAX, sizeBytes - at));
    return { what: `data behind wiped ${at} bytes (${seed})`, parts: [{ at, bytes }] };
  },
  (seed, _sizeBytes, draw) => {
    const entry = { at: 446 + 16 * draw(4), bytes: withoutZeros(noise(seed, 16)) };
    const parts = [entry, { at: 510, bytes: Buffer.from('55aa', 'hex') }];
    return { what: `a partition table of noise (${seed})`, parts };
  },
];

function withoutZeros(bytes: Buffer): Buffer {
  return Buffer.from(bytes.map((byte) => (byte === 0 ? 0xff : byte)));
}

/** Image number `index` for a device of this size. It is never blank, and blkid never takes it for an ext4. */
export function hostileImage(index: number, sizeBytes: number): Image {
  const digest = noise(`draw ${index}`, 64);
  let used = 0;
  const draw = (below: number): number => {
    used += 6;
    return digest.readUIntBE(used - 6, 6) % below;
  };
  const recipe = RECIPES[index % RECIPES.length] as Recipe;
  const image = recipe(`image ${index}`, sizeBytes, draw);
  return { ...image, parts: image.parts.map(withoutExt) };
}

/** By chance noise may say that it is an ext4; then it would be the file system that is wanted. */
function withoutExt({ at, bytes }: Image['parts'][number]): Image['parts'][number] {
  const first = EXT_MAGIC.at - at;
  if (first < 0 || first >= bytes.length) return { at, bytes };
  const changed = Buffer.from(bytes);
  if (changed[first] === EXT_MAGIC.bytes[0]) changed[first] = 0x54;
  return { at, bytes: changed };
}
