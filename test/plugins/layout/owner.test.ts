/** Path to identity: the inverse of each function of the layout, and never a wrong owner. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type AbsolutePath, below, nameIn, parentOf, parseAbsolutePath } from '../../../mount/host.ts';
import { nameBegun, temporaryPath } from '../../../mount/temporary-file.ts';
import { createLayout, type Layout, sha256Hex } from '../../../plugins/layout/layout.ts';
import type { PlaceInPod } from '../../../plugins/layout/place-in-pod.ts';
import type { PathOwner } from '../../../plugins/layout/path-owner.ts';
import { isBlockVolumeName, isStagingDriver } from '../../../plugins/layout/stage-owner.ts';
import { volumeDataIn } from '../../../plugins/layout/volume-data.ts';
import {
  isDriverName,
  isObjectName,
  parsePodUid,
  type PodUid,
  CSI_PLUGIN,
  podVolumeId,
  type VolumeId,
  type VolumeMode,
} from '../../../plugins/volume.ts';
import { csiSpec } from '../csi-spec.ts';

/** Components of the layout itself, and what looks like them: the names that could be taken for another thing. */
const WORDS = [
  ...[
    'pods',
    'plugins',
    'plugins_registry',
    'mooring',
    'records',
    'source.json',
    'agent.lock',
    'helpers.lock',
  ],
  ...['volumes', 'volumeDevices', 'volume-subpaths', 'kubernetes.io', 'kubernetes.io~csi', 'csi', 'pv'],
  ...['kubernetes.io~empty-dir', 'kubernetes.io~secret', 'globalmount', 'mount', 'staging', 'publish', 'dev'],
  ...['data', 'vol_data.json', '.vol_data.json.tmp', 'ready', 'wrapped_', 'wrapped_a', 'wrapped-a', 'a', '0'],
  ...[
    '.',
    '..',
    '...',
    '',
    '~',
    'a~b',
    ' ',
    '\n',
    '\u202e',
    '\u{1f4a3}',
    '%2f',
    'x'.repeat(255),
    'f'.repeat(64),
  ],
];

const word = fc.constantFrom(...WORDS);
const component = fc
  .oneof(word, fc.string({ unit: 'binary', maxLength: 40 }))
  .filter((text) => text !== '' && text !== '.' && text !== '..' && !/[/\0]/.test(text));
const nameOf = (characters: RegExp, isName: (text: string) => boolean) =>
  fc.oneof(word, fc.stringMatching(characters)).filter(isName);
const pod = nameOf(/^[A-Za-z0-9][-A-Za-z0-9_.]{0,60}$/, (text) => parsePodUid(text) !== undefined).map(
  (uid) => uid as PodUid,
);
const objectName = nameOf(/^[a-z0-9][-a-z0-9.]{0,60}$/, isObjectName);
const blockName = objectName.filter(isBlockVolumeName);
const driver = nameOf(/^[A-Za-z0-9][-A-Za-z0-9.]{0,60}$/, isDriverName).filter(isStagingDriver);
const handle = fc.string({ unit: 'binary', maxLength: 60 });
const root = fc.array(component, { maxLength: 4 }).map((names) => below('/' as AbsolutePath, ...names));

const place = (uid: PodUid, specName: string): PlaceInPod => ({ pod: { uid }, specName });
const csi = (name: string, volumeHandle: string, specName: string, mode: VolumeMode) =>
  csiSpec(name, volumeHandle, specName, { mode });

/** For all roots and identities: each path that `pathsOf` makes has the owner that it is given with. */
function inverts<T>(
  identity: fc.Arbitrary<T>,
  pathsOf: (layout: Layout, identity: T) => readonly (readonly [AbsolutePath, PathOwner])[],
): void {
  fc.assert(
    fc.property(root, identity, (directory, one) => {
      const layout = createLayout(directory);
      for (const [path, owner] of pathsOf(layout, one)) assert.deepEqual(layout.ownerOf(path), owner);
    }),
  );
}

test('a directory that all share is known', () => {
  inverts(fc.constant(undefined), (layout) =>
    (
      [
        [layout.root, 'root'],
        [layout.pods, 'pods'],
        [layout.plugins, 'plugins'],
        [layout.registry, 'registry'],
        [layout.own, 'own'],
        [layout.records, 'records'],
        [layout.stages, 'stages'],
        [layout.blockDevices, 'block-devices'],
        [layout.blockStages, 'block-stages'],
        [layout.blockTargets, 'block-targets'],
      ] as const
    ).map(([path, directory]) => [path, { kind: 'shared', directory }]),
  );
});

