import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Config, ConfigFlags } from '../../../agent/config/config.ts';
import { describeProblem } from '../../../agent/config/config-complaint.ts';
import { parseConfig } from '../../../agent/config/parse-config.ts';
import { SETTINGS } from '../../../agent/config/setting.ts';

function read(value: unknown, flags: ConfigFlags = {}): Config {
  const reading = parseConfig(value, flags, 'Worker-1');
  assert(reading.ok, reading.ok ? '' : reading.problems.map(describeProblem).join('\n'));
  return reading.value;
}

function problems(value: unknown, flags: ConfigFlags = {}): readonly string[] {
  const reading = parseConfig(value, flags, 'worker-1');
  return reading.ok ? [] : reading.problems.map(describeProblem);
}

test('an empty file is a complete configuration', () => {
  assert.deepEqual(read(null), read({}));
  assert.deepEqual(read(undefined), {
    root: '/var/lib/mooring',
    socket: '/run/mooring/agent.sock',
    manifests: '/etc/mooring/manifests',
    nodeName: 'worker-1',
    staticDrivers: [],
    drivers: new Map(),
    csiDeadlineMs: 120_000,
    lateEffectMs: 600_000,
    pathDeadlineMs: 30_000,
    operationsPerDriverMax: 16,
    resyncMs: 60_000,
    settleMs: 300,
    vanishedHoldMs: 300_000,
    statisticsIntervalMs: 60_000,
    republishIntervalMs: 90_000,
    backOff: { firstMs: 500, maxMs: 120_000 },
    log: { format: 'auto', level: 'info' },
    allowPrivateMountNamespace: false,
    immutableMountPoints: false,
    seLinux: 'auto',
    metricsListen: undefined,
    hostPathDenied: [],
    tokenSigningKey: undefined,
    tokenIssuer: 'urn:mooring',
    kubeconfig: undefined,
    recordStore: 'journal',
    watchdog: true,
  });
});

test('every key of the file is read', () => {
  const config = read({
    root: '/srv/moor',
    socket: '/run/m.sock',
    manifests: '/etc/m',
    node_name: 'n1',
    static_drivers: [{ socket: '/run/csi.sock', parallel_publish: true }, { socket: '/run/other.sock' }],
    drivers: {
      'hostpath.csi.k8s.io': { operations_max: 3, force_fields: true },
      'a.b': { parallel_publish: true },
    },
    csi_deadline_ms: 1_000,
    late_effect_ms: 1_500,
    path_deadline_ms: 2_000,
    operations_per_driver_max: 2,
    resync_ms: 3_000,
    settle_ms: 0,
    vanished_hold_ms: 1_000,
    statistics_interval_ms: 0,
    republish_interval_ms: 10_000,
    back_off: { first_ms: 10, max_ms: 100 },
    log: { format: 'json', level: 'debug' },
    allow_private_mount_namespace: true,
    immutable_mount_points: true,
    selinux: 'off',
    metrics_listen: '[::1]:9112',
    host_path_denied: ['/etc', '/root'],
    token_signing_key: '/etc/mooring/signing.pem',
    token_issuer: 'https://node.example.com',
    record_store: 'files',
    watchdog: false,
  });
  assert.deepEqual(config, {
    root: '/srv/moor',
    socket: '/run/m.sock',
    manifests: '/etc/m',
    nodeName: 'n1',
    staticDrivers: [
      { socket: '/run/csi.sock', parallelPublish: true },
      { socket: '/run/other.sock', parallelPublish: false },
    ],
    drivers: new Map([
      ['hostpath.csi.k8s.io', { parallelPublish: false, operationsMax: 3, forceFields: true }],
      ['a.b', { parallelPublish: true, operationsMax: undefined, forceFields: false }],
    ]),
    csiDeadlineMs: 1_000,
    lateEffectMs: 1_500,
    pathDeadlineMs: 2_000,
    operationsPerDriverMax: 2,
    resyncMs: 3_000,
    settleMs: 0,
    vanishedHoldMs: 1_000,
    statisticsIntervalMs: 0,
    republishIntervalMs: 10_000,
    backOff: { firstMs: 10, maxMs: 100 },
    log: { format: 'json', level: 'debug' },
    allowPrivateMountNamespace: true,
    immutableMountPoints: true,
    seLinux: 'off',
    metricsListen: { address: '::1', port: 9_112 },
    hostPathDenied: ['/etc', '/root'],
    tokenSigningKey: '/etc/mooring/signing.pem',
    tokenIssuer: 'https://node.example.com',
    kubeconfig: undefined,
    recordStore: 'files',
    watchdog: false,
  });
});

