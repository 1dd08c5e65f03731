import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { POOL_BOUNDS } from '../../mount/agent-side/broker-pool-options.ts';
import { NODE_FLAGS } from '../../mount/agent-side/broker-process.ts';
import { createHostBrokers, WAITING_TOOLS_MAX } from '../../mount/agent-side/host-brokers.ts';
import { DEADLINES_MS } from '../../mount/agent-side/host-deadlines.ts';
import { ABANDONED_MAX } from '../../mount/agent-side/tool-broker.ts';
import { EXIT_CODES } from '../../agent/config/exit-code.ts';
import { DEFAULT_MANIFESTS, DEFAULT_ROOT, DEFAULT_SOCKET } from '../../agent/config/setting.ts';

const FOLDER = fileURLToPath(new URL('../../systemd/', import.meta.url));
const UNITS = readdirSync(FOLDER).filter((name) => name.endsWith('.service'));

interface Directive {
  readonly name: string;
  readonly value: string;
}

function directivesOf(unit: string): readonly Directive[] {
  const text = readFileSync(join(FOLDER, unit), 'utf8').replaceAll('\\\n', ' ');
  return text
    .split('\n')
    .filter((line) => /^[A-Z]/.test(line))
    .map((line) => {
      const at = line.indexOf('=');
      return { name: line.slice(0, at), value: line.slice(at + 1).trim() };
    });
}

function settingOf(unit: string, name: string): string | undefined {
  return directivesOf(unit).find((one) => one.name === name)?.value;
}

/** systemd.exec(5): each starts a mount namespace, or needs one, or puts the service somewhere else than the host. */
const MOUNT_NAMESPACE = new Set([
  'PrivateMounts',
  'PrivateTmp',
  'PrivateDevices',
  'PrivateIPC',
  'PrivateUsers',
  'PrivateNetwork',
  'PrivatePIDs',
  'PrivateBPF',
  'MountFlags',
  'MountAPIVFS',
  'BindLogSockets',
  'ProtectSystem',
  'ProtectHome',
  'ProtectKernelTunables',
  'ProtectKernelModules',
  'ProtectKernelLogs',
  'ProtectControlGroups',
  'ProtectProc',
  'ProcSubset',
  'ProtectHostname',
  'ReadOnlyPaths',
  'ReadWritePaths',
  'InaccessiblePaths',
  'ExecPaths',
  'NoExecPaths',
  'BindPaths',
  'BindReadOnlyPaths',
  'ReadOnlyDirectories',
  'ReadWriteDirectories',
  'InaccessibleDirectories',
  'TemporaryFileSystem',
  'RootDirectory',
  'RootImage',
  'RootHash',
  'RootVerity',
  'RootEphemeral',
  'MountImages',
  'ExtensionImages',
  'ExtensionDirectories',
  'DynamicUser',
  'NetworkNamespacePath',
  'IPCNamespacePath',
  'JoinsNamespaceOf',
  'LogNamespace',
  'SetCredential',
  'SetCredentialEncrypted',
  'LoadCredential',
  'LoadCredentialEncrypted',
  'ImportCredential',
]);
/** Each breaks something else; the reason is the value. */
const HARMFUL: Readonly<Record<string, string>> = {
  MemoryDenyWriteExecute: 'V8 compiles at run time',
  RestrictSUIDSGID: 'fsGroup sets the setgid bit of directories',
  StateDirectory: 'systemctl clean would delete the volumes, and ownership is repaired recursively',
  CacheDirectory: 'as StateDirectory',
  User: 'mount(8) needs root',
  RestrictFileSystems: 'helpers read what drivers mount',
};

test('there are the units that the documents speak of', () => {
  assert.deepEqual(UNITS.toSorted(), ['mooring-loopfile.service', 'mooring.service']);
});

for (const unit of UNITS) {
  test(`A-004: ${unit}: nothing gives the service a mount namespace of its own`, () => {
    const found = directivesOf(unit).filter(({ name }) => MOUNT_NAMESPACE.has(name));
    assert.deepEqual(found, []);
  });

  test(`A-005: ${unit}: it has CAP_SYS_ADMIN, and nothing breaks what it does`, () => {
    for (const { name } of directivesOf(unit))
      assert.equal(HARMFUL[name], undefined, `${name}: ${HARMFUL[name]}`);
    const filter = settingOf(unit, 'SystemCallFilter') ?? '';
    assert.match(filter, /^~/, 'a list of what is allowed forgets what V8 and mount helpers need');
    assert.doesNotMatch(filter, /@(mount|system-service|pkey|file-system|process)\b/);
    assert.match(settingOf(unit, 'CapabilityBoundingSet') ?? '', /CAP_SYS_ADMIN.*CAP_SYS_PTRACE/);
  });

  test(`${unit}: it is started again, dumps no core, and stopping it kills no helper`, () => {
    assert.equal(settingOf(unit, 'Restart'), 'always');
    assert.equal(settingOf(unit, 'StartLimitIntervalSec'), '0');
    assert.equal(settingOf(unit, 'LimitCORE'), '0');
    assert.equal(settingOf(unit, 'UMask'), '0077');
    assert.equal(settingOf(unit, 'KillMode'), 'process');
    assert.equal(settingOf(unit, 'NoNewPrivileges'), 'yes');
  });
}

test('mooring.service: the agent tells when it is ready and is watched', () => {
  assert.equal(settingOf('mooring.service', 'Type'), 'notify');
  assert.equal(settingOf('mooring.service', 'NotifyAccess'), 'all');
  assert.equal(settingOf('mooring.service', 'WatchdogSec'), '30');
  assert.equal(settingOf('mooring.service', 'TimeoutStopSec'), '10');
});

