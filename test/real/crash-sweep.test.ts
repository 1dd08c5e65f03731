/**
 * The real agent, the real kernel and a real driver process: kill -9 at effect n, for every n until a run completes,
 * start again, and compare with the end state of a run that was never killed. INV-17, RS-01, RS-06, RS-07, RS-10. An
 * oracle before the driver judges the order, the overlap and the fields of every call of all these agents.
 *
 * `npm run sweep` kills within every effect and on every boundary between two; `npm test` at every SWEEP_STRIDE-th one.
 * With SWEEP_MINUTES that is done in PASSES rounds, each all over the way with its own effects, and none begins after
 * those minutes; what a slow machine leaves out is told.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { attachedLoopDevices } from '../machine/loop-devices.ts';
import type { CrashPoint } from './crashing-host.ts';
import { inPrivateProcesses } from './namespace.ts';
import { IQN, layIscsi, PASSWORD, type StandInIscsi, type StandInTarget } from './stand-in-iscsi.ts';
import { layNfs, NFS_PATH, NFS_SERVER, type StandInNfs } from './stand-in-nfs.ts';
import { createSweepBench, type SweepBench } from './sweep-bench.ts';
import { snapshot } from './world-snapshot.ts';

/** An agent that starts does fewer by itself. */
const STARTING_EFFECTS = 6;
const STRIDE = Number(process.env['SWEEP_STRIDE'] ?? '9');
const MINUTES = process.env['SWEEP_MINUTES'];
const PASSES = MINUTES === undefined ? 1 : 6;
const POINTS: readonly CrashPoint[] = ['before', 'during', 'after'];
/** Before an effect is after the one that came before it: of each boundary one side is enough. */
const STRIDES: Readonly<Record<CrashPoint, number>> = {
  before: 2 * STRIDE,
  during: STRIDE,
  after: 2 * STRIDE,
};
const skip = inPrivateProcesses();

const podYaml = ({ address }: StandInTarget): string => `
apiVersion: v1
kind: Secret
metadata: { name: keys, namespace: default }
stringData: { user: anna, password: canary-7f3a }
---
apiVersion: v1
kind: Secret
metadata: { name: chap, namespace: default }
stringData: { node.session.auth.username: anna, node.session.auth.password: ${PASSWORD} }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: settings, namespace: default }
data: { color: blue, nested: deep }
---
apiVersion: v1
kind: Pod
metadata: { name: web, namespace: default, uid: web-1, annotations: { note: kept } }
spec:
  securityContext: { fsGroup: 2000 }
  containers:
    - name: main
      image: none
      resources: { limits: { hugepages-2Mi: 4Mi } }
      volumeDevices:
        - { name: raw, devicePath: /dev/raw }
        - { name: whole, devicePath: /dev/whole }
      volumeMounts:
        - { name: data, mountPath: /data }
        - { name: keys, mountPath: /keys }
        - { name: settings, mountPath: /settings }
        - { name: fields, mountPath: /fields }
        - { name: all, mountPath: /all }
        - { name: scratch, mountPath: /scratch }
        - { name: memory, mountPath: /memory }
        - { name: host, mountPath: /host }
        - { name: files, mountPath: /files }
        - { name: pages, mountPath: /pages }
        - { name: disk, mountPath: /disk }
        - { name: device, mountPath: /device }
        - { name: remote, mountPath: /remote }
        - { name: share, mountPath: /share }
        - { name: settings, mountPath: /color, subPath: a/color }
        - { name: scratch, mountPath: /part, subPathExpr: $(POD)/deeper }
        - { name: disk, mountPath: /disk-part, subPath: part }
      env: [{ name: POD, valueFrom: { fieldRef: { fieldPath: metadata.name } } }]
  volumes:
    - { name: raw, persistentVolumeClaim: { claimName: raw } }
    - { name: data, persistentVolumeClaim: { claimName: data } }
    - { name: keys, secret: { secretName: keys } }
    - name: settings
      configMap: { name: settings, items: [{ key: color, path: a/color }, { key: nested, path: b }] }
    - name: fields
      downwardAPI:
        items:
          - { path: note, fieldRef: { fieldPath: "metadata.annotations['note']" } }
          - { path: limit/cpu, resourceFieldRef: { containerName: main, resource: limits.cpu, divisor: 1m } }
    - name: all
      projected:
        defaultMode: 0440
        sources:
          - secret: { name: keys, items: [{ key: password, path: keys/password, mode: 0400 }] }
          - configMap: { name: settings }
          - configMap: { name: absent, optional: true }
          - downwardAPI: { items: [{ path: labels, fieldRef: { fieldPath: metadata.labels } }] }
    - { name: scratch, emptyDir: {} }
    - { name: memory, emptyDir: { medium: Memory, sizeLimit: 1Mi } }
    - { name: host, hostPath: { path: /etc, type: Directory } }
    - { name: pages, emptyDir: { medium: HugePages } }
    - { name: disk, persistentVolumeClaim: { claimName: disk, readOnly: false } }
    - { name: device, persistentVolumeClaim: { claimName: device } }
    - { name: whole, persistentVolumeClaim: { claimName: whole } }
    - name: remote
      iscsi: { targetPortal: ${address}, iqn: "${IQN}", lun: 1, chapAuthSession: true, secretRef: { name: chap } }
    - { name: share, nfs: { server: ${NFS_SERVER}, path: ${NFS_PATH} } }
    - { name: files, image: { reference: quay.io/example/data:1 } }
`;