test("the agent's own files are known, and what a crash leaves of them", () => {
  const record = component.filter((name) => nameBegun(name) === undefined);
  inverts(record, (layout, name) => {
    const source = { kind: 'own-file', file: 'source' } as const;
    return [
      [layout.record(name), { kind: 'record', name }],
      [below(layout.registry, name), { kind: 'registration', name }],
      [layout.source, source],
      [temporaryPath(layout.source), { kind: 'temporary', of: source }],
      [layout.agentLock, { kind: 'own-file', file: 'agentLock' }],
      [layout.helpersLock, { kind: 'own-file', file: 'helpersLock' }],
    ];
  });
  inverts(fc.stringMatching(/^[0-9a-f]{64}$/), (layout, hash) => {
    const name = `${hash}.json`;
    const of = { kind: 'record', name } as const;
    return [[temporaryPath(layout.record(name)), { kind: 'temporary', of }]];
  });
});

test('the stage of a local device leads back to its volume, and so does the intent to format it', () => {
  const name = nameOf(/^[a-z0-9][-a-z0-9.]{0,40}$/, isObjectName);
  inverts(fc.tuple(name, component), (layout, [specName, inside]) => {
    const intent = { kind: 'format', specName } as const;
    const stage = layout.localStage(specName);
    return [
      [stage, { kind: 'local-stage', specName, part: 'directory' }],
      [below(stage, inside), { kind: 'local-stage', specName, part: 'content' }],
      [layout.localStages, { kind: 'shared', directory: 'local-stages' }],
      [layout.localDevices, { kind: 'shared', directory: 'local-devices' }],
      [layout.localDevice(specName), { kind: 'local-device', specName }],
      [layout.formatIntent(specName), intent],
      [temporaryPath(layout.formatIntent(specName)), { kind: 'temporary', of: intent }],
      [parentOf(layout.formatIntent(specName)), { kind: 'shared', directory: 'formats' }],
    ];
  });
});

test('the device of a local volume is known by what holds it for a pod, and by the link of the pod', () => {
  const name = nameOf(/^[a-z0-9][-a-z0-9.]{0,40}$/, isObjectName);
  inverts(fc.tuple(pod, name), (layout, [uid, specName]) => {
    const of = { kind: 'local-device-publication', pod: uid, specName } as const;
    const { held, link } = layout.localDevicePublication(place(uid, specName));
    const temporary = { kind: 'temporary', of: { ...of, part: 'held' } } as const;
    return [
      [held, { ...of, part: 'held' }],
      [link, { ...of, part: 'link' }],
      [temporaryPath(held), temporary],
      [layout.podFolders(uid).localLinks, { kind: 'pod', pod: uid }],
    ];
  });
});

test('the stage of a disk of iSCSI leads back to it, and so does the note of a session', () => {
  const iface = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_.:-]{0,20}$/);
  const place = fc.record({
    iface,
    portal: fc.constantFrom('10.0.0.1:3260', '[2001:db8::1]:3261', 'store.example:3260'),
    iqn: fc.stringMatching(/^iqn\.2026-11\.[a-z]{1,9}:[a-z0-9:._-]{1,9}$/),
    lun: fc.nat(255),
  });
  const note = fc.stringMatching(/^[0-9a-f]{64}$/);
  inverts(fc.tuple(place, component, note), (layout, [disk, inside, hash]) => {
    const path = layout.iscsiStage(disk);
    const name = nameIn(path);
    const written = { kind: 'session-note', name: hash } as const;
    return [
      [path, { kind: 'iscsi-stage', iface: disk.iface, name, part: 'directory' }],
      [below(path, inside), { kind: 'iscsi-stage', iface: disk.iface, name, part: 'content' }],
      [parentOf(path), { kind: 'shared', directory: 'iscsi-stages' }],
      [layout.iscsiStages, { kind: 'shared', directory: 'iscsi-stages' }],
      [layout.sessionNote(hash), written],
      [temporaryPath(layout.sessionNote(hash)), { kind: 'temporary', of: written }],
      [layout.sessionNotes, { kind: 'shared', directory: 'session-notes' }],
    ];
  });
});

const PLUGINS = [
  CSI_PLUGIN,
  'kubernetes.io/empty-dir',
  'kubernetes.io/secret',
  'kubernetes.io/configmap',
] as const;

test('the directories of a pod are its own', () => {
  inverts(pod, (layout, uid) => {
    const { volumes, volumesOf, devices, links, plugins, markers } = layout.podFolders(uid);
    const kinds = PLUGINS.map(volumesOf);
    return [layout.podDirectory(uid), volumes, ...kinds, devices, links, plugins, markers].map((path) => [
      path,
      { kind: 'pod', pod: uid },
    ]);
  });
});

