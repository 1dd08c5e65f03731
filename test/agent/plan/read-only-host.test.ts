import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readOnlyHost } from '../../../agent/plan/read-only-host.ts';
import { readOnlyTransport } from '../../../agent/plan/read-only-transport.ts';
import type { ApiRequest, ApiTransport } from '../../../kubernetes/api/api-transport.ts';
import { done, fail, ok } from '../../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../../mount/host.ts';
import { transition } from '../../../mount/transition.ts';

const own = '/root/mooring' as AbsolutePath;

/** Every call of the port; one that is new in it has to be sorted here, and in the read-only host. */
const CALLS: Readonly<Record<Exclude<keyof Host, 'bootId'>, 'look' | 'change' | 'asked'>> = {
  ...{ nowMs: 'look', wallMs: 'look', timer: 'look', random: 'look', watch: 'look' },
  ...{ inspect: 'look', inspectWay: 'look', identifyDirectory: 'look', readFile: 'look', readLink: 'look' },
  ...{ listDirectory: 'look', readDirectoryFiles: 'look', readMountTable: 'look', mountIdOf: 'look' },
  ...{ mountPlaceOf: 'look', lookUpMount: 'look', probeFileSystem: 'look', findHolders: 'look' },
  ...{ findPlaceHolders: 'look', deviceOf: 'look', findDeviceUsers: 'look', measureUsage: 'look' },
  ...{ heldPaths: 'look', identifyDisk: 'look' },
  ...{ readDeviceContent: 'look', proveBlank: 'look', readIscsiSessions: 'look' },
  ...{ makeDirectory: 'change', removeEmptyDirectory: 'change', removeTree: 'change', writeFile: 'change' },
  ...{ overwriteFile: 'change', synchronise: 'change', removeFile: 'change', rename: 'change' },
  ...{ makeLink: 'change', mount: 'change', bindPart: 'change', unmount: 'change', holdDevice: 'change' },
  ...{ releaseDevice: 'change', changeOwnership: 'change', makeFileSystem: 'change' },
  ...{ checkFileSystem: 'change', growFileSystem: 'change', notify: 'change' },
  ...{ logInToIscsi: 'change', scanIscsi: 'change', logOutOfIscsi: 'change', removeMultipath: 'change' },
  ...{ perform: 'asked', call: 'asked' },
};

function recording(): { readonly host: Host; readonly called: string[] } {
  const called: string[] = [];
  const host = new Proxy({} as Host, {
    get: (_, name) => (): unknown => {
      called.push(String(name));
      return Promise.resolve(name === 'inspect' ? ok({ kind: 'absent' }) : done);
    },
  });
  return { host, called };
}

test('of the machine everything can be looked at, and nothing is changed', async () => {
  for (const [name, kind] of Object.entries(CALLS)) {
    if (kind === 'asked') continue;
    const { host, called } = recording();
    const call = readOnlyHost(host, own)[name as 'inspect'] as (path: string) => Promise<unknown>;
    await call('/root/pods/x');
    const reached = called.filter((one) => one === name);
    assert.deepEqual(reached, kind === 'look' ? [name] : [], name);
  }
});

test('what an agent writes below its own directory counts as written; anything else is refused', async () => {
  const { host, called } = recording();
  const machine = readOnlyHost(host, own);
  const content = new Uint8Array();
  const write = (path: string) =>
    machine.writeFile(path as AbsolutePath, content, { mode: 0, durable: true });
  assert.ok((await write('/root/mooring/records/a')).ok);
  assert.ok(!(await write('/root/mooring-2/a')).ok);
  assert.ok(!(await write('/root/pods/a')).ok);
  assert.ok(!called.includes('writeFile'));
});

test('a directory of its own that is missing is an empty one, and no other is', async () => {
  const missing = fail({ code: 'path-missing', message: 'no', effect: 'none' });
  const host = { listDirectory: async () => missing } as unknown as Host;
  const { listDirectory } = readOnlyHost(host, own);
  assert.deepEqual(await listDirectory('/root/mooring/records' as AbsolutePath, 1), ok([]));
  assert.deepEqual(await listDirectory('/root/pods' as AbsolutePath, 1), missing);
});

test('a root that an agent would make is a directory already, and no other path is', async () => {
  const { host } = recording();
  const { inspect } = readOnlyHost(host, '/root' as AbsolutePath);
  assert.deepEqual(await inspect('/root' as AbsolutePath), ok({ kind: 'directory' }));
  assert.deepEqual(await inspect('/root/pods' as AbsolutePath), ok({ kind: 'absent' }));
});

test('transitions that only look are done, and drivers are asked only what they are', async () => {
  const { host, called } = recording();
  const machine = readOnlyHost(host, own);
  const path = '/root/pods' as AbsolutePath;
  // biome-ignore lint/correctness/useYield: nothing of it is run
  const program = function* () {
    return done;
  };
  assert.ok(!(await machine.perform(transition('changes', program), { path })).ok);
  assert.deepEqual(called, []);
  assert.ok((await machine.perform(transition('looks', program, { changesTheWorld: false }), { path })).ok);
  assert.deepEqual(called, ['perform']);
  const told: string[] = [];
  const ask = async (name: string): Promise<string> => {
    const method = { path: name, requestSerialize: Buffer.from, responseDeserialize: () => told.push(name) };
    const socket = { path, inode: 1 };
    const call = { socket, method, request: '', deadlineMs: 1 };
    return (await machine.call(call)).kind;
  };
  assert.equal(await ask('/csi.v1.Node/NodeUnpublishVolume'), 'broken');
  assert.equal(await ask('/csi.v1.Controller/ControllerUnpublishVolume'), 'broken');
  assert.equal(await ask('/pluginregistration.Registration/NotifyRegistrationStatus'), 'ok');
  assert.deepEqual(called, ['perform']);
  await ask('/csi.v1.Node/NodeGetInfo');
  assert.deepEqual(called, ['perform', 'call']);
});

test('in the cluster everything is read, tokens are asked for, and nothing is written', async () => {
  const sent: string[] = [];
  const transport = {
    server: 'https://a',
    request: async ({ method, path }: ApiRequest) => {
      sent.push(`${method} ${path}`);
      return ok({});
    },
  } as unknown as ApiTransport;
  const { request } = readOnlyTransport(transport);
  const ask = async (method: ApiRequest['method'], path: string): Promise<boolean> =>
    (await request({ method, path, answerBytesMax: 1, deadlineMs: 1 })).ok;
  assert.ok(await ask('GET', '/api/v1/nodes/a'));
  assert.ok(await ask('POST', '/api/v1/namespaces/default/serviceaccounts/a/token'));
  for (const method of ['PATCH', 'POST', 'DELETE'] as const)
    assert.ok(!(await ask(method, '/api/v1/nodes/a/status')));
  assert.equal(sent.length, 2);
});