const GROWING_POD = `
apiVersion: v1
kind: Pod
metadata: { name: web, namespace: default, uid: web-1 }
spec:
  containers:
    - name: main
      image: none
      volumeDevices: [{ name: raw, devicePath: /dev/raw }]
      volumeMounts: [{ name: data, mountPath: /data }]
  volumes:
    - { name: raw, persistentVolumeClaim: { claimName: raw } }
    - { name: data, persistentVolumeClaim: { claimName: data } }
`;

/** What of the machine a bench has for itself. */
interface Machine {
  readonly disks: Disks;
  readonly target: StandInTarget;
}

let iscsi: StandInIscsi | undefined;
let nfs: StandInNfs | undefined;
let targets = 0;

before(() => {
  if (skip !== false) return;
  iscsi = layIscsi();
  nfs = layNfs();
  writeFileSync(join(nfs.share, 'note'), 'shared', { mode: 0o644 });
});

after(() => {
  nfs?.remove();
  iscsi?.remove();
});

/** What stays of an empty root: directories that belong to no volume. */
const SKELETON =
  /^directory \/(pods|plugins\/kubernetes\.io(\/csi(\/[a-z.]+|\/volumeDevices(\/(staging|publish))?)?)?) 0 750$/;
const LOCAL_SKELETON =
  /^directory \/plugins\/kubernetes\.io(\/local-volume(\/mounts)?|~local-volume(\/volumeDevices)?) 0 750$/;
const ISCSI_SKELETON = /^directory \/plugins\/kubernetes\.io\/iscsi(\/iface-default)? 0 750$/;
const SKELETONS = [SKELETON, LOCAL_SKELETON, ISCSI_SKELETON];
const BYTES = 32 * 1024 * 1024;
/** xfs, because a mounted ext4 grows only with CAP_SYS_RESOURCE; and none is smaller. */
const GROWING_BYTES = 320 * 1024 * 1024;
/** There are few effects in growing. */
const GROWING_STRIDE_MAX = 3;
const SECTOR_BYTES = 512;
const STEP_BYTES = 4 * 1024 * 1024;
const FILE = 'pods/web-1/volumes/kubernetes.io~csi/data/mount';
const LOCAL = 'pods/web-1/volumes/kubernetes.io~local-volume/disk/part';
const REMOTE = 'pods/web-1/volumes/kubernetes.io~iscsi/remote';
const SHARE = 'pods/web-1/volumes/kubernetes.io~nfs/share';
const DEVICES = 'pods/web-1/volumeDevices';
const DEVICE = `${DEVICES}/kubernetes.io~csi/raw`;
const WHOLE = `${DEVICES}/kubernetes.io~local-volume/whole`;

