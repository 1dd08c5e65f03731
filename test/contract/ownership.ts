/** The sentences that every `Host` keeps about giving a volume to a group. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type AbsolutePath, below, type Host } from '../../mount/host.ts';
import type { OwnershipRequest } from '../../mount/ownership.ts';
import { value } from '../value.ts';
import type { MakeHostWorld } from './host.ts';

/** The group that volumes are given to. */
export const GID = 4_242;
/** The kernel numbers mounts from below. */
const NO_MOUNT = 2_000_000_000;

/** All of it, whatever stands there already, and to the end. */
export function ownershipRequest(path: AbsolutePath, more: Partial<OwnershipRequest> = {}): OwnershipRequest {
  return {
    volume: path,
    path,
    mountId: undefined,
    gid: GID,
    readOnly: false,
    policy: 'always',
    onProgress: () => {},
    onWaiting: () => {},
    isCancelled: () => false,
    ...more,
  };
}

async function write(host: Host, path: AbsolutePath, mode: number): Promise<void> {
  value(await host.writeFile(path, new Uint8Array(), { mode, durable: false }));
}

/** `gid mode` of each path. */
async function owners(host: Host, ...paths: readonly AbsolutePath[]): Promise<string[]> {
  const facts = await Promise.all(paths.map(async (path) => value(await host.inspect(path))));
  return facts.map(({ gid, mode }) => `${gid} ${mode.toString(8)}`);
}

/** A directory, a file in it, a directory in it with a file, and a link out of it. */
async function plant(host: Host, root: AbsolutePath): Promise<AbsolutePath[]> {
  const volume = below(root, 'volume');
  value(await host.makeDirectory(below(volume, 'deep', 'er'), 0o700));
  value(await host.makeDirectory(volume, 0o755));
  value(await host.makeDirectory(below(root, 'outside'), 0o755));
  await write(host, below(root, 'outside', 'kept'), 0o600);
  await write(host, below(volume, 'script'), 0o711);
  await write(host, below(volume, 'deep', 'secret'), 0o600);
  value(await host.makeLink(below(volume, 'deep', 'out'), below(root, 'outside')));
  return [volume, below(volume, 'deep', 'er'), below(volume, 'script'), below(volume, 'deep', 'secret')];
}

