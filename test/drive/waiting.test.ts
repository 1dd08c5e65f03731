/** What is waited for before the first duty is said, with the time that is left, and can be interrupted. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Screen } from '../../agent/cli/show.ts';
import type { DriveOptions } from '../../agent/drive/rig/drive-options.ts';
import { showDrive } from '../../agent/drive/show-drive.ts';
import { IdentityService, NodeService } from '../../plugins/csi/wire/generated/csi.ts';
import { serveGrpc } from '../../plugins/csi/wire/grpc.ts';
import { inPrivateNamespace } from '../real/namespace.ts';
import { DEFAULTS, path } from './drive-world.ts';

const skip = inPrivateNamespace();
const timeout = 300_000;

interface Shown {
  readonly out: string;
  readonly err: string;
  readonly good: boolean;
}

interface Wanted {
  readonly options: Partial<DriveOptions>;
  readonly output?: 'table' | 'json';
  /** How wide the terminal is; undefined: a pipe. */
  readonly widthMax?: number;
  /** Interrupted as soon as this was shown. */
  readonly until?: RegExp;
}

/** What a run of `mooring drive` shows that never comes to its first duty. */
async function shown({ options, output = 'table', widthMax, until }: Wanted): Promise<Shown> {
  const interrupt = new AbortController();
  const said = { out: '', err: '' };
  const say = (stream: 'out' | 'err') => (text: string) => {
    said[stream] += text;
    if (until?.test(said[stream]) === true) interrupt.abort();
  };
  const screen: Screen = {
    look: () => ({ widthMax, colour: false, unicode: true }),
    rows: () => (widthMax === undefined ? undefined : 24),
    write: say('out'),
    complain: say('err'),
    sleep: async () => {},
  };
  const directory = mkdtempSync(join(tmpdir(), 'mooring-waiting-'));
  const { signal: interrupted } = interrupt;
  const brokerCommand: readonly string[] = [];
  try {
    const all = { ...DEFAULTS, ...options };
    const good = await showDrive({ options: all, directory, output, screen, brokerCommand, interrupted });
    return { ...said, good };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function inDirectory(title: string, story: (directory: string) => Promise<void>): void {
  test(title, { skip, timeout }, async () => {
    const directory = mkdtempSync(join(tmpdir(), 'mooring-waited-'));
    try {
      await story(directory);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
}

inDirectory(
  'a terminal shows which registration socket is waited for, and for how long',
  async (directory) => {
    const until = /waits \(1m\d+s left\) for a registration socket in \S+: it is empty/;
    const { err, good } = await shown({ options: { registration: path(directory) }, widthMax: 200, until });
    assert.match(err, /interrupted \(waited for a registration socket in \S+: it is empty\)/);
    assert.equal(good, false);
  },
);

inDirectory(
  'no line of a wait is wider than the terminal, or it could not be written over',
  async (directory) => {
    const { out } = await shown({
      options: { registration: path(directory) },
      widthMax: 40,
      until: /waits \(1m\d+s left\)/,
    });
    for (const line of out.split(/\n|\r\u001b\[K/)) assert.ok(line.length <= 40, line);
  },
);

inDirectory('a pipe is told what is waited for beside the document', async (directory) => {
  const registration = path(join(directory, 'later'));
  const until = /mooring: waits \(1m\d+s left\) for a registration socket at \S+later: nothing is there\n/;
  const { out, err } = await shown({ options: { registration }, output: 'json', until });
  assert.equal(out, '');
  assert.match(err, until);
});

inDirectory('what lies in the place of a socket is named', async (directory) => {
  const place = (name: string): string => join(directory, name);
  mkdirSync(place('folder'));
  symlinkSync('folder', place('link'));
  writeFileSync(place('file'), '');
  for (const [name, kind] of [
    ['folder', 'directory'],
    ['link', 'symlink'],
    ['file', 'file'],
  ] as const) {
    const until = new RegExp(`for the driver at ${place(name)}: a ${kind} is there, and no socket\n`);
    const { err } = await shown({ options: { endpoint: path(place(name)) }, until });
    assert.match(err, until);
  }
  const until = /for a registration socket in \S+: of file, folder, link none is a socket\n/;
  assert.match((await shown({ options: { registration: path(directory) }, until })).err, until);
});

inDirectory('a driver that ends before it registers is not waited for', async (directory) => {
  const endpoint = path(join(directory, 'csi.sock'));
  const command = ['/bin/sh', '-c', 'echo panic: no pool >&2; seq 100 >&2; exit 2'];
  const { err, good } = await shown({ options: { endpoint, command, registration: path(directory) } });
  assert.match(
    err,
    /the driver's process ended with 2 \(waited for a registration socket in \S+: it is empty\); it/,
  );
  assert.match(err, /^ {2}panic: no pool$/m);
  assert.match(err, /^ {2}100$/m);
  assert.equal(good, false);
});

inDirectory('a call that the driver does not answer is told while it is waited for', async (directory) => {
  const endpoint = path(join(directory, 'csi.sock'));
  const identity = {
    getPluginInfo: async () => ({ name: 'slow.mooring.dev', vendorVersion: '1', manifest: {} }),
    getPluginCapabilities: async () => ({ capabilities: [] }),
    probe: async () => ({ ready: true }),
  };
  const node = { nodeGetCapabilities: () => new Promise<never>(() => {}) };
  const server = await serveGrpc(endpoint, [
    { definition: IdentityService, implementation: identity },
    { definition: NodeService, implementation: node },
  ]);
  try {
    const { err } = await shown({ options: { endpoint, deadlineMs: 7_000 } });
    assert.match(
      err,
      /^mooring: waits \(\ds left\) for the answer to NodeGetCapabilities: it was asked \ds ago$/m,
    );
    assert.match(err, /^mooring: NodeGetCapabilities: no answer/m);
  } finally {
    await server.close();
  }
});