function difference(now: readonly string[], expected: readonly string[]): string[] {
  return [
    ...now.filter((line) => !expected.includes(line)).map((line) => `+ ${line}`),
    ...expected.filter((line) => !now.includes(line)).map((line) => `- ${line}`),
  ];
}

function see({ root, driver }: SweepBench, target: StandInTarget): readonly string[] {
  const noted = join(root, 'mooring/sessions');
  const notes = existsSync(noted) ? readdirSync(noted) : [];
  return [
    ...snapshot(root, driver.pool),
    ...[target.session, target.record].filter((path) => existsSync(path)),
    ...notes.map((name) => `note ${name}`),
  ];
}

async function settle(bench: SweepBench, what: string): Promise<void> {
  const run = await bench.run('before', 0);
  assert.equal(run.ended, 'settled', `${what}: the next agent did not settle`);
}

/** A file system and a device of the driver, so large, and what is of the machine. */
async function createVolumes(bench: SweepBench, bytes: number, fsType: 'ext4' | 'xfs', disks: Disks) {
  const { driver, volumes } = bench;
  const data = await driver.create('data', String(bytes), { fsType });
  const raw = await driver.create('raw', String(bytes), { mode: 'Block' });
  const yaml = `${data.yaml}---\n${raw.yaml}---\n${localYaml(bench, disks)}`;
  volumes(yaml);
  return { yaml, handles: [data.handle, raw.handle] };
}

/** A directory beside the state root, and disks, which an administrator gives to pods. */
function localYaml({ root }: SweepBench, { device, whole }: Disks): string {
  const path = join(root, '../disk');
  mkdirSync(join(path, 'part'), { recursive: true });
  writeFileSync(join(path, 'part/note'), 'precious');
  const volume = (name: string, local: string, more: string, mode = 'Filesystem'): string => `apiVersion: v1
kind: PersistentVolume
metadata: { name: ${name} }
spec:
  accessModes: [ReadWriteOnce]
  volumeMode: ${mode}
  ${more}
  claimRef: { namespace: default, name: ${name} }
  local: { path: ${local} }
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{ key: kubernetes.io/hostname, operator: In, values: [sweep-node] }]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: ${name}, namespace: default }
spec: { volumeName: ${name}, accessModes: [ReadWriteOnce], volumeMode: ${mode} }
`;
  return [
    volume('disk', path, 'mountOptions: [noatime, noexec]'),
    volume('device', device, 'mountOptions: [noatime]'),
    volume('whole', whole, '', 'Block'),
  ].join('---\n');
}

/** Disks of the machine, blank at first: one that is formatted and mounted, and one that a pod is given as it is. */
interface Disks {
  readonly device: string;
  readonly whole: string;
}

function attachDisk({ root }: SweepBench, name: string): string {
  const file = join(root, '..', `${name}.img`);
  writeFileSync(file, '');
  truncateSync(file, BYTES);
  return execFileSync('losetup', ['--find', '--show', file], { encoding: 'utf8' }).trim();
}

/** What must still be there after any number of crashes. */
function leaveTraces({ root }: SweepBench): void {
  writeFileSync(join(root, FILE, 'note'), 'precious', { mode: 0o600 });
  if (existsSync(join(root, REMOTE))) writeFileSync(join(root, REMOTE, 'note'), 'remote', { mode: 0o600 });
  for (const [path, text] of [
    [DEVICE, 'precious'],
    [WHOLE, 'whole'],
  ] as const) {
    if (!existsSync(join(root, path))) continue;
    const device = openSync(join(root, path), 'r+');
    writeSync(device, text);
    closeSync(device);
  }
}

/** The next time the volume is published, its group has something to do. */
function takeFromGroup({ root }: SweepBench): void {
  chownSync(join(root, FILE, 'note'), 0, 0);
  chmodSync(join(root, FILE, 'note'), 0o600);
}

