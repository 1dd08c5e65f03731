/**
 * The part of the kernel's FUSE protocol (7.31, include/uapi/linux/fuse.h) that one flat directory of files needs.
 * All numbers are little-endian, as on the machines these tests run on.
 */
import { constants } from 'node:os';

/** Operation codes that are answered; FORGET, BATCH_FORGET and INTERRUPT must not be. */
export const OPERATION = {
  LOOKUP: 1,
  FORGET: 2,
  GETATTR: 3,
  SETATTR: 4,
  UNLINK: 10,
  OPEN: 14,
  READ: 15,
  WRITE: 16,
  STATFS: 17,
  RELEASE: 18,
  FSYNC: 20,
  FLUSH: 25,
  INIT: 26,
  OPENDIR: 27,
  READDIR: 28,
  RELEASEDIR: 29,
  FSYNCDIR: 30,
  CREATE: 35,
  INTERRUPT: 36,
  DESTROY: 38,
  BATCH_FORGET: 42,
} as const;

export const ROOT_NODE = 1n;
const HEADER_BYTES = 40;
const REPLY_HEADER_BYTES = 16;
const ATTRIBUTES_BYTES = 88;
const BLOCK_BYTES = 4_096;
const SECTOR_BYTES = 512;

export interface FuseRequest {
  readonly operation: number;
  readonly unique: bigint;
  readonly node: bigint;
  readonly body: Buffer;
}

/** One file or the directory, as GETATTR shows it. */
export interface FuseNode {
  readonly node: bigint;
  readonly isDirectory: boolean;
  readonly sizeBytes: number;
}

export function parseRequest(bytes: Buffer): FuseRequest {
  return {
    operation: bytes.readUInt32LE(4),
    unique: bytes.readBigUInt64LE(8),
    node: bytes.readBigUInt64LE(16),
    body: bytes.subarray(HEADER_BYTES, bytes.readUInt32LE(0)),
  };
}

/** `errno` 0: done. */
export function formatReply(unique: bigint, errno: number, body: Buffer = Buffer.alloc(0)): Buffer {
  const header = Buffer.alloc(REPLY_HEADER_BYTES);
  header.writeUInt32LE(REPLY_HEADER_BYTES + (errno === 0 ? body.length : 0), 0);
  header.writeInt32LE(-errno, 4);
  header.writeBigUInt64LE(unique, 8);
  return errno === 0 ? Buffer.concat([header, body]) : header;
}

export function initReply(): Buffer {
  const reply = Buffer.alloc(64);
  reply.writeUInt32LE(7, 0);
  reply.writeUInt32LE(31, 4);
  reply.writeUInt32LE(BLOCK_BYTES * 16, 8);
  reply.writeUInt16LE(16, 16);
  reply.writeUInt16LE(12, 18);
  reply.writeUInt32LE(BLOCK_BYTES * 16, 20);
  reply.writeUInt32LE(1, 24);
  return reply;
}

function attributes({ node, isDirectory, sizeBytes }: FuseNode): Buffer {
  const bytes = Buffer.alloc(ATTRIBUTES_BYTES);
  bytes.writeBigUInt64LE(node, 0);
  bytes.writeBigUInt64LE(BigInt(sizeBytes), 8);
  bytes.writeBigUInt64LE(BigInt(Math.ceil(sizeBytes / SECTOR_BYTES)), 16);
  bytes.writeUInt32LE(isDirectory ? DIRECTORY_TYPE | 0o755 : FILE_TYPE | 0o644, 60);
  bytes.writeUInt32LE(isDirectory ? 2 : 1, 64);
  bytes.writeUInt32LE(BLOCK_BYTES, 80);
  return bytes;
}

const DIRECTORY_TYPE = 0o040000;
const FILE_TYPE = 0o100000;

/** Valid for no time at all: the kernel asks each time, so that a change of mood is seen at once. */
export function attributesReply(node: FuseNode): Buffer {
  return Buffer.concat([Buffer.alloc(16), attributes(node)]);
}

export function entryReply(node: FuseNode): Buffer {
  const head = Buffer.alloc(40);
  head.writeBigUInt64LE(node.node, 0);
  return Buffer.concat([head, attributes(node)]);
}

export function openReply(): Buffer {
  return Buffer.alloc(16);
}

export function statfsReply(): Buffer {
  const reply = Buffer.alloc(80);
  reply.writeBigUInt64LE(1_024n, 0);
  reply.writeBigUInt64LE(1_000n, 8);
  reply.writeBigUInt64LE(1_000n, 16);
  reply.writeBigUInt64LE(1_024n, 24);
  reply.writeBigUInt64LE(1_000n, 32);
  reply.writeUInt32LE(BLOCK_BYTES, 40);
  reply.writeUInt32LE(255, 44);
  reply.writeUInt32LE(BLOCK_BYTES, 48);
  return reply;
}

/** All entries at offset 0, none behind: so few fit into one answer. `isTerse`: without what they are (DT_UNKNOWN). */
export function directoryReply(
  entries: readonly (readonly [string, FuseNode])[],
  offset: bigint,
  isTerse = false,
): Buffer {
  if (offset > 0n) return Buffer.alloc(0);
  return Buffer.concat(
    entries.map(([name, { node, isDirectory }], index) => {
      const nameBytes = Buffer.from(name);
      const entry = Buffer.alloc(24 + Math.ceil(nameBytes.length / 8) * 8);
      entry.writeBigUInt64LE(node, 0);
      entry.writeBigUInt64LE(BigInt(index + 1), 8);
      entry.writeUInt32LE(nameBytes.length, 16);
      if (!isTerse) entry.writeUInt32LE(isDirectory ? 4 : 8, 20);
      nameBytes.copy(entry, 24);
      return entry;
    }),
  );
}

export function writeReply(bytes: number): Buffer {
  const reply = Buffer.alloc(8);
  reply.writeUInt32LE(bytes, 0);
  return reply;
}

export const { ENOENT, ENOSYS, EIO } = constants.errno;
