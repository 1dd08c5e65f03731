/** Local volumes on block devices, on the real kernel: formatted only where one is blank, grown, never lost. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  openSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loopDevicesBelow, mountsBelow, readMounts } from '../demo/machine.ts';
import { until } from '../until.ts';
import { mooring } from './mooring-command.ts';
import { inPrivateNamespace } from './namespace.ts';
import { onRealNode, podWith, type RealNode } from './real-node.ts';

const skip = inPrivateNamespace();
const MEBIBYTE = 1024 * 1024;

function volumeYaml(name: string, device: string, fsType = '', mode = 'Filesystem'): string {
  return `apiVersion: v1
kind: PersistentVolume
metadata: { name: ${name} }
spec:
  accessModes: [ReadWriteOnce]
  volumeMode: ${mode}
  claimRef: { namespace: default, name: ${name} }
  local: { path: ${device}${fsType === '' ? '' : `, fsType: ${fsType}`} }
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: ${name}, namespace: default }
spec: { volumeName: ${name}, accessModes: [ReadWriteOnce], volumeMode: ${mode} }
`;
}

interface Disk {
  readonly file: string;
  readonly device: string;
}

/** A disk of this machine for as long as the test takes, a sparse file behind a loop device. */
async function withDisk(
  node: RealNode,
  bytes: number,
  tell: (disk: Disk) => Promise<void>,
  name = 'disk',
): Promise<void> {
  const file = join(node.scratch, `${name}.img`);
  writeFileSync(file, '');
  truncateSync(file, bytes);
  const device = execFileSync('losetup', ['--find', '--show', file], { encoding: 'utf8' }).trim();
  try {
    await tell({ file, device });
  } finally {
    execFileSync('losetup', ['--detach', device]);
  }
}

const digest = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

const stageOf = ({ root }: RealNode, name: string): string =>
  join(root, 'plugins/kubernetes.io/local-volume/mounts', name);

const placeOf = ({ root }: RealNode, name: string): string =>
  join(root, 'pods/web-1/volumes/kubernetes.io~local-volume', name);

const mountAt = (target: string) => readMounts().entries.find((one) => one.target === target);

async function gone(node: RealNode): Promise<void> {
  node.remove('web');
  await node.untilEmpty();
}

const refusal = (node: RealNode, what: string): Promise<unknown> =>
  node.until(what, ({ pods }) => pods[0]?.volumes[0]?.reason?.code === 'device-content');

test('a blank disk is formatted once, mounted for its pods, proven after kill -9, and grows', { skip }, () =>
  onRealNode((node) =>
    withDisk(node, 64 * MEBIBYTE, async ({ file, device }) => {
      node.put('disk', volumeYaml('data', device));
      node.put('web', podWith('data'));
      await node.startAgent();
      await node.untilMounted(1);
      const [stage, place] = [stageOf(node, 'data'), placeOf(node, 'data')];
      assert.deepEqual([mountAt(stage)?.fsType, mountAt(stage)?.source], ['ext4', device]);
      assert.equal(mountAt(place)?.device, mountAt(stage)?.device);
      writeFileSync(join(place, 'note'), 'precious');

      await node.untilRecorded();
      const mounts = [mountAt(stage)?.mountId, mountAt(place)?.mountId];
      await node.killAgent();
      await node.startAgent();
      await node.untilMounted(1);
      assert.deepEqual([mountAt(stage)?.mountId, mountAt(place)?.mountId], mounts, 'nothing was made anew');

      await gone(node);
      assert.deepEqual([mountAt(stage), mountAt(place)], [undefined, undefined]);
      truncateSync(file, 96 * MEBIBYTE);
      execFileSync('losetup', ['--set-capacity', device]);
      node.put('web', podWith('data'));
      await node.untilMounted(1);
      assert.equal(readFileSync(join(place, 'note'), 'utf8'), 'precious');
      const { blocks, bsize } = statfsSync(place);
      assert.ok(blocks * bsize > 70 * MEBIBYTE, `${blocks * bsize} bytes`);
      await gone(node);
    }),
  ),
);

test('each file system that a PersistentVolume may name is made, and found again', { skip }, () =>
  onRealNode(async (node) => {
    await node.startAgent();
    for (const fsType of ['xfs', 'btrfs'] as const) {
      await withDisk(
        node,
        320 * MEBIBYTE,
        async ({ device }) => {
          for (const text of ['first', 'second']) {
            node.put('disk', volumeYaml(fsType, device, fsType));
            node.put('web', podWith(fsType));
            await node.untilMounted(1);
            assert.equal(mountAt(placeOf(node, fsType))?.fsType, fsType);
            const note = join(placeOf(node, fsType), 'note');
            if (text === 'second') assert.equal(readFileSync(note, 'utf8'), 'first');
            writeFileSync(note, text);
            await gone(node);
          }
        },
        fsType,
      );
    }
  }),
);