/** In a bench of its own, whose driver is judged at the end; nothing of it stays, whatever happens. */
async function inBench(
  label: string,
  steadyWish: boolean,
  tell: (bench: SweepBench, machine: Machine) => Promise<void>,
): Promise<void> {
  const bench = await createSweepBench(label, steadyWish);
  const disks = { device: attachDisk(bench, 'device'), whole: attachDisk(bench, 'whole') };
  targets += 1;
  const target = iscsi?.target(targets) ?? assert.fail('no stand-in of iscsiadm was laid');
  try {
    await tell(bench, { disks, target });
    await bench.stop();
    bench.wish(undefined);
    await settle(bench, 'at the end');
    assert.deepEqual(
      see(bench, target).filter((line) => !SKELETONS.some((one) => one.test(line))),
      [],
      'left behind',
    );
    bench.driver.assertJudged();
  } finally {
    await bench.stop();
    bench.wish(undefined);
    await bench.run('before', 0).finally(() => {
      execFileSync('losetup', ['--detach', ...Object.values(disks)]);
      return bench.close();
    });
  }
}

describe('kill -9 at every effect', { concurrency: 4, skip }, () => {
  for (const point of POINTS) {
    test(`killed ${point} any effect, the next agent reaches the same world (INV-17)`, (context) =>
      inBench(point, true, async (bench, { disks, target }) => {
        const pod = podYaml(target);
        await createVolumes(bench, BYTES, 'ext4', disks);
        bench.wish(pod);
        await settle(bench, 'a run that nobody kills');
        leaveTraces(bench);
        bench.wish(undefined);
        await settle(bench, 'a run down that nobody kills');
        const down = see(bench, target);
        bench.wish(pod);
        await settle(bench, 'a second run up');
        const up = see(bench, target);
        assert.equal(up.filter((line) => line.startsWith('mount ')).length, 20, 'all mounts are there');
        assert.ok(up.some((line) => line.startsWith(`file /${FILE}/note 2000 660 "precious"`)));
        assert.ok(up.some((line) => line.startsWith(`file /${LOCAL}/note 2000 664 "precious"`)));
        assert.ok(up.some((line) => /^file .*\/\.\.GENERATION\/note 2000 \d+ "kept"/.test(line)));
        assert.ok(up.some((line) => line.startsWith(`file /${REMOTE}/note 2000 660 "remote"`)));
        assert.ok(up.some((line) => line.startsWith(`mount /${SHARE} tmpfs`)));
        assert.ok(up.some((line) => line.startsWith(`file /${SHARE}/note 0 644 "shared"`)));
        assert.equal(
          up.filter((line) => /^(\/sys|\/etc|note )/.test(line)).length,
          3,
          'logged in, and noted',
        );
        assert.deepEqual(
          down.filter((line) => /^(\/sys|\/etc|note )/.test(line)),
          [],
          'logged out',
        );
        assert.equal(up.filter((line) => /^device .*"precious"$/.test(line)).length, 2);
        assert.equal(up.filter((line) => /^device .*"whole"$/.test(line)).length, 1);
        assert.ok(up.some((line) => line.startsWith(`link /${WHOLE} `)));
        assert.equal(up.filter((line) => line.startsWith('loop ')).length, 4, 'two of them hold the devices');
        const { kills, passes } = await sweep(bench, point, { pod, target, up, down });
        context.diagnostic(
          `${kills} kills ${point} an effect, 0 differences; ${bench.driver.oracle.calls} calls judged`,
        );
        if (passes < PASSES)
          context.diagnostic(`*** ${PASSES - passes} OF ${PASSES} PASSES LEFT OUT: ${MINUTES} minutes ***`);
      }));
  }

  test('killed anywhere while volumes grow, the next agent finishes it, and nothing else changes', (context) =>
    inBench('grow', false, async (bench, { disks, target }) => {
      const { yaml, handles } = await createVolumes(bench, GROWING_BYTES, 'xfs', disks);
      bench.wish(GROWING_POD);
      await settle(bench, 'a run that nobody kills');
      leaveTraces(bench);
      const up = see(bench, target);
      const grown = (line: string, bytes: number): string =>
        line.replaceAll(`"${GROWING_BYTES}"`, `"${bytes}"`);
      let kills = 0;
      let bytes = GROWING_BYTES;
      for (const point of POINTS) {
        for (let effect = 1, over = false; !over; effect += Math.min(STRIDE, GROWING_STRIDE_MAX)) {
          bytes += STEP_BYTES;
          const before = fileSystemBytes(bench);
          for (const handle of handles) await bench.driver.grow(handle, bytes);
          bench.volumes(grown(yaml, bytes));
          const run = await bench.run(point, effect);
          over = run.ended === 'settled';
          if (!over) kills += 1;
          const what = `killed ${point} effect ${effect} (${run.effects.at(-1)})`;
          await settle(bench, what);
          const expected = up.map((line) => grown(line, bytes));
          assert.deepEqual(difference(see(bench, target), expected), [], what);
          assert.equal(fileSystemBytes(bench) - before, STEP_BYTES, what);
          assert.equal(deviceBytes(bench), bytes, what);
        }
      }
      context.diagnostic(`${kills} kills while growing, 0 differences`);
    }));
});