test('the volume of a pod is known by its directory, by its mount, and by what is in it', () => {
  const kind = fc.constantFrom(...PLUGINS);
  inverts(fc.tuple(pod, component, kind, component), (layout, [uid, specName, one, inside]) => {
    const of = { kind: 'volume', pod: uid, plugin: one, specName } as const;
    const directory = layout.volumeDirectory({ id: podVolumeId(one, uid, 'any') }, place(uid, specName));
    const mount = layout.csiTarget(place(uid, specName));
    const data = { ...of, part: 'data' } as const;
    return [
      [directory, { ...of, part: 'directory' }],
      [mount, { ...of, plugin: CSI_PLUGIN, part: 'mount' }],
      [below(mount, inside), { ...of, plugin: CSI_PLUGIN, part: 'content' }],
      [volumeDataIn(directory), data],
      [temporaryPath(volumeDataIn(directory)), { kind: 'temporary', of: data }],
    ];
  });
});

test('every target, mount point and staging path of a CSI volume leads back to it', () => {
  const spec = fc.tuple(pod, driver, handle, blockName);
  inverts(spec, (layout, [uid, name, volumeHandle, specName]) => {
    const at = place(uid, specName);
    const files = csi(name, volumeHandle, specName, 'Filesystem');
    const block = csi(name, volumeHandle, specName, 'Block');
    const mount = { kind: 'volume', plugin: CSI_PLUGIN, pod: uid, specName, part: 'mount' } as const;
    const raw = { kind: 'block-publication', pod: uid, specName } as const;
    return [
      [layout.target(files, at), mount],
      [layout.driverTarget(files, at), mount],
      [layout.mountPoint(files, at), mount],
      [layout.target(block, at), { ...raw, part: 'link' }],
      [layout.driverTarget(block, at), { ...raw, part: 'published' }],
      [layout.mountPoint(block, at), { ...raw, part: 'held' }],
      [
        layout.stagingPath(files),
        { kind: 'stage', driver: name, handleHash: sha256Hex(volumeHandle), part: 'mount' },
      ],
      [layout.stagingPath(block), { kind: 'block-stage', specName, part: 'directory' }],
    ];
  });
});

test('a staged volume is known by driver and hash of its handle', () => {
  inverts(fc.tuple(driver, handle, component), (layout, [name, volumeHandle, inside]) => {
    const of = { kind: 'stage', driver: name, handleHash: sha256Hex(volumeHandle) } as const;
    const directory = layout.deviceDirectory(name, volumeHandle);
    const data = { ...of, part: 'data' } as const;
    return [
      [layout.driverDirectory(name), { kind: 'driver', driver: name }],
      [directory, { ...of, part: 'directory' }],
      [below(directory, 'globalmount', inside), { ...of, part: 'content' }],
      [volumeDataIn(directory), data],
      [temporaryPath(volumeDataIn(directory)), { kind: 'temporary', of: data }],
    ];
  });
});

test('all places of a block volume are known, those of one pod and those that its pods share', () => {
  inverts(fc.tuple(pod, blockName, component), (layout, [uid, specName, inside]) => {
    const of = { kind: 'block-volume', specName } as const;
    const mine = { kind: 'block-publication', pod: uid, specName } as const;
    const { directory, data, holds, targets, stage } = layout.blockVolume(specName);
    const { published, held, link, data: sameData } = layout.blockPublication(place(uid, specName));
    const file = { ...of, part: 'data' } as const;
    return [
      [directory, { ...of, part: 'directory' }],
      [holds, { ...of, part: 'holds' }],
      [targets, { ...of, part: 'targets' }],
      [data, { ...of, part: 'data-directory' }],
      [sameData, { ...of, part: 'data-directory' }],
      [volumeDataIn(data), file],
      [temporaryPath(volumeDataIn(data)), { kind: 'temporary', of: file }],
      [stage, { kind: 'block-stage', specName, part: 'directory' }],
      [below(stage, inside), { kind: 'block-stage', specName, part: 'content' }],
      [published, { ...mine, part: 'published' }],
      [below(published, inside), { ...mine, part: 'content' }],
      [held, { ...mine, part: 'held' }],
      [temporaryPath(held), { kind: 'temporary', of: { ...mine, part: 'held' } }],
      [link, { ...mine, part: 'link' }],
    ];
  });
});

test('a readiness marker tells its volume, and whether a secret or configMap is meant', () => {
  inverts(fc.tuple(pod, objectName), (layout, [uid, specName]) => {
    const of = { kind: 'marker', pod: uid, specName } as const;
    const at = place(uid, specName);
    const plain = layout.readyDirectory({ kind: 'empty-dir' }, at);
    const ready = { ...of, isWrapped: false, part: 'content' } as const;
    return [
      [plain, { ...of, isWrapped: false, part: 'directory' }],
      [below(plain, 'ready'), ready],
      [temporaryPath(below(plain, 'ready')), { kind: 'temporary', of: ready }],
      [layout.readyDirectory({ kind: 'secret' }, at), { ...of, isWrapped: true, part: 'directory' }],
      [layout.readyDirectory({ kind: 'config-map' }, at), { ...of, isWrapped: true, part: 'directory' }],
    ];
  });
});

