/**
 * Containers and services that systemd starts on what is prepared for them: by the units of docs/CONTAINERS.md, with
 * nothing changed but what a reader changes, and through a boot, a kill -9 of the agent and a reboot.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { documents } from '../interop/manifests.ts';
import { claimed, targetOf, type VmNode } from './vm-node.ts';

const GUIDE = new URL('../../docs/CONTAINERS.md', import.meta.url);
const IMAGE = 'localhost/small:1';
const UNITS = '/etc/systemd/system';
const QUADLETS = '/etc/containers/systemd';
/** The pod of the `.container`, that of the `.kube`, that of a service without containers. */
const PODS = ['web', 'shop', 'plain'] as const;
type PodName = (typeof PODS)[number];

/** A line for each of its starts, and then it goes on writing. */
const INSIDE =
  'cat /all/key /settings/mode >> /data/seen; echo start >> /part/starts; ' +
  'while true; do echo x >> /data/beats; sleep 1; done';

const placeOf = (name: PodName): string => targetOf(`${name}-1`, name);

function podYaml(name: PodName): string {
  return `apiVersion: v1
kind: Pod
metadata: { name: ${name}, namespace: default, uid: ${name}-1 }
spec:
  containers:
    - name: main
      image: ${IMAGE}
      imagePullPolicy: Never
      command: [/bin/sh, -c, "${INSIDE}"]
      volumeMounts:
        - { name: data, mountPath: /data }
        - { name: data, mountPath: /part, subPath: part/deeper }
        - { name: all, mountPath: /all, readOnly: true }
        - { name: settings, mountPath: /settings }
  volumes:
    - { name: data, ${claimed(name)} }
    - { name: settings, configMap: { name: settings } }
    - { name: all, projected: { sources: [{ secret: { name: keys } }, { configMap: { name: settings } }] } }
`;
}

const OBJECTS = `apiVersion: v1
kind: Secret
metadata: { name: keys, namespace: default }
stringData: { key: opens }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: settings, namespace: default }
data: { mode: fast }
`;

/** What the guide shows in a block after the line that has the words; its waits are for machines that are faster. */
function shown(words: string): string {
  const [, after = ''] = readFileSync(GUIDE, 'utf8').split(words, 2);
  const [, block = ''] = /\n```\n([\s\S]*?)\n```\n/.exec(after) ?? [];
  assert.match(block, /--timeout 80s/, `the guide shows ${words}`);
  return block.replaceAll('--timeout 80s', '--timeout 14m');
}

/** Each has to be there, so that the guide does not go another way than this test. */
function changed(unit: string, changes: Readonly<Record<string, string>>): string {
  let text = unit;
  for (const [line, now] of Object.entries(changes)) {
    const lines = text.split('\n');
    const first = lines.findIndex((one) => one.startsWith(line));
    assert.ok(first >= 0, `the guide has a line ${line}`);
    const rest = lines.filter(
      (one, index) => index !== first && !(one.startsWith(line) && line.endsWith('=')),
    );
    text = [...rest.slice(0, first), now, ...rest.slice(first)].join('\n');
  }
  return `${text}\n`;
}

/** Emulated, they take longer than on any machine of a reader. */
const TIMES = 'TimeoutStartSec=900\nTimeoutStopSec=900';
const PATIENT = { 'TimeoutStartSec=': TIMES };

