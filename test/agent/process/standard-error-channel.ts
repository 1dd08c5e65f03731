/** A standard error whose reader can hang: a pipe, as of a shell, or a socket, as of systemd. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { scratchDirectory } from '../../mount/scratch.ts';

export const KINDS = ['pipe', 'socket'] as const;

export interface Channel {
  /** The standard error for spawn(). Node.js makes a unix stream socket of what it calls a pipe. */
  readonly given: 'pipe' | number;
  /** Call it when the process was started. The reader takes some kilobytes, and no more before it is asked. */
  begin(child: ChildProcess): Readable;
}

export function openChannel(t: TestContext, kind: (typeof KINDS)[number]): Channel {
  if (kind === 'socket') {
    return { given: 'pipe', begin: ({ stderr }) => stderr ?? assert.fail('standard error is a socket') };
  }
  const path = join(scratchDirectory(t), 'pipe');
  execFileSync('mkfifo', [path]);
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const reader = new Socket({ fd, readable: true, writable: false });
  t.after(() => reader.destroy());
  const given = openSync(path, 'w');
  return {
    given,
    begin() {
      // The end is heard when nobody else could write.
      closeSync(given);
      return reader;
    },
  };
}