test('the place where a kubelet binds a part of a volume is known', () => {
  inverts(fc.tuple(pod, component, component, component), (layout, [uid, specName, container, index]) => [
    [
      below(layout.podDirectory(uid), 'volume-subpaths', specName, container, index),
      { kind: 'subpath', pod: uid, specName, container, index },
    ],
  ]);
  inverts(fc.tuple(pod, component, component, fc.nat()), (layout, [uid, specName, container, index]) => {
    const place = { pod: { uid }, specName };
    return [
      [
        layout.subpath(place, { container, index }),
        { kind: 'subpath', pod: uid, specName, container, index: String(index) },
      ],
      [layout.subpathDirectory(place), { kind: 'pod', pod: uid }],
      [layout.podFolders(uid).subpaths, { kind: 'pod', pod: uid }],
    ];
  });
});

test('no text makes it throw, and it never owns what is not below the root', () => {
  const anyPath = fc.array(fc.oneof(word, component), { maxLength: 9 }).map((names) => `/${names.join('/')}`);
  const anyText = fc.oneof(anyPath, fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }));
  fc.assert(
    fc.property(root, anyText, (directory, text) => {
      const { ownerOf } = createLayout(directory);
      const owner = ownerOf(text);
      const isBelowRoot = directory === '/' || text === directory || text.startsWith(`${directory}/`);
      if (owner !== undefined) assert.ok(isBelowRoot && parseAbsolutePath(text) !== undefined);
      ownerOf(`${directory}${text}`);
      ownerOf(`${directory}/${text}`);
    }),
    { numRuns: 2_000 },
  );
});

test('a name that is another thing there is never taken for the volume or driver of that name', () => {
  const layout = createLayout('/state' as AbsolutePath);
  for (const name of ['volumeDevices', 'pv']) {
    assert.ok(isDriverName(name) && !isStagingDriver(name));
    for (const path of [layout.driverDirectory(name), layout.deviceDirectory(name, 'handle')])
      assert.notEqual(layout.ownerOf(path)?.kind, 'driver');
    assert.notEqual(
      layout.ownerOf(layout.stagingPath(csi(name, 'handle', 'pv-1', 'Filesystem')))?.kind,
      'stage',
    );
  }
  for (const name of ['staging', 'publish']) {
    assert.ok(isObjectName(name) && !isBlockVolumeName(name));
    const { directory, data, stage, targets } = layout.blockVolume(name);
    for (const path of [directory, data, stage, targets]) {
      const owner = layout.ownerOf(path);
      assert.ok(owner === undefined || !('specName' in owner) || owner.specName !== name, path);
    }
  }
});

test('what neither a kubelet nor Mooring makes there has no owner', () => {
  const layout = createLayout('/var/lib/kubelet' as AbsolutePath);
  for (const path of [
    parentOf(layout.root),
    '/var/lib/kubelet2/pods',
    `${layout.root}/device-plugins`,
    `${layout.pods}/-no-uid`,
    `${layout.pods}/uid/containers/main`,
    `${layout.pods}/uid/volumeDevices/kubernetes.io~local/pv-1`,
    `${layout.pods}/uid/plugins/kubernetes.io~csi/cache`,
    `${layout.plugins}/example.com/csi.sock`,
    `${layout.plugins}/kubernetes.io/local-volume/other`,
    `${layout.stages}/example.com/not-a-hash/globalmount`,
    `${layout.blockDevices}/pv-1/other`,
    `${layout.records}/one/more`,
    `${layout.own}/other.json`,
  ])
    assert.equal(layout.ownerOf(path), undefined, path);
});

test('hostPath and orphan are where they are: the owner is told by the path alone', () => {
  const layout = createLayout('/state' as AbsolutePath);
  const id = 'x' as VolumeId;
  const at = place('uid' as PodUid, 'x');
  const path = layout.mountPoint(csi('d', 'h', 'x', 'Filesystem'), at);
  assert.equal(layout.ownerOf(layout.target({ kind: 'orphan', id, path }, at))?.kind, 'volume');
  const outside = '/srv' as AbsolutePath;
  const hostPath = { kind: 'host-path', id, pod: at.pod.uid, name: 'x', path: outside, type: '' } as const;
  assert.equal(layout.ownerOf(layout.target(hostPath, at)), undefined);
});