test('the name of a node is in lower case, as a kubelet makes it, wherever it is written', () => {
  assert.equal(read({ node_name: 'Worker-2.Example' }).nodeName, 'worker-2.example');
  // As of %H in systemd/mooring.service.d/cluster.conf.
  assert.equal(read({}, { nodeName: 'Worker-2' }).nodeName, 'worker-2');
});

test('a flag wins over the file, and is named when it is wrong', () => {
  const file = { root: '/a', log: { format: 'json', level: 'warn' } };
  const config = read(file, { root: '/b', logFormat: 'human', allowPrivateMountNamespace: true });
  assert.equal(config.root, '/b');
  assert.deepEqual(config.log, { format: 'human', level: 'warn' });
  assert.equal(config.allowPrivateMountNamespace, true);
  assert.deepEqual(problems(file, { root: 'relative' }), [
    '--root: "relative": must be an absolute path without "." or "..", without double or trailing slash',
  ]);
});

test('a node of a cluster has its tokens from there, not from a key of its own', () => {
  const kubeconfig = '/etc/kubernetes/kubelet.conf';
  assert.equal(read({ kubeconfig }).kubeconfig, kubeconfig);
  assert.equal(read({}, { kubeconfig }).kubeconfig, kubeconfig);
  assert.deepEqual(problems({ kubeconfig, token_signing_key: '/key.pem' }), [
    'token_signing_key: "/key.pem": must be off in a cluster, whose API server issues the tokens (kubeconfig)',
  ]);
  assert.deepEqual(problems({}, { kubeconfig: 'node.conf' }), [
    '--kubeconfig: "node.conf": must be off, or the absolute path of a kubeconfig',
  ]);
});

test('all problems are listed at once, each with key, value and what would be right', () => {
  assert.deepEqual(
    problems({
      root: '/var/lib/../etc',
      scoket: '/run/x',
      node_name: 'A B',
      csi_deadline_ms: '30s',
      resync_ms: 12,
      settle_ms: 0.5,
      watchdog: 'yes',
      back_off: { frist_ms: 1, first_ms: -1 },
      log: { format: 'xml', colour: true },
      static_drivers: [{ sokcet: '/x' }, 'text'],
      drivers: { '../evil': {}, good: { operations_max: 0 } },
      host_path_denied: '/etc',
      quux: 1,
    }),
    [
      'root: "/var/lib/../etc": must be an absolute path without "." or "..", without double or trailing slash',
      'node_name: "A B": must be a DNS name: 1 to 253 of a-z, 0-9, "-" and ".", ' +
        'beginning and ending with a letter or digit',
      'static_drivers[0].socket: is missing',
      'static_drivers[0].sokcet: unknown key; did you mean "socket"?',
      'static_drivers[1]: "text": must be a mapping (key: value)',
      'drivers["../evil"]: "../evil": must be a CSI driver name as the driver reports it: ' +
        '1 to 63 letters, digits, "-" and "."',
      'drivers.good.operations_max: 0: must be a whole number from 1 to 256',
      'csi_deadline_ms: "30s": must be a whole number from 1000 to 3600000 (milliseconds)',
      'resync_ms: 12: must be a whole number from 1000 to 3600000 (milliseconds)',
      'settle_ms: 0.5: must be a whole number from 0 to 60000 (milliseconds)',
      'back_off.first_ms: -1: must be a whole number from 10 to 60000 (milliseconds)',
      'back_off.frist_ms: unknown key; did you mean "first_ms"?',
      'log.format: "xml": must be one of auto, json, human',
      'log.colour: unknown key; known here: format, level',
      'host_path_denied: "/etc": must be a list',
      'watchdog: "yes": must be true or false',
      'scoket: unknown key; did you mean "socket"?',
      `quux: unknown key; known here: ${[...new Set(SETTINGS.map(({ key }) => key.split('.')[0]))].join(', ')}`,
    ],
  );
});

test('what is not a mapping is one clear problem', () => {
  for (const value of ['text', 7, [1], true]) {
    assert.deepEqual(problems(value), [
      `configuration: ${JSON.stringify(value)}: must be a mapping (key: value)`,
    ]);
  }
});