export function ownershipContract(name: string, make: MakeHostWorld): void {
  const sentence = (words: string, check: (host: Host, root: AbsolutePath) => Promise<void>): void => {
    test(`${name}: ${words}`, async (t: TestContext) => {
      const { host, root } = await make(t);
      await check(host, root);
    });
  };
  sentence('a volume is given to a group, and what was there stays as it was', async (host, root) => {
    const paths = await plant(host, root);
    const report = value(await host.changeOwnership(ownershipRequest(below(root, 'volume'))));
    assert.deepEqual(report, { seen: 6, changed: 6, refused: 0 });
    assert.deepEqual(await owners(host, ...paths), ['4242 2775', '4242 2770', '4242 771', '4242 660']);
    assert.equal(value(await host.inspect(below(root, 'volume', 'deep', 'out'))).gid, GID);
    assert.deepEqual(await owners(host, below(root, 'outside'), below(root, 'outside', 'kept')), [
      '0 755',
      '0 600',
    ]);
  });
  sentence('a read-only volume can be read by the group, not written', async (host, root) => {
    const paths = await plant(host, root);
    value(await host.changeOwnership(ownershipRequest(below(root, 'volume'), { readOnly: true })));
    assert.deepEqual(await owners(host, ...paths), ['4242 2755', '4242 2750', '4242 751', '4242 640']);
  });
  sentence('what is right already is not changed again', async (host, root) => {
    await plant(host, root);
    value(await host.changeOwnership(ownershipRequest(below(root, 'volume'))));
    const again = value(await host.changeOwnership(ownershipRequest(below(root, 'volume'))));
    assert.deepEqual(again, { seen: 6, changed: 0, refused: 0 });
  });
  sentence('a root that is right is believed when that is the policy', async (host, root) => {
    const volume = below(root, 'volume');
    const policy = 'on-root-mismatch';
    await plant(host, root);
    assert.equal(value(await host.changeOwnership(ownershipRequest(volume, { policy }))).changed, 6);
    await write(host, below(volume, 'late'), 0o600);
    assert.equal(value(await host.changeOwnership(ownershipRequest(volume, { policy }))).changed, 0);
    assert.equal(value(await host.inspect(below(volume, 'late'))).mode, 0o600);
    assert.equal(value(await host.changeOwnership(ownershipRequest(volume))).changed, 1);
    value(await host.makeDirectory(volume, 0o770));
    await write(host, below(volume, 'later'), 0o600);
    assert.equal(value(await host.changeOwnership(ownershipRequest(volume, { policy }))).changed, 2);
  });
  sentence('what was mounted there has gone: what it bares stays as it is', async (host, root) => {
    const paths = await plant(host, root);
    const before = await owners(host, ...paths);
    for (const policy of ['always', 'on-root-mismatch'] as const) {
      const walked = await host.changeOwnership(
        ownershipRequest(below(root, 'volume'), { policy, mountId: NO_MOUNT }),
      );
      assert.equal(walked.ok ? 'ok' : walked.failure.code, 'mount-lost');
    }
    assert.deepEqual(await owners(host, ...paths), before);
  });
  sentence(
    'a walk that nobody wants any more stops, and leaves the root for the next',
    async (host, root) => {
      const [volume] = (await plant(host, root)) as [AbsolutePath];
      const stopped = await host.changeOwnership(ownershipRequest(volume, { isCancelled: () => true }));
      assert.deepEqual(stopped.ok ? 'ok' : [stopped.failure.code, stopped.failure.effect], [
        'no-longer-wanted',
        'unknown',
      ]);
      assert.deepEqual(await owners(host, volume), ['0 755']);
    },
  );
  for (const [how, paths] of [
    ['one path of one volume', { first: 'volume', second: 'volume', volumes: ['v', 'v'] }],
    ['two paths of one volume', { first: 'volume', second: 'again', volumes: ['v', 'v'] }],
    ['two volumes that are one directory', { first: 'volume', second: 'again', volumes: ['v', 'w'] }],
  ] as const) {
    sentence(`of two groups at once the one that came last has all of it: ${how}`, async (host, root) => {
      const [volume, ...others] = (await plant(host, root)) as [AbsolutePath];
      const again = below(root, 'again');
      value(await host.makeDirectory(again, 0o755));
      value(await host.mount({ fsType: 'bind', source: volume, target: again, options: [] }));
      const give = async (path: string, of: string, gid: number) => {
        const request = { volume: of, gid, policy: 'on-root-mismatch' } as const;
        return value(await host.changeOwnership(ownershipRequest(below(root, path), request)));
      };
      const { first, second, volumes } = paths;
      const reports = await Promise.all([give(first, volumes[0], 4_241), give(second, volumes[1], GID)]);
      assert.deepEqual(
        reports.map(({ changed }) => changed),
        [6, 6],
      );
      const groups = await owners(host, volume, ...others, below(volume, 'deep', 'out'));
      assert.deepEqual(new Set(groups.map((one) => one.split(' ')[0])), new Set(['4242']));
    });
  }
  sentence('a mount below is not of this volume', async (host, root) => {
    const [volume] = (await plant(host, root)) as [AbsolutePath];
    const other = below(volume, 'deep', 'er');
    value(await host.mount({ fsType: 'tmpfs', source: 'contract', target: other, options: ['mode=0700'] }));
    await write(host, below(other, 'kept'), 0o600);
    assert.equal(value(await host.changeOwnership(ownershipRequest(volume))).seen, 5);
    assert.deepEqual(await owners(host, other, below(other, 'kept')), ['0 700', '0 600']);
    value(await host.unmount(other));
    assert.deepEqual(await owners(host, other), ['0 700']);
  });
  sentence('nothing is given away through a link, or where nothing is', async (host, root) => {
    await plant(host, root);
    value(await host.makeLink(below(root, 'link'), below(root, 'outside')));
    for (const [name, code] of [
      ['link', 'path-unsafe'],
      ['absent', 'path-missing'],
    ] as const) {
      const refused = await host.changeOwnership(ownershipRequest(below(root, name)));
      assert.deepEqual(refused.ok ? 'ok' : [refused.failure.code, refused.failure.effect], [code, 'none']);
    }
    assert.deepEqual(await owners(host, below(root, 'outside'), below(root, 'outside', 'kept')), [
      '0 755',
      '0 600',
    ]);
  });
}