function fileSystemBytes({ root }: SweepBench): number {
  const { blocks, bsize } = statfsSync(join(root, FILE));
  return blocks * bsize;
}

/** As the kernel has it, of the device that the pod's link leads to. */
function deviceBytes({ root }: SweepBench): number {
  const { rdev } = statSync(join(root, DEVICE));
  const sectors = readFileSync(`/sys/dev/block/${rdev >> 8}:${rdev & 0xff}/size`, 'utf8');
  return Number(sectors) * SECTOR_BYTES;
}

async function runTo(bench: SweepBench, manifest: string | undefined, point: CrashPoint, effect: number) {
  if (effect > STARTING_EFFECTS) return bench.change(manifest, point, effect);
  await bench.stop();
  bench.wish(manifest);
  const run = await bench.run(point, effect);
  // The change after this one needs an agent that goes on.
  if (run.ended === 'settled') await bench.startAndGoOn();
  return run;
}

/** Tests beside this one attach theirs: who has which tells whose fault it was. */
function loopsNow(): string {
  return attachedLoopDevices()
    .map(({ name, backingFile }) => `${name} ${backingFile}`)
    .join('\n');
}

interface World {
  readonly pod: string;
  readonly target: StandInTarget;
  readonly up: readonly string[];
  readonly down: readonly string[];
}

/**
 * Down and up in turns, each time killed at effect n, until a run on either way is over before its n-th effect. The
 * agent that is killed at the first effects has just started, and the wish changed before; later ones have brought
 * about the world of the kill before, and the wish changes under them.
 */
async function sweep(
  bench: SweepBench,
  point: CrashPoint,
  world: World,
): Promise<{ readonly kills: number; readonly passes: number }> {
  const stride = STRIDES[point];
  const lateMs = performance.now() + Number(MINUTES ?? 0) * 60_000;
  /** Before which effect a run on that way was over. */
  const ends = new Map<Kill['way'], number>();
  let kills = 0;
  let passes = 0;
  const isOver = (effect: number): boolean => ends.size === 2 && effect >= Math.max(...ends.values());
  do {
    for (let effect = 1 + passes * stride; !isOver(effect); effect += PASSES * stride) {
      for (const way of ['down', 'up'] as const) {
        if (await isKilledAt(bench, { point, effect, way }, world)) kills += 1;
        else ends.set(way, Math.min(effect, ends.get(way) ?? effect));
      }
    }
    passes += 1;
  } while (passes < PASSES && performance.now() < lateMs);
  return { kills, passes };
}

interface Kill {
  readonly point: CrashPoint;
  readonly effect: number;
  readonly way: 'down' | 'up';
}

/** Then the next agent has made the world what it is to be; false: the run was over before. */
async function isKilledAt(bench: SweepBench, { point, effect, way }: Kill, world: World): Promise<boolean> {
  const run = await runTo(bench, way === 'up' ? world.pod : undefined, point, effect);
  const what = `killed ${point} effect ${effect} (${run.effects.at(-1)}) on the way ${way}`;
  const isKilled = run.ended !== 'settled';
  if (isKilled) await bench.startAndGoOn();
  const other = difference(see(bench, world.target), world[way]);
  assert.deepEqual(other, [], other.length === 0 ? what : `${what}\n${loopsNow()}`);
  if (way === 'up') takeFromGroup(bench);
  return isKilled;
}