test(
  'INV-9: not one byte is written to a disk that is not blank, whatever is on it and wherever',
  { skip },
  () =>
    onRealNode((node) =>
      withDisk(node, 160 * MEBIBYTE, async ({ file, device }) => {
        const write = (bytes: Buffer, at: number): void => {
          const descriptor = openSync(file, 'r+');
          writeSync(descriptor, bytes, 0, bytes.length, at);
          closeSync(descriptor);
        };
        await node.startAgent();
        node.put('disk', volumeYaml('data', device, 'ext4'));
        const cases: readonly (readonly [string, () => void, () => void])[] = [
          [
            'LUKS',
            () => write(Buffer.from('LUKS\xba\xbe\x00\x01', 'latin1'), 0),
            () => write(Buffer.alloc(8), 0),
          ],
          [
            'a byte in front',
            () => write(Buffer.from('x'), 3 * MEBIBYTE),
            () => write(Buffer.alloc(1), 3 * MEBIBYTE),
          ],
          [
            'a superblock copy',
            () => write(Buffer.from('x'), 128 * MEBIBYTE),
            () => write(Buffer.alloc(1), 128 * MEBIBYTE),
          ],
          [
            'the last byte',
            () => write(Buffer.from('x'), 160 * MEBIBYTE - 1),
            () => write(Buffer.alloc(1), 160 * MEBIBYTE - 1),
          ],
          ['another file system', () => execFileSync('mkfs.ext2', ['-q', file]), () => {}],
        ];
        for (const [what, plant, clear] of cases) {
          plant();
          const before = digest(file);
          node.put('web', podWith('data'));
          await refusal(node, `${what} to be told of`);
          await gone(node);
          assert.equal(digest(file), before, what);
          clear();
        }
      }),
    ),
);

/** The shortest that the configuration allows. */
const RESYNC_MS = 10_000;

test('a pod has the disk itself, held open over kill -9 and put right; nobody looks into it', { skip }, () =>
  onRealNode((node) =>
    withDisk(node, 4 * MEBIBYTE, async ({ file, device }) => {
      node.settings.resync_ms = RESYNC_MS;
      const before = digest(file);
      node.put('disk', volumeYaml('raw', device, '', 'Block'));
      node.put('web', podWith('raw', 'Block'));
      await node.startAgent();
      await node.untilMounted(1);
      const link = join(node.root, 'pods/web-1/volumeDevices/kubernetes.io~local-volume/raw');
      const held = join(node.root, 'plugins/kubernetes.io~local-volume/volumeDevices/raw/web-1');
      assert.equal(readlinkSync(link), held);
      assert.ok(statSync(link).isBlockDevice());
      assert.equal(statSync(link).rdev, statSync(device).rdev, 'the device of the PersistentVolume');
      assert.equal(digest(file), before, 'nothing was written');
      const printed = await mooring(node, 'mounts', 'web', '-o', 'podman');
      assert.equal(printed.stdout.trim(), `--device=${link}:/dev/data:rwm`);

      await node.untilRecorded();
      const made = { mounts: mountsBelow(node.root), holds: loopDevicesBelow(node.root) };
      assert.equal(made.holds.length, 1);
      await node.killAgent();
      await node.startAgent();
      await node.untilMounted(1);
      assert.deepEqual({ mounts: mountsBelow(node.root), holds: loopDevicesBelow(node.root) }, made);

      rmSync(link);
      await until('the next resync to bring the link back', () => {
        return lstatSync(link, { throwIfNoEntry: false })?.isSymbolicLink() === true;
      });
      await gone(node);
      assert.deepEqual([...mountsBelow(node.root), ...loopDevicesBelow(node.root)], []);
      assert.equal(digest(file), before);

      const readOnly = podWith('raw', 'Block').replace('claimName: raw', 'claimName: raw, readOnly: true');
      node.put('web', readOnly);
      await node.untilMounted(1);
      const asked = await mooring(node, 'mounts', 'web', '-o', 'podman');
      assert.equal(asked.stdout.trim(), `--device=${link}:/dev/data:rm`);
      await gone(node);
    }),
  ),
);

test(
  'INV-9: what a pod has written to a disk that it has as it is outlives another volume of it',
  { skip },
  () =>
    onRealNode((node) =>
      withDisk(node, 160 * MEBIBYTE, async ({ file, device }) => {
        node.put('raw', volumeYaml('raw', device, '', 'Block'));
        node.put('holder', podWith('raw', 'Block').replaceAll('web', 'holder'));
        await node.startAgent();
        await node.untilMounted(1);
        const written = openSync(
          join(node.root, 'pods/holder-1/volumeDevices/kubernetes.io~local-volume/raw'),
          'r+',
        );
        writeSync(written, Buffer.from('precious'), 0, 8, 80 * MEBIBYTE);
        closeSync(written);
        execFileSync('sync', [device]);
        const before = digest(file);
        node.put('disk', volumeYaml('data', device));
        node.put('web', podWith('data'));
        const { pods } = await node.until('the second volume to be refused, or made', (status) => {
          const [data] = status.pods.find(({ name }) => name === 'web')?.volumes ?? [];
          return data?.state === 'mounted' || data?.reason?.code === 'device-in-use';
        });
        assert.equal(digest(file), before, 'nothing was written');
        assert.equal(pods.length, 2);
        for (const name of ['web', 'holder']) node.remove(name);
        await node.untilEmpty();
      }),
    ),
);