test('the drop-in for a node of a cluster changes how the agent is called, and what it is started after', () => {
  const drop = 'mooring.service.d/cluster.conf';
  assert.deepEqual([...new Set(directivesOf(drop).map(({ name }) => name))].toSorted(), [
    'After',
    'ExecStart',
    'Wants',
  ]);
  const [none, call = ''] = directivesOf(drop)
    .filter(({ name }) => name === 'ExecStart')
    .map(({ value }) => value);
  assert.equal(none, '', 'a second ExecStart is one too many');
  const own = settingOf('mooring.service', 'ExecStart') ?? '';
  // A kubelet that takes the node over could not remove what is immutable (D-114).
  const common = own.replace(' --immutable-mount-points', '');
  assert.notEqual(common, own);
  assert.match(call, new RegExp(`^${common} --kubeconfig /etc/mooring/kubeconfig --node-name %H$`));
});

test('mooring.service: the kernel has its part of iSCSI before, which the service may not load', () => {
  assert.match(settingOf('mooring.service', 'SystemCallFilter') ?? '', /@module/);
  const [flags = '', command = ''] =
    /^([-+]+)(.*)/.exec(settingOf('mooring.service', 'ExecStartPre') ?? '')?.slice(1) ?? [];
  assert.deepEqual(
    [...flags].sort(),
    ['+', '-'],
    'with all rights, and no machine without it keeps the agent from starting',
  );
  assert.match(command, /command -v iscsiadm .*&& .*modprobe .*iscsi_tcp/);
});

test('mooring.service: the paths are the defaults of the agent', () => {
  const runtime = settingOf('mooring.service', 'RuntimeDirectory') ?? '';
  assert.equal(DEFAULT_SOCKET.startsWith(`/run/${runtime}/`), true);
  const mounts = settingOf('mooring.service', 'RequiresMountsFor')?.split(' ');
  assert.deepEqual(mounts, [DEFAULT_ROOT, DEFAULT_MANIFESTS]);
  const driver = settingOf('mooring-loopfile.service', 'ExecStart') ?? '';
  assert.match(driver, new RegExp(`--registry ${DEFAULT_ROOT}/plugins_registry`));
});

test('INV-28: mooring.service: as many helpers as may hang, of two lives, leave tasks for those that work', () => {
  const tasks = 'import { readdirSync } from "node:fs"; console.log(readdirSync("/proc/self/task").length)';
  const words = [...NODE_FLAGS, '--input-type=module', '-'];
  const tasksOfBroker = Number(spawnSync(process.execPath, words, { input: tasks }).stdout.toString());
  assert.ok(tasksOfBroker > 1, 'a helper has threads');
  const brokers = Object.values(createHostBrokers({ brokerCommand: ['/bin/false'] }, DEADLINES_MS));
  const pools = brokers.filter((one) => 'answers' in Object(one)).length;
  const toolBrokers = brokers.filter((one) => 'runFirst' in Object(one)).length;
  assert.deepEqual([pools, toolBrokers], [4, 3]);
  // A mount(8) and the helper that it starts.
  const tools = 2 * toolBrokers * (ABANDONED_MAX + WAITING_TOOLS_MAX);
  // One more serves the calls, and one the question whether a broker answers.
  const paths = pools * (POOL_BOUNDS.abandonedMax + 2) * tasksOfBroker;
  const most = tools + paths + (toolBrokers + 2) * tasksOfBroker;
  // Killed by its watchdog, or for an upgrade, an agent leaves those of its helpers that hang in the kernel.
  const max = Number(settingOf('mooring.service', 'TasksMax'));
  assert.ok(max >= 2 * most, `TasksMax=${max}, and ${most} tasks of one life may hang`);
});

test('mooring.service: what is stopped before it at a shutdown has its disks and servers until then', () => {
  const after = directivesOf('mooring.service')
    .filter(({ name }) => name === 'After')
    .flatMap(({ value }) => value.split(' '));
  // Sessions of iSCSI are ended by a service that is before remote-fs-pre.target (systemd.special(7)).
  for (const target of ['network.target', 'remote-fs-pre.target']) assert.ok(after.includes(target), target);
});

test('mooring.service: it is not started again when another try changes nothing, but is while a lock is held', () => {
  const codes = (settingOf('mooring.service', 'RestartPreventExitStatus') ?? '').split(' ').map(Number);
  assert.deepEqual(codes, [EXIT_CODES.usage, EXIT_CODES.configuration]);
});

test('systemd itself understands every directive', (t) => {
  if (spawnSync('systemd-analyze', ['--version']).status !== 0) {
    t.diagnostic('SKIPPED: there is no systemd-analyze on this machine');
    t.skip('there is no systemd-analyze on this machine');
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), 'mooring-units-'));
  try {
    for (const unit of UNITS) {
      copyFileSync(join(FOLDER, unit), join(folder, unit));
      // The programs are not installed here; everything else is checked as it stands.
      const text = readFileSync(join(folder, unit), 'utf8');
      writeFileSync(join(folder, unit), text.replaceAll(/^ExecStart=\S+/gm, 'ExecStart=/bin/true'));
      const words = ['verify', '--man=no', join(folder, unit)];
      const { stderr, status } = spawnSync('systemd-analyze', words, { encoding: 'utf8' });
      const complaints = stderr.split('\n').filter((line) => line.includes(unit));
      assert.deepEqual({ complaints, status }, { complaints: [], status: 0 }, stderr);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