async function layUnits(node: VmNode): Promise<void> {
  const write = (path: string, text: string): Promise<string> =>
    node.must(`install -d "$(dirname ${path})" && cat > ${path} <<'UNIT'\n${text}UNIT\n`);
  const words = await node.must('mooring mounts web -o podman');
  const mounts = words
    .trimEnd()
    .split('\n')
    .map((word) => word.replace(/^--mount=/, 'Mount='));
  const container = changed(shown('`web.container`'), {
    'Image=': `Image=${IMAGE}\nNetwork=none\nExec=/bin/sh -c "${INSIDE}"`,
    'Mount=': mounts.join('\n'),
    ...PATIENT,
  });
  await write(`${QUADLETS}/web.container`, container);
  const kube = changed(shown('`web.kube`').replaceAll('web', 'shop'), {
    'Yaml=': 'Yaml=/run/shop.json\nNetwork=none',
    ...PATIENT,
  });
  await write(`${QUADLETS}/shop.kube`, kube);
  const binds = await node.must('mooring mounts plain -o systemd');
  const dropIn = changed(shown('`BindReadOnlyPaths=` lines').replaceAll('web', 'plain'), {
    'BindPaths=': `${binds.trimEnd()}\n${TIMES}`,
  });
  await write(`${UNITS}/plain.service.d/mooring.conf`, dropIn);
  const service = `[Service]\nExecStart=/bin/sh -c "${INSIDE}"\n[Install]\nWantedBy=multi-user.target\n`;
  await write(`${UNITS}/plain.service`, service);
  await node.must('systemctl daemon-reload && systemctl enable plain');
}

async function makeImage(node: VmNode): Promise<void> {
  await node.must(`set -e; cd /root; mkdir -p image/bin; cp /bin/busybox image/bin
for tool in sh cat sleep; do ln -s busybox image/bin/$tool; done
tar -C image -c . | podman import - ${IMAGE}`);
}

async function beats(node: VmNode, name: PodName): Promise<void> {
  const count = `cat ${placeOf(name)}/beats 2> /dev/null | wc -l`;
  const before = Number(await node.must(count));
  await node.until(`test $(${count}) -gt ${before} && echo more`, /more/);
}

async function startsAre(node: VmNode, count: number): Promise<void> {
  for (const name of PODS) {
    await beats(node, name);
    const place = placeOf(name);
    assert.equal(await node.must(`cat ${place}/part/deeper/starts`), 'start\n'.repeat(count), name);
    assert.equal(await node.must(`cat ${place}/seen`), 'opensfast'.repeat(count), name);
  }
}

export async function tellOfUnits(node: VmNode): Promise<void> {
  await makeImage(node);
  await node.put('objects', OBJECTS);
  for (const name of PODS) {
    await node.put(name, documents(await node.create(name, '16Mi', { fsType: 'ext4' }), podYaml(name)));
  }
  await node.untilReady(PODS.length);
  await layUnits(node);
  await node.must(`systemctl start ${PODS.join(' ')}`);
  await startsAre(node, 1);
  assert.equal(await node.must('podman ps --format "{{.Names}}" | grep -c -e ^web$ -e ^shop-main$'), '2\n');

  await node.must('systemctl kill -s KILL --kill-whom=main mooring');
  for (const name of PODS) await beats(node, name);
  await node.untilReady(PODS.length);
  await startsAre(node, 1);

  await node.reboot();
  await node.until(`systemctl is-active ${PODS.join(' ')} | grep -c -x active`, /^3$/m);
  await node.untilReady(PODS.length);
  await startsAre(node, 2);

  // Not wanted any more, and in use: nothing is taken from them before they end.
  await node.remove(...PODS);
  const held = new Set<string>();
  await node.untilStatus('each to be held by its containers', ({ pods }) => {
    for (const { name, volumes } of pods)
      if (volumes.some(({ reason }) => reason?.code === 'volume-held')) held.add(name);
    return PODS.every((name) => held.has(name));
  });
  for (const name of PODS) await beats(node, name);
  // The release of each waits until nothing of it is left.
  await node.must(`systemctl stop ${PODS.join(' ')}`);
  const { pods } = await node.status();
  assert.deepEqual(
    pods.map(({ name }) => name),
    [],
    'released when the units had stopped',
  );
  assert.equal(await node.must('podman ps --all --quiet'), '');
  await node.must(
    `systemctl disable plain; rm -r ${QUADLETS} ${UNITS}/plain.service*; systemctl daemon-reload`,
  );
  await node.remove('objects');
}