test(
  'DR-11: of a disk that has become read-only no new pod is served, and it is set up anew for it',
  { skip },
  () =>
    onRealNode((node) =>
      withDisk(node, 64 * MEBIBYTE, async ({ device }) => {
        node.put('disk', volumeYaml('data', device));
        node.put('web', podWith('data'));
        await node.startAgent();
        await node.untilMounted(1);
        // As an error leaves it: the file system alone is read-only, and no mount that pods have.
        const second = join(node.scratch, 'second');
        mkdirSync(second);
        execFileSync('mount', [device, second]);
        execFileSync('mount', ['-o', 'remount,ro', second]);
        execFileSync('umount', [second]);
        node.put('next', podWith('data').replaceAll('web', 'next'));
        const { pods } = await node.until('the next pod to be refused, or served', (status) => {
          const [data] = status.pods.find(({ name }) => name === 'next')?.volumes ?? [];
          return data?.state === 'mounted' || data?.reason?.code === 'file-system-dead';
        });
        assert.deepEqual(
          pods.map(({ name, volumes }) => [name, volumes[0]?.state]),
          [
            ['next', 'blocked'],
            ['web', 'mounted'],
          ],
        );
        node.remove('web');
        await node.untilMounted(1);
        writeFileSync(join(placeOf(node, 'data').replace('web-1', 'next-1'), 'note'), 'precious');
        node.remove('next');
        await node.untilEmpty();
      }),
    ),
);

test('a disk that is write-protected is neither checked nor grown, and is served for reading', { skip }, () =>
  onRealNode(async (node) => {
    await node.startAgent();
    for (const [fsType, bytes] of [
      ['ext4', 64 * MEBIBYTE],
      ['xfs', 320 * MEBIBYTE],
    ] as const)
      await withDisk(
        node,
        bytes,
        async ({ file }) => {
          execFileSync(`mkfs.${fsType}`, ['-q', file]);
          // There is room to grow to.
          truncateSync(file, bytes + 64 * MEBIBYTE);
          const attach = ['--read-only', '--find', '--show', file];
          const device = execFileSync('losetup', attach, { encoding: 'utf8' }).trim();
          try {
            node.put('disk', volumeYaml(fsType, device));
            node.put('web', podWith(fsType));
            const { pods } = await node.until(`${fsType} to be served, or refused`, (status) => {
              const [data] = status.pods[0]?.volumes ?? [];
              return data?.state === 'mounted' || data?.reason?.code === 'mount-failed';
            });
            assert.equal(pods[0]?.volumes[0]?.state, 'mounted', fsType);
            assert.ok(mountAt(placeOf(node, fsType))?.options.includes('ro'));
            await gone(node);
          } finally {
            execFileSync('losetup', ['--detach', device]);
          }
        },
        fsType,
      );
  }),
);

test(
  'a file system that cannot become as large as its disk is served as it is, and that is told',
  { skip },
  () =>
    onRealNode(async (node) => {
      await node.startAgent();
      // Only there a file may be as large as no ext4 without 64bit can be, and takes no room.
      const large = join(node.scratch, 'large');
      mkdirSync(large);
      execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', large]);
      try {
        const file = join(large, 'disk.img');
        writeFileSync(file, '');
        truncateSync(file, 64 * MEBIBYTE);
        execFileSync('mkfs.ext4', ['-q', '-b', '4096', '-O', '^64bit', file]);
        truncateSync(file, 17 * 1024 * 1024 * MEBIBYTE);
        const device = execFileSync('losetup', ['--find', '--show', file], { encoding: 'utf8' }).trim();
        try {
          node.put('disk', volumeYaml('data', device));
          node.put('web', podWith('data'));
          const { pods } = await node.until('it to be served, or refused', (status) => {
            const [data] = status.pods[0]?.volumes ?? [];
            return data?.state === 'mounted' || data?.reason?.code === 'mount-failed';
          });
          assert.equal(pods[0]?.volumes[0]?.state, 'mounted');
          writeFileSync(join(placeOf(node, 'data'), 'note'), 'there is room');
          assert.match(node.log(), /"event":"file system not grown"/);
          assert.match(node.log(), /too large to be expressed in 32 bits/);
          await gone(node);
        } finally {
          execFileSync('losetup', ['--detach', device]);
        }
      } finally {
        execFileSync('umount', [large]);
      }
    }),
);
