/** What a container has mounted below the files that the wish brings: read-only, so its places have to be there. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withMountPoints } from '../../../agent/resolve/mount-points.ts';
import { createContentPlugin } from '../../../plugins/pod/content.ts';
import type { PublicationCall } from '../../../plugins/plugin.ts';
import { Sensitive } from '../../../plugins/secret/sensitive.ts';
import { accept } from '../../plugins/accept.ts';
import { callOf, content, freshHost, layout, mounterOf } from '../../plugins/local-world.ts';
import type { MemoryHost } from '../../plugins/memory-host.ts';
import { desired, only } from '../desired.ts';
import { configMapYaml } from '../manifests.ts';

const CALL = callOf(content('config-map'), {});
const VOLUME = layout.target(CALL.spec, CALL.publication);

interface Place {
  readonly volume: string;
  readonly path: string;
  readonly subPath?: string;
}

const OWN: Place = { volume: 'v', path: '/etc/app' };

const MOUNT = {
  volume: 'v',
  path: '/etc/app',
  readOnly: false,
  recursiveReadOnly: 'Disabled',
  propagation: 'None',
  part: undefined,
} as const;

/** A pod that mounts the ConfigMap `c` and other volumes at these places. */
function podYaml(...places: readonly Place[]): string {
  const mounts = places.map(
    ({ volume, path, subPath }) =>
      `    - {name: ${volume}, mountPath: ${path}${subPath === undefined ? '' : `, subPath: ${subPath}`}}\n`,
  );
  return `apiVersion: v1
kind: Pod
metadata: {name: web, uid: uid-web}
spec:
  containers:
  - name: main
    volumeMounts:
${mounts.join('')}  volumes:
  - {name: v, configMap: {name: c}}
  - {name: w, emptyDir: {}}
  - {name: x, emptyDir: {}}
`;
}

/** What the wish has for the volume `v`. */
function wished(yaml: string, data: Readonly<Record<string, string>>) {
  const { volumes } = desired(yaml, configMapYaml('c', data));
  const volume = only([...volumes.values()].filter(({ spec }) => spec.kind === 'config-map'));
  return only(volume.publications.values());
}

function callWith(yaml: string, data: Readonly<Record<string, string>>): PublicationCall {
  return { ...CALL, files: wished(yaml, data).files };
}

async function publish(host: MemoryHost, call: PublicationCall): Promise<void> {
  accept(await createContentPlugin('config-map', host, layout, mounterOf(host)).publish(call));
}

async function isUpToDate(host: MemoryHost, call: PublicationCall): Promise<boolean | undefined> {
  return createContentPlugin('config-map', host, layout, mounterOf(host)).isUpToDate?.(call);
}

/** The directories of the volume's root that are no generation, with their modes. */
function directories(host: MemoryHost): readonly string[] {
  return host
    .describe(VOLUME)
    .filter((line) => line.includes(' directory ') && !line.includes('..GENERATION'))
    .map((line) => line.slice(VOLUME.length));
}

test('a volume that is mounted below a configMap has its place there, as with the kubelet', async () => {
  const host = freshHost();
  const yaml = podYaml(
    OWN,
    { volume: 'w', path: '/etc/app/cache' },
    { volume: 'x', path: '/etc/app/run/deep/' },
    { volume: 'x', path: '/etc/application' },
  );
  const call = callWith(yaml, { 'app.conf': 'one' });
  await publish(host, call);
  assert.deepEqual(directories(host), [
    '/cache directory 755',
    '/run directory 755',
    '/run/deep directory 755',
  ]);
  assert.equal(host.read(`${VOLUME}/app.conf`), 'one');
  assert.equal(await isUpToDate(host, call), true);
});

test('these places stay when the configMap changes, whatever its keys are called by then', async () => {
  const host = freshHost();
  const yaml = podYaml(OWN, { volume: 'w', path: '/etc/app/cache' });
  await publish(host, callWith(yaml, { 'app.conf': 'one' }));
  await publish(host, callWith(yaml, { 'app.conf': 'two', cache: 'a key of that name' }));
  assert.deepEqual(directories(host), ['/cache directory 755']);
  assert.equal(host.read(`${VOLUME}/app.conf`), 'two');
});

test('a key that comes later and that a place hides is told of the volume, and all others are brought in', async () => {
  const host = freshHost();
  const yaml = podYaml(OWN, { volume: 'w', path: '/etc/app/run/deep' });
  const plugin = createContentPlugin('config-map', host, layout, mounterOf(host));
  const publishAgain = (data: Readonly<Record<string, string>>) =>
    plugin.publish({ ...callWith(yaml, data), refresh: true });
  await publish(host, callWith(yaml, { 'app.conf': 'one' }));
  const refused = await publishAgain({ 'app.conf': 'two', run: 'a key of that name' });
  assert.ok(!refused.ok, 'it says nothing');
  const { code, effect, message } = refused.failure;
  assert.deepEqual([code, effect], ['spec-invalid', 'none']);
  assert.match(message, /^"run" is hidden: containers have something mounted in a directory of that name/);
  assert.equal(host.read(`${VOLUME}/app.conf`), 'two');
  assert.deepEqual(directories(host), ['/run directory 755', '/run/deep directory 755']);
  accept(await publishAgain({ 'app.conf': 'three' }));
  assert.equal(host.read(`${VOLUME}/app.conf`), 'three');
});

test('a place is made when the containers come to mount there, and the key of that name is gone', async () => {
  const host = freshHost();
  const before = callWith(podYaml(OWN), { cache: 'a key of that name' });
  const yaml = podYaml(OWN, { volume: 'w', path: '/etc/app/cache' });
  const after = callWith(yaml, {});
  await publish(host, before);
  await publish(host, after);
  assert.deepEqual(directories(host), ['/cache directory 755']);
  const [one, other] = [podYaml(OWN), yaml].map((text) => wished(text, {}).generation);
  assert.notEqual(one, other, 'the change is a change of the volume');
});

test('a key has its place before what is mounted over it, and no place leads out of the volume', async () => {
  const host = freshHost();
  const yaml = podYaml(
    OWN,
    { volume: 'w', path: '/etc/app/app.conf', subPath: 'mine.conf' },
    { volume: 'x', path: '/etc/app/../../other' },
    { volume: 'x', path: '/etc/app/..data' },
  );
  await publish(host, callWith(yaml, { 'app.conf': 'one' }));
  assert.deepEqual(directories(host), []);
  assert.equal(host.read(`${VOLUME}/app.conf`), 'one');
});

test('each of many mounts of a volume is not compared with all the others of its container', () => {
  const count = { reads: 0 };
  const numbers = Array.from({ length: 300 }, (_, index) => index);
  const mounts = numbers.map((index) => ({
    ...MOUNT,
    get path() {
      count.reads += 1;
      return `/etc/app/${index}`;
    },
  }));
  const container = {
    name: 'main',
    kind: 'container',
    devices: [],
    variables: [],
    seLinux: undefined,
  } as const;
  const pod = { containers: [{ ...container, mounts: [...mounts, MOUNT] }] };
  const { files } = withMountPoints({ files: new Sensitive(new Map()), generation: 'one' }, pod, 'v');
  assert.equal(files?.reveal().size, 300);
  assert.ok(count.reads <= 4 * 300, `${count.reads} reads`);
});
