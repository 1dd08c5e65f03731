/** A manifest that could never be read since the start: what a pod names and may have may be in it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { desire } from '../../../agent/resolve/desired-state-populator.ts';
import { createManifestSource } from '../../../agent/source/manifests/manifest-source.ts';
import { assembleDesiredObjects, createAssembly } from '../../../agent/source/desired-objects.ts';
import { createMergedSources } from '../../../agent/source/merged-sources.ts';
import { createSlices, wholly } from '../../../mount/process/slices.ts';
import { blockedIn, only, STAND_ALONE } from '../desired.ts';
import { DirectoryHost } from '../directory-host.ts';
import { IN_PROCESS_PARSER } from '../in-process-parser.ts';
import { configMapYaml, partsOf, path, podYaml, secretYaml } from '../manifests.ts';
import { type MemorySource, memorySource } from '../memory-source.ts';
import { EMPTY_NODE } from '../one-source.ts';

const WEB = podYaml('web', { data: 'secret: {secretName: login, optional: true}' });
const SETTLED_MS = 2_000;

/** The manifests of a machine as an agent finds them when it starts, and what it wants then. */
async function node(
  prepare: (host: DirectoryHost) => void,
  {
    others = [],
    isNew = false,
  }: { readonly others?: readonly MemorySource[]; readonly isNew?: boolean } = {},
) {
  const host = new DirectoryHost();
  prepare(host);
  const directory = path('/etc/manifests');
  const manifests = createManifestSource({ host, directory, parser: IN_PROCESS_PARSER, settleMs: 300 });
  const slices = createSlices({ clock: host });
  const merged = createMergedSources({ host, sources: [manifests, ...others], slices });
  const started = merged.start(EMPTY_NODE);
  await host.advance(SETTLED_MS);
  await started;
  const options = { ...STAND_ALONE, hasMounted: () => !isNew };
  return { host, desired: () => wholly(desire(merged.current(), options)) };
}

const BROKEN = 'kind: Secret\n  metadata: {\n';
const HELD = /^reference-missing: Secret default\/login may be in login.yaml, of which nothing could be read/;

function isFree(state: ReturnType<Awaited<ReturnType<typeof node>>['desired']>): boolean {
  const { blocked, publications } = only(state.volumes.values());
  return blocked === undefined && only(publications.values()).files !== undefined;
}

test('an optional secret may be in a manifest that could never be read: who has the volume keeps it', async () => {
  const ways: Readonly<Record<string, (host: DirectoryHost) => void>> = {
    broken: (host) => host.write('login.yaml', BROKEN),
    'too large': (host) => host.write('login.yaml', `# ${'x'.repeat(4 * 2 ** 20)}\n`),
    unreadable: (host) => {
      host.write('login.yaml', secretYaml('login', { password: 'x' }));
      host.makeUnreadable('login.yaml', 'input-output', 'EIO');
    },
  };
  for (const [way, prepare] of Object.entries(ways)) {
    const { host, desired } = await node((one) => {
      one.write('web.yaml', WEB);
      prepare(one);
    });
    assert.match(blockedIn(desired()), HELD, way);
    host.write('login.yaml', secretYaml('login', { password: 'x' }));
    await host.hint();
    await host.advance(SETTLED_MS);
    assert.ok(isFree(desired()), way);
  }
});

test('a new pod comes up without it: what has nothing to do with it may be broken for ever', async () => {
  const prepare = (host: DirectoryHost): void => {
    host.write('web.yaml', WEB);
    host.write('login.yaml', BROKEN);
  };
  assert.ok(isFree((await node(prepare, { isNew: true })).desired()));
});

test('it counts as absent when the manifest is gone, or says that it has none', async () => {
  for (const mend of [
    (host: DirectoryHost) => host.remove('login.yaml'),
    (host: DirectoryHost) => host.write('login.yaml', configMapYaml('other', { a: 'b' })),
  ]) {
    const { host, desired } = await node((one) => {
      one.write('web.yaml', WEB);
      one.write('login.yaml', BROKEN);
    });
    assert.match(blockedIn(desired()), HELD);
    mend(host);
    await host.hint();
    await host.advance(SETTLED_MS);
    assert.ok(isFree(desired()));
  }
});

test('what a manifest said that is broken now is known, and the server of a cluster knows what it has', async () => {
  const known = await node((host) => {
    host.write('web.yaml', WEB);
    host.write('login.yaml', configMapYaml('other', { a: 'b' }));
  });
  known.host.write('login.yaml', BROKEN);
  await known.host.hint();
  await known.host.advance(SETTLED_MS);
  assert.ok(isFree(known.desired()));
  const beside = await node((host) => host.write('login.yaml', BROKEN), {
    others: [memorySource('server', { pods: WEB })],
  });
  assert.ok(isFree(beside.desired()));
});

test('a manifest that is left out, for there are too many objects, may have it as well', () => {
  const parts = partsOf({ 'a.yaml': WEB, 'login.yaml': secretYaml('login', { password: 'x' }) });
  const stateOf = (objectsMax: number, isNew: boolean) => {
    const reading = { name: 'manifests', complete: true, parts };
    const wish = wholly(assembleDesiredObjects([reading], createAssembly(0, objectsMax)));
    return wholly(desire(wish, { ...STAND_ALONE, hasMounted: () => !isNew }));
  };
  assert.match(
    blockedIn(stateOf(1, false)),
    /^reference-missing: Secret default\/login may be in login.yaml, which is left out/,
  );
  assert.ok(isFree(stateOf(1, true)));
  assert.ok(isFree(stateOf(2, false)));
});