test('values that contradict each other are found', () => {
  assert.deepEqual(
    problems({ back_off: { first_ms: 1_000, max_ms: 500 }, root: '/r', socket: '/r/pods/s' }),
    [
      'back_off.first_ms: 1000: must not be above back_off.max_ms (500)',
      'socket: "/r/pods/s": must not be in /r/pods, which the agent manages',
    ],
  );
  assert.deepEqual(problems({ root: '/' }), ['root: "/": must be a directory of its own']);
  assert.deepEqual(problems({ static_drivers: [{ socket: '/s' }, { socket: '/s' }] }), [
    'static_drivers[1].socket: "/s": must be listed once',
  ]);
});

test('statistics may be off, and are else between a second and an hour', () => {
  const message = 'must be 0 (never), or a whole number from 1000 to 3600000 (milliseconds)';
  for (const value of [1, 999, 3_600_001, 1_000.5])
    assert.deepEqual(problems({ statistics_interval_ms: value }), [
      `statistics_interval_ms: ${value}: ${message}`,
    ]);
  for (const value of [0, 1_000, 3_600_000])
    assert.equal(read({ statistics_interval_ms: value }).statisticsIntervalMs, value);
  assert.match(problems({ republish_interval_ms: 0 }).join(), /from 10000 to 3600000/);
});

test('metrics are served over TCP only where an address and a port say so', () => {
  assert.deepEqual(read({ metrics_listen: '127.0.0.1:9112' }).metricsListen, {
    address: '127.0.0.1',
    port: 9_112,
  });
  assert.equal(read({ metrics_listen: 'off' }).metricsListen, undefined);
  for (const value of ['9112', ':9112', 'localhost:9112', '127.0.0.1:0', '127.0.0.1:65536', '::1:9112', ''])
    assert.match(problems({ metrics_listen: value }).join(), /must be off, or address:port/);
});

test('what is allowed and dangerous is warned about', () => {
  const warnings = (value: unknown): readonly string[] => {
    const reading = parseConfig(value, {}, 'n');
    assert(reading.ok);
    return reading.warnings;
  };
  assert.match(
    warnings({ drivers: { 'a.b': { force_fields: true } } }).join(),
    /a\.b\.force_fields.*drop data/,
  );
  assert.match(warnings({ metrics_listen: '0.0.0.0:9112' }).join(), /whoever can reach port 9112/);
  assert.deepEqual(warnings({ metrics_listen: '127.0.0.1:9112', drivers: { 'a.b': {} } }), []);
});

test('a socket path the kernel would cut is refused', () => {
  const long = `/${'s'.repeat(107)}`;
  assert.match(problems({ socket: long }).join(), /at most 107 bytes long/);
  assert.equal(read({ socket: long.slice(0, 107) }).socket.length, 107);
});

test('A-014: a long root is allowed but warned about', () => {
  const reading = parseConfig({ root: '/var/lib/mooring-of-a-long-name' }, {}, 'n');
  assert(reading.ok);
  assert.match(reading.warnings.join(), /31 bytes/);
  const usual = parseConfig({}, {}, 'n');
  assert(usual.ok && usual.warnings.length === 0);
});

test('control characters of a bad value do not reach the terminal', () => {
  assert.match(problems({ node_name: 'a\u001b[31m\u202e' }).join(), /"a\\u001b\[31m\\u202e"/);
  assert.match(problems({ '\u001b]0;x': 1 }).join(), /^\\u001b\]0;x: unknown key/);
});

test('a prototype is not a setting', () => {
  assert.deepEqual(read(JSON.parse('{"__proto__": {"root": "/x"}, "constructor": 1}')), read({}));
  assert.match(problems({ toString: 1 }).join(), /toString: unknown key/);
});

test('the table of settings says exactly what the parser takes', () => {
  const config = read({});
  const file: Record<string, unknown> = {};
  for (const { key, default: text } of SETTINGS) {
    if (key === 'node_name') continue;
    const value = /^[[{]|^\d|^true$|^false$/.test(text) ? JSON.parse(text) : text;
    const [outer = '', inner] = key.split('.');
    if (inner === undefined) file[outer] = value;
    else file[outer] = { ...(file[outer] as object | undefined), [inner]: value };
  }
  assert.deepEqual(read(file), config);
  const known = problems({ zzzzzzzzzzz: 1 }).join().split('known here: ')[1]?.split(', ');
  assert.deepEqual(known, [...new Set(SETTINGS.map(({ key }) => key.split('.')[0]))]);
});
